"""Template operations: build a template, fill a blank (paper, section 3.1 and appendix A.2).

    words     can i have a beef burger , please .       blanks [0, 2) and [4, 6)
    template  <BOS> <m> have a <m> , please . <EOS>     each blank collapsed
    segments    0    1   2   2  3  4   4    4   4       maximal runs of kept text, and blanks
    offsets     0    0   1   2  0  1   2    3   4       words count from 1, `<BOS>` and `<m>` are at 0
    fill 1    <BOS> can i have a <m> , please . <EOS>
    segments    0    1  1  2   2  3  4   4    4   4     a segment keeps its id

All functions are batched tensor code without a loop over examples, used in `tf.data`, in decoding and in exported
graphs. Padding and blanks are never recognized by their ids: `Template` carries lengths and a mask.
"""

from typing import NamedTuple

import tensorflow as tf

from text_infilling.vocabulary import BLANK_ID, BOB_ID, BOS_ID, EOB_ID, EOS_ID, PAD_ID


class TemplateFormat(NamedTuple):
    """How templates are numbered and padded; docs/fidelity.md compares the values of the paper and of its code.

    Attributes:
        segment_ids: "constant" (a segment keeps its id) or "renumbered" (a filled blank merges with its neighbors).
        origin: "one" (words count from 1; `<BOS>`, `<m>` and `<BOB>` are at 0) or "zero".
        mask_padding: whether padding is excluded from a row. If not, a row ends with the padding of its sentence, the
            batch is as wide as its longest row, and the model attends to the whole width.
        answer_segment_ids: "own" or "released" (2k + 1 for blank k in training, 1 in decoding).
        base: number that a segment index is multiplied by in a position, `segment_id * base + offset_id`; it must be
            larger than any offset.
        encoder_length: None for models that attend to templates; otherwise the number of positions an encoder reads:
            "template" (tokens of the template) or "sentence" (tokens of the true sentence, at most the batch width).
    """

    segment_ids: str = "constant"
    origin: str = "one"
    mask_padding: bool = True
    answer_segment_ids: str = "own"
    base: int = 256
    encoder_length: str | None = None

    @classmethod
    def from_hparams(cls, hparams: dict) -> "TemplateFormat":
        """Returns the template format given by the groups `template`, `position`, `answer` and `encoder` of `hparams`.

        Raises:
            ValueError: a value that is not one of the choices of its key.
        """
        choices = {
            "template.segment_ids": (hparams["template"]["segment_ids"], ("constant", "renumbered")),
            "position.origin": (hparams["position"]["origin"], ("one", "zero")),
            "answer.segment_ids": (hparams["answer"]["segment_ids"], ("own", "released")),
            "encoder.length": (hparams.get("encoder", {}).get("length"), (None, "template", "sentence")),
        }
        for key, (value, known) in choices.items():
            if value not in known:
                raise ValueError(f"{key} takes one of {', '.join(filter(None, known))}. Received: {value!r}")
        return cls(
            segment_ids=hparams["template"]["segment_ids"],
            origin=hparams["position"]["origin"],
            mask_padding=hparams["template"]["mask_padding"],
            answer_segment_ids=hparams["answer"]["segment_ids"],
            base=hparams["position"]["base"],
            encoder_length=hparams.get("encoder", {}).get("length"),
        )

    def check_base(self, longest_sentence: int, blanks: int = 1, longest_infill: int = 0) -> None:
        """Raises ValueError if an offset could reach the base.

        Args:
            longest_sentence: in words.
            blanks: number of blanks per sentence.
            longest_infill: in words.
        """
        segment = max(longest_sentence, longest_infill)
        if self.segment_ids == "renumbered":  # infills and kept words merge into one segment
            segment = longest_sentence + blanks * longest_infill
        if segment + 2 > self.base:
            raise ValueError(
                f"position.base must be larger than any offset: sentences of {longest_sentence} words and infills of "
                f"{longest_infill} may have segments of {segment + 2} tokens. Received: position.base={self.base}; "
                f"fix it with position.base={2 * (segment + 2)}"
            )


class Template(NamedTuple):
    """A batch of texts in which some blanks are open.

    Attributes:
        ids: `[batch, template_length]`, `<PAD>` after the end of a row.
        segment_ids: `[batch, template_length]`, index of the segment, left to right.
        offset_ids: `[batch, template_length]`, position inside the segment.
        blanks: `[batch, template_length]`, True at an open blank.
        lengths: `[batch]`, number of tokens in a row, including `<BOS>` and `<EOS>`.
        paddings: `[batch]`, padding after `<EOS>` that belongs to the row (all 0 if padding is masked).
        sentence_lengths: `[batch]`, number of tokens in the true sentence, including `<BOS>` and `<EOS>`.
    """

    ids: tf.Tensor
    segment_ids: tf.Tensor
    offset_ids: tf.Tensor
    blanks: tf.Tensor
    lengths: tf.Tensor
    paddings: tf.Tensor
    sentence_lengths: tf.Tensor


class Examples(NamedTuple):
    """Templates and answers of all blanks of a batch; the template of blank k has blanks 0..k-1 filled.

    Attributes:
        template_ids, template_segment_ids, template_offset_ids: `[batch, blanks, template_length]`.
        template_lengths: `[batch, blanks]`, number of positions that the model reads.
        answer_ids: `[batch, blanks, answer_length + 1]`: `<BOB>`, words, `<EOB>`, padding. Without the last
            column it is the decoder's input, without the first its target.
        answer_segment_ids: `[batch, blanks]`.
        answer_lengths: `[batch, blanks]`, number of words plus `<EOB>`; 0 if the row has no blank k.
    """

    template_ids: tf.Tensor
    template_segment_ids: tf.Tensor
    template_offset_ids: tf.Tensor
    template_lengths: tf.Tensor
    answer_ids: tf.Tensor
    answer_segment_ids: tf.Tensor
    answer_lengths: tf.Tensor


def initial_template(
    ids: tf.Tensor,
    lengths: tf.Tensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
    counts: tf.Tensor,
    template_format: TemplateFormat,
) -> Template:
    """Returns the template in which every blank is open.

    Args:
        ids: `[batch, length]` word ids, without `<BOS>` and `<EOS>`.
        lengths: `[batch]` number of words in each sentence.
        starts, ends: `[batch, blanks]` blank k covers the words `starts[k] .. ends[k] - 1`; sorted, without
            overlaps; adjacent and empty blanks are allowed.
        counts: `[batch]` number of blanks in each sentence; later columns are ignored.
        template_format: numbering and padding.
    """
    ids, lengths, starts, ends, counts = (tf.cast(x, tf.int32) for x in (ids, lengths, starts, ends, counts))
    batch, length = tf.shape(ids)[0], tf.shape(ids)[1]
    blanks = tf.shape(starts)[1]
    real = tf.range(blanks)[None, :] < counts[:, None]
    starts, ends = tf.where(real, starts + 1, length + 2), tf.where(real, ends + 1, length + 2)  # after `<BOS>`

    position = tf.range(length + 2)[None, :]
    sentence = tf.pad(tf.where(tf.range(length)[None, :] < lengths[:, None], ids, PAD_ID), [[0, 0], [1, 1]])
    sentence = tf.where(position == 0, BOS_ID, tf.where(position == lengths[:, None] + 1, EOS_ID, sentence))
    inside = (position[:, :, None] >= starts[:, None, :]) & (position[:, :, None] < ends[:, None, :])
    masked = tf.reduce_any(inside, axis=2)

    # One sort puts kept tokens and blanks in order: a blank comes before the token at its start, blanks with the same
    # start keep their order, and whatever is not in the template goes to the end.
    key_of_token = tf.where(masked, tf.int32.max, position * (blanks + 1) + blanks)
    key_of_blank = tf.where(real, starts * (blanks + 1) + tf.range(blanks)[None, :], tf.int32.max)
    order = tf.argsort(tf.concat([key_of_token, key_of_blank], axis=1), axis=1, stable=True)
    tokens = tf.concat([sentence, tf.fill([batch, blanks], BLANK_ID)], axis=1)

    new_lengths = lengths + 2 - tf.reduce_sum(tf.cast(masked, tf.int32), axis=1) + counts
    paddings = tf.zeros_like(lengths) if template_format.mask_padding else length - lengths
    width = _width(new_lengths, paddings)
    order = order[:, :width]
    row = tf.range(width)[None, :] < (new_lengths + paddings)[:, None]
    is_blank = (order >= length + 2) & row
    new_ids = tf.where(row, tf.gather(tokens, order, batch_dims=1), PAD_ID)
    return Template(new_ids, *_number(is_blank, template_format), is_blank, new_lengths, paddings, lengths + 2)


def fill_blank(
    template: Template,
    infill_ids: tf.Tensor,
    infill_lengths: tf.Tensor,
    template_format: TemplateFormat,
    places: tf.Tensor | None = None,
) -> Template:
    """Returns the template with the first open blank of every row replaced by an infill; other rows do not change.

    Args:
        template: texts with open blanks.
        infill_ids: `[batch, answer_length]` words, without `<BOB>` and `<EOB>`.
        infill_lengths: `[batch]` number of words in each infill, may be 0.
        template_format: numbering and padding.
        places: `[batch]` index in its row of the blank to fill instead of the first; -1 to fill none.
    """
    infill_ids, infill_lengths = tf.cast(infill_ids, tf.int32), tf.cast(infill_lengths, tf.int32)
    if places is None:
        places = tf.argmax(template.blanks, axis=1, output_type=tf.int32)
        places = tf.where(tf.reduce_any(template.blanks, axis=1), places, -1)
    filled = places >= 0
    added = tf.where(filled, infill_lengths, 0)
    lengths = template.lengths + tf.where(filled, added - 1, 0)
    width = _width(lengths, template.paddings)
    first = tf.where(filled, places, tf.shape(template.ids)[1])  # position of the first new word
    sources = _sources(template, first, added, tf.shape(infill_ids)[1], width)
    in_row = tf.range(width)[None, :] < (lengths + template.paddings)[:, None]

    def merged(old, new, padding):
        return tf.where(in_row, tf.gather(tf.concat([old, new], axis=1), sources, batch_dims=1), padding)

    ids = merged(template.ids, infill_ids, PAD_ID)
    is_blank = merged(template.blanks, tf.zeros_like(infill_ids, tf.bool), False)
    if template_format.segment_ids == "renumbered":
        segment_ids, offset_ids = _number(is_blank, template_format)
    else:
        new_segments, new_offsets = _infill_numbers(template, first, tf.shape(infill_ids), template_format)
        segment_ids = merged(template.segment_ids, new_segments, 0)
        offset_ids = merged(template.offset_ids, new_offsets, 0)
        if not template_format.mask_padding:
            segment_ids, offset_ids = _padding_numbered(template, lengths, segment_ids, offset_ids)
    return Template(ids, segment_ids, offset_ids, is_blank, lengths, template.paddings, template.sentence_lengths)


def _sources(template: Template, first: tf.Tensor, added: tf.Tensor, longest: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Returns where each token of a filled template comes from, `[batch, width]`: an index in the old template followed
    by the `longest` columns of the infills.

    With the template `<BOS> <m> have <EOS>`, the infill `can i`, `first` 1 and `added` 2, it is 0, 4, 5, 2, 3.
    """
    old_width, position = tf.shape(template.ids)[1], tf.range(width)[None, :]
    place = position - first[:, None]  # inside the infill
    before = tf.minimum(position, old_width - 1)
    infill = old_width + tf.minimum(place, longest - 1)
    after = tf.clip_by_value(position - added[:, None] + 1, 0, old_width - 1)
    return tf.where(place < 0, before, tf.where(place < added[:, None], infill, after))


def _infill_numbers(
    template: Template, first: tf.Tensor, shape: tf.Tensor, template_format: TemplateFormat
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns segment and offset ids of infills of shape `shape`: the segment of their blank, and offsets from its
    start."""
    last = tf.shape(template.ids)[1] - 1
    own = tf.gather(template.segment_ids, tf.minimum(first, last), batch_dims=1)
    shift = 1 if template_format.origin == "one" else 0
    return tf.broadcast_to(own[:, None], shape), tf.broadcast_to(tf.range(shape[1])[None, :] + shift, shape)


def _padding_numbered(
    template: Template, lengths: tf.Tensor, segment_ids: tf.Tensor, offset_ids: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns segment and offset ids in which attended padding continues the last segment after `<EOS>`."""
    past_end = tf.range(tf.shape(segment_ids)[1])[None, :] - (lengths[:, None] - 1)
    last_segment = tf.reduce_max(template.segment_ids, axis=1, keepdims=True)
    last_offset = tf.gather(template.offset_ids, template.lengths[:, None] - 1, batch_dims=1)
    return (
        tf.where(past_end > 0, last_segment, segment_ids),
        tf.where(past_end > 0, last_offset + past_end, offset_ids),
    )


def read_lengths(template: Template, template_format: TemplateFormat) -> tf.Tensor:
    """Returns how many positions of each row the model reads, `[batch]`: the row's length, or the full width if padding
    is attended; `encoder_length` takes precedence."""
    width = tf.shape(template.ids)[1]
    if template_format.encoder_length == "sentence":
        return tf.minimum(template.sentence_lengths, width)
    if template_format.mask_padding or template_format.encoder_length == "template":
        return template.lengths
    return tf.fill(tf.shape(template.lengths), width)


def blank_segment_ids(template: Template) -> tf.Tensor:
    """Returns the segment id of the first open blank of every row (0 if none is open), `[batch]`."""
    first = tf.argmax(template.blanks, axis=1, output_type=tf.int32)
    own = tf.gather(template.segment_ids, first, batch_dims=1)
    return tf.where(tf.reduce_any(template.blanks, axis=1), own, 0)


def answer_segment_ids(template: Template, template_format: TemplateFormat) -> tf.Tensor:
    """Returns the segment id of the answer to the first open blank in decoding, `[batch]`."""
    if template_format.answer_segment_ids == "own":
        return blank_segment_ids(template)
    return tf.ones_like(template.lengths)


def build_examples(
    ids: tf.Tensor,
    lengths: tf.Tensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
    counts: tf.Tensor,
    template_format: TemplateFormat,
) -> Examples:
    """Returns templates (earlier blanks filled with the truth) and answers of all blanks.

    Takes the arguments of `initial_template`; the number of columns of `starts` must be static.

    Raises:
        ValueError: the number of columns of `starts` is unknown when the graph is built.
    """
    blanks = starts.shape[1]
    if blanks is None:
        raise ValueError("The number of blanks (columns of starts) must be static. Received: starts.shape[1]=None")
    ids, starts, ends, counts = (tf.cast(x, tf.int32) for x in (ids, starts, ends, counts))
    real = tf.range(blanks)[None, :] < counts[:, None]
    word_counts = tf.where(real, ends - starts, 0)
    words = _words_of_blanks(ids, starts, word_counts)
    template = initial_template(ids, lengths, starts, ends, counts, template_format)
    templates, read, segments = [], [], []
    for k in range(blanks):
        templates.append(template)
        read.append(read_lengths(template, template_format))
        if template_format.answer_segment_ids == "own":
            segments.append(blank_segment_ids(template))
        else:
            segments.append(tf.fill(tf.shape(counts), 2 * k + 1))
        template = fill_blank(template, words[:, k], word_counts[:, k], template_format)

    width = tf.reduce_max([tf.shape(t.ids)[1] for t in templates])

    def stacked(field):
        rows = [getattr(t, field) for t in templates]
        return tf.stack([tf.pad(x, [[0, 0], [0, width - tf.shape(x)[1]]]) for x in rows], axis=1)

    return Examples(
        template_ids=stacked("ids"),
        template_segment_ids=stacked("segment_ids"),
        template_offset_ids=stacked("offset_ids"),
        template_lengths=tf.stack(read, axis=1),
        answer_ids=_answers(words, word_counts),
        answer_segment_ids=tf.stack(segments, axis=1),
        answer_lengths=tf.where(real, word_counts + 1, 0),
    )


def _words_of_blanks(ids: tf.Tensor, starts: tf.Tensor, word_counts: tf.Tensor) -> tf.Tensor:
    """Returns the words of each blank, `[batch, blanks, longest]`, then `<PAD>`."""
    place = tf.range(tf.maximum(tf.reduce_max(word_counts), 0))[None, None, :]
    taken = tf.clip_by_value(starts[:, :, None] + place, 0, tf.maximum(tf.shape(ids)[1] - 1, 0))
    return tf.where(place < word_counts[:, :, None], tf.gather(ids, taken, batch_dims=1), PAD_ID)


def _answers(words: tf.Tensor, word_counts: tf.Tensor) -> tf.Tensor:
    """Returns `words` with `<BOB>` before and `<EOB>` after those of each blank, `[batch, blanks, longest + 2]`."""
    answers = tf.pad(words, [[0, 0], [0, 0], [1, 1]], constant_values=PAD_ID)
    place = tf.range(tf.shape(answers)[2])[None, None, :]
    return tf.where(place == 0, BOB_ID, tf.where(place == word_counts[:, :, None] + 1, EOB_ID, answers))


def _width(lengths, paddings):
    return tf.maximum(tf.reduce_max(lengths + paddings), 1)


def _number(is_blank, template_format: TemplateFormat):
    """Returns segment and offset ids of a text divided into segments by its open blanks; padding continues the last
    segment."""
    before = tf.pad(is_blank, [[0, 0], [1, 0]])[:, :-1]
    position = tf.range(tf.shape(is_blank)[1])[None, :]
    is_start = is_blank | before | (position == 0)
    segment_ids = tf.cumsum(tf.cast(is_start, tf.int32), axis=1) - 1
    earlier = position[:, None, :] <= position[:, :, None]
    start = tf.reduce_max(tf.where(is_start[:, None, :] & earlier, position[:, None, :], 0), axis=2)
    offset_ids = position - start
    if template_format.origin == "one":
        offset_ids += tf.cast((segment_ids > 0) & ~is_blank, tf.int32)
    return segment_ids, offset_ids
