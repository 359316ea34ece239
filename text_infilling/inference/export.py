"""Exports a run for use without its folder: as a SavedModel (texts in, texts out) or as a Keras file."""

from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from text_infilling.decoding.complete_texts import fill_texts
from text_infilling.decoding.constraints import unconstrained
from text_infilling.inference.export_path import check_export_path
from text_infilling.inference.fill_options import NO_REPEAT_NGRAM
from text_infilling.inference.infiller import Infiller
from text_infilling.text.graph_detokenizer import GraphDetokenizer
from text_infilling.text.graph_tokenizer import GraphTokenizer, Pieces
from text_infilling.utils import files
from text_infilling.vocabulary import PAD_ID

MOST_CHARACTERS = 10_000  # per text: about forty per word that a model with position.base 256 can read
HYPOTHESES = 128  # searched at a time, so that memory does not grow with the batch


class TextInfiller(tf.Module):
    """`Infiller.fill` with its defaults as a graph: tokenizer, vocabulary, loop over the blanks, detokenizer.

    Args:
        infiller: the trained model.
        beam_width: beam size of the search, 1 is greedy; default: that of `infiller`.
    """

    def __init__(self, infiller: Infiller, beam_width: int | None = None):
        super().__init__()
        self._decoder = infiller.decoder
        self._weights = [weight.value for weight in infiller.model.weights]  # a saved module must refer to them
        self._tokenizer = GraphTokenizer(infiller.tokenizer, infiller.vocabulary)
        self._detokenizer = GraphDetokenizer(infiller.vocabulary)
        self._longest, self._least = infiller.longest, infiller.least
        self._width = infiller.beam_width if beam_width is None else beam_width
        self._most = infiller.decoder.template_format.base - 2  # see `TemplateFormat.check_base`

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="texts")], autograph=False)
    def fill(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Fills the blanks of `texts` `[texts]`, in UTF-8.

        Returns:
            A dict: "text" `[texts]`, the filled texts; "fills" `[texts, blanks]`, the infills, empty past the blanks of
            a text; "blanks" `[texts]`, the number of blanks; "log_probability" `[texts]` of all infills of a text, in
            nats; "log_probabilities" `[texts, blanks]` of each infill, including its end token.

        Raises:
            tf.errors.InvalidArgumentError: a text is not UTF-8, or longer than `MOST_CHARACTERS` or than the model
                can read.
        """
        _check(
            tf.strings.length(texts, "UTF8_CHAR") <= MOST_CHARACTERS, f"a text has at most {MOST_CHARACTERS} characters"
        )
        pieces = self._tokenizer(texts, self._most)
        counts = tf.reduce_sum(tf.cast(pieces.ids == -1, tf.int32), axis=1)
        _check(
            (pieces.ids.row_lengths() <= self._most) | (counts == 0),
            f"the model reads at most {self._most} words and blanks, so fill it part by part",
        )
        size = max(1, HYPOTHESES // self._width**2)
        blanks = tf.reduce_max(tf.concat([[0], counts], axis=0))

        def fill_slice(first, found):
            new = self._fill(Pieces(*(x[first : first + size] for x in pieces)), counts[first : first + size], first)
            missing = [[0, 0], [0, blanks - tf.shape(new["fills"])[1]]]
            new["fills"] = tf.pad(new["fills"], missing, constant_values="")
            new["log_probabilities"] = tf.pad(new["log_probabilities"], missing)
            return first + size, {name: tf.concat([found[name], new[name]], axis=0) for name in found}

        start = {
            "text": tf.fill([0], ""),
            "fills": tf.fill([0, blanks], ""),
            "blanks": tf.zeros([0], tf.int32),
            "log_probability": tf.zeros([0]),
            "log_probabilities": tf.zeros([0, blanks]),
        }
        shapes = {name: tf.TensorShape([None] * x.shape.rank) for name, x in start.items()}
        _, found = tf.while_loop(
            lambda first, _: first < tf.size(texts),
            fill_slice,
            (tf.constant(0), start),
            (tf.TensorShape([]), shapes),
            parallel_iterations=1,
        )
        return found

    def _fill(self, pieces, counts, first):
        """Fills a slice of the batch; `first` is the index of its first text."""
        is_blank = pieces.ids == -1
        kept = ~is_blank & (counts > 0)[:, None]
        ids, places = (
            tf.ragged.boolean_mask(x, mask) for x, mask in ((pieces.ids, kept), (_words_before(kept), is_blank))
        )
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        most = tf.fill(tf.shape(counts), self._longest)
        if self._decoder.template_format.segment_ids == "renumbered":  # infills and kept words merge into one segment
            most = tf.minimum(most, (self._most - lengths) // tf.maximum(counts, 1))
        places = places.to_tensor(0)
        there = tf.range(tf.shape(places)[1])[None, :] < counts[:, None]
        limits = unconstrained(tf.where(there, most[:, None], 0))
        completions = fill_texts(
            self._decoder,
            ids.to_tensor(PAD_ID),
            lengths,
            places,
            counts,
            limits._replace(min_words=tf.where(there, self._least, 0)),
            self._width,
            no_repeat_ngram=NO_REPEAT_NGRAM,
        )
        infills, infill_lengths, log_probs, scores = (x[:, 0] for x in completions)
        _check(tf.math.is_finite(scores), "the model gives every infill probability 0", first)
        text, fills = self._detokenizer(pieces, infills, infill_lengths, counts)
        log_probs = tf.reduce_sum(log_probs, axis=2)
        return {
            "text": text,
            "fills": fills,
            "blanks": counts,
            "log_probability": tf.reduce_sum(log_probs, axis=1),
            "log_probabilities": log_probs,
        }


def to_savedmodel(infiller: Infiller, path: str | Path, beam_width: int | None = None, overwrite: bool = False) -> None:
    """Writes a SavedModel whose signature `serving_default` is `TextInfiller.fill`.

    A process that loads it needs TensorFlow and must `import tensorflow_text`; TensorFlow Serving has it built in.

    Raises:
        ValueError: `path` already exists, unless `overwrite` is set and it is an export.
        OSError: `path` cannot be written.
    """
    module = TextInfiller(infiller, beam_width)
    signatures = {"serving_default": module.fill}
    _write(path, "savedmodel", overwrite, lambda aside: tf.saved_model.save(module, aside, signatures))


def to_keras(infiller: Infiller, path: str | Path, overwrite: bool = False) -> None:
    """Writes the model (ids in, logits out) in Keras' format, without tokenizer and vocabulary.

    `keras.saving.load_model` loads it in a process that imports `text_infilling.models`.

    Raises:
        ValueError: `path` already exists, unless `overwrite` is set and it is an export; or it does not end in
            `.keras`.
        OSError: `path` cannot be written.
    """
    _write(path, "keras", overwrite, infiller.model.save)


def _write(path: str | Path, kind: str, overwrite: bool, write: Callable[[str], None]) -> None:
    """Checks `path`, then lets `write` create a file or folder there, atomically."""
    path = Path(path)
    check_export_path(path, kind, overwrite)
    files.make_folder(path.parent, "path")
    with files.written_aside(path) as aside:
        write(str(aside))


def _check(is_right, message, first=0):
    """Raises an error that names the first text for which `is_right` `[texts]` is false, counted from `first`."""
    wrong = tf.where(~is_right)[:1, 0] + tf.cast(first, tf.int64)
    tf.debugging.Assert(tf.reduce_all(is_right), [tf.strings.join(["text ", tf.as_string(wrong + 1), f": {message}"])])


def _words_before(is_word):
    """Returns the number of words before each piece of a text: `[texts, (pieces)]`."""
    before = tf.cumsum(tf.cast(is_word.flat_values, tf.int32), exclusive=True)
    of_row = tf.gather(tf.concat([before, [0]], axis=0), is_word.row_starts())
    return is_word.with_flat_values(before - tf.gather(of_row, is_word.value_rowids()))
