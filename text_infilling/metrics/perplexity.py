"""Perplexities of teacher-forced answers, from the losses of single positions."""

import numpy as np


class Perplexity:
    """Accumulator of batches of losses that computes `loss`, `ppl_paper`, `ppl` and `ppl_words`.

    - `loss`: mean smoothed cross entropy of words and `<EOB>`, in nats.
    - `ppl_paper`: mean over batches of exp(mean smoothed cross entropy over all positions of all blanks, each blank
      padded to its longest answer in the batch, padding included). It depends on the batch size.
    - `ppl`: exp(mean negative log likelihood of words and `<EOB>`): no smoothing, no padding.
    - `ppl_words`: `ppl` without `<EOB>`; NaN if there are no words.

    Source: the paper does not define "perplexity"; `ppl_paper` is the value that its authors' code computes.
    """

    def __init__(self):
        self._batches = []
        self._words = self._ends = self._loss = 0.0
        self._word_count = self._end_count = 0
        self._sentences = []

    def update(self, losses, nll, answer_lengths):
        """Adds one batch.

        Args:
            losses: `[batch, blanks, answer_length]` smoothed cross entropy, padding included.
            nll: `[batch, blanks, answer_length]` negative log likelihood.
            answer_lengths: `[batch, blanks]` words and `<EOB>`; 0 if the row has no such blank.
        """
        losses, nll, lengths = np.asarray(losses), np.asarray(nll, "float64"), np.asarray(answer_lengths)
        position = np.arange(losses.shape[2])[None, None, :]
        padded = np.broadcast_to(position < lengths.max(axis=0)[None, :, None], losses.shape)
        self._batches.append(float(np.mean(losses[padded], dtype="float64")))
        is_word, is_end = position < lengths[..., None] - 1, position == lengths[..., None] - 1
        self._loss += losses[is_word | is_end].sum(dtype="float64")
        self._words += nll[is_word].sum()
        self._ends += nll[is_end].sum()
        self._word_count += int(is_word.sum())
        self._end_count += int(is_end.sum())
        self._sentences.append(
            [np.sum(x, axis=(1, 2)) for x in (nll * is_word, is_word, nll * (is_word | is_end), is_word | is_end)]
        )

    def counts(self) -> list[dict[str, list[float]]]:
        """Returns for each sentence added, for `ppl` and `ppl_words`, its negative log likelihood and its tokens."""
        columns = (np.concatenate(column).tolist() for column in zip(*self._sentences, strict=True))
        return [
            {"ppl": [round(nll, 4), tokens], "ppl_words": [round(nll_words, 4), words]}
            for nll_words, words, nll, tokens in zip(*columns, strict=True)
        ]

    def result(self) -> dict[str, float]:
        """Returns the loss and the three perplexities of all batches added.

        Raises:
            ValueError: no batch was added.
        """
        if not self._batches:
            raise ValueError("Perplexity needs at least one batch. Received: none")
        count = self._word_count + self._end_count
        return {
            "loss": float(self._loss / count),
            "ppl_paper": float(np.mean(np.exp(self._batches))),
            "ppl": float(np.exp((self._words + self._ends) / count)),
            "ppl_words": float(np.exp(self._words / self._word_count)) if self._word_count else float("nan"),
        }
