"""Base class of the three models."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling import templates
from text_infilling.hparams import merge
from text_infilling.losses import smoothed_cross_entropy
from text_infilling.models.phase import Phase

Examples = dict[str, tf.Tensor]  # `templates.Examples` as a dict


class InfillingModel(keras.Model):
    """Base model: scores the answers of all blanks at once, and fills one blank step by step.

    A subclass implements `answer_states` (teacher forcing), `output_weights`, `start` and `step` (decoding). It
    also defines its default hyperparameters and `dim`, the size that a learning rate may depend on.

    `fit` and `evaluate` take the same examples, without targets, and do not use `call`: `compute_loss` computes the
    output product, which is most of the work, only for the positions that count.

    Args:
        vocabulary_size: number of words and special tokens.
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        examples: `templates.Examples` as a dict; see there for the shapes.
        training: whether dropout is active.

    Returns:
        Logits of each next token of the teacher-forced answers, `[batch, blanks, answer_length, vocab]`. Positions
        after `<EOB>` have no meaning.

    Raises:
        ValueError: `hparams` has an unknown key or a value of another type.

    Source: Zhu, Hu, Xing 2019, "Text Infilling", section 3.
    """

    OPTIMIZERS = ("optimizer",)  # attributes that hold an optimizer once the model is compiled
    DIAGNOSTICS: tuple[str, ...] = ()  # names of the metrics that `diagnostics` adds to those of a split
    row_groups = 1  # groups of answers of similar length, trained one after another; faster if lengths vary a lot

    def __init__(self, vocabulary_size: int, hparams: dict | None = None, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hparams = merge(hparams, self.default_hparams())
        self.template_format = templates.TemplateFormat.from_hparams(self.hparams)
        self.loss_mean = keras.metrics.Mean("loss")

    @classmethod
    def phases(cls, hparams: dict) -> tuple[Phase, ...]:
        """Returns the phases of a training run with these hyperparameters, in order."""
        return (Phase("pre-training", lambda before: hparams["train"]["epochs"], cls.multiply_adds),)

    @classmethod
    def adversarial_epochs(cls, hparams: dict, pretraining_epochs: int) -> int:
        """Returns the number of adversarial epochs after `pretraining_epochs` epochs."""
        return 0

    @property
    def metrics(self) -> list[keras.Metric]:
        return [self.loss_mean]

    def call(self, examples: Examples, training: bool = False) -> tf.Tensor:
        shape = tf.shape(examples["answer_ids"][:, :, 1:])
        states = self.answer_states(_rows(examples), training=training)  # [batch * blanks, answer_length, dim]
        logits = self.output(tf.reshape(states, [-1, states.shape[-1]]))
        return tf.reshape(logits, tf.concat([shape, [self.vocabulary_size]], axis=0))

    def score(
        self,
        examples: Examples,
        training: bool = False,
        with_padding: bool | None = None,
        smoothing: float | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns smoothed cross entropy and negative log likelihood of every answer, teacher-forced.

        Args:
            examples: as for `call`.
            training: whether dropout is active.
            with_padding: whether positions after `<EOB>` are scored too, up to each blank's own longest answer in
                the batch; default: the hyperparameter `loss.count_padding`.
            smoothing: of the targets; default: the hyperparameter `loss.label_smoothing`.

        Returns:
            Two tensors `[batch, blanks, answer_length]`, in nats; 0 where a position does not count.
        """
        if smoothing is None:
            smoothing = self.hparams["loss"]["label_smoothing"]
        counted = self.counted(examples, with_padding)
        shape = tf.shape(counted)
        flat = _rows(examples)
        labels = flat["answer_ids"][:, 1:]
        # The output product is most of the work: compute it only for positions that count.
        states, where = self._counted_states(flat, tf.reshape(counted, [shape[0] * shape[1], shape[2]]), training)
        loss, nll = self.output_loss(states, tf.gather_nd(labels, where), smoothing)
        flat_shape = tf.cast([shape[0] * shape[1], shape[2]], where.dtype)
        return tuple(tf.reshape(tf.scatter_nd(where, x, flat_shape), shape) for x in (loss, nll))

    def _counted_states(self, flat, counted, training):
        """Returns hidden states `[positions, dim]` of the positions that count, and their places `[positions, 2]` (row,
        position) among `counted` `[rows, answer_length]`."""
        if self.row_groups == 1 or not training:
            where = tf.where(counted)
            return tf.gather_nd(self.answer_states(flat, training=training), where), where
        lengths = tf.reduce_sum(tf.cast(counted, tf.int32), axis=1)
        order, rows = tf.argsort(lengths, stable=True), tf.size(lengths)
        states, places = [], []
        for k in range(self.row_groups):
            chosen = order[rows * k // self.row_groups : rows * (k + 1) // self.row_groups]
            group = {name: tf.gather(x, chosen) for name, x in flat.items()}
            width = tf.maximum(tf.reduce_max(tf.gather(lengths, chosen)), 1)
            group["answer_ids"] = group["answer_ids"][:, : width + 1]
            for name in ("template_ids", "template_segment_ids", "template_offset_ids"):
                group[name] = group[name][:, : tf.reduce_max(group["template_lengths"])]
            where = tf.where(tf.gather(counted, chosen))
            states.append(tf.gather_nd(self.answer_states(group, training=training), where))
            places.append(tf.stack([tf.gather(tf.cast(chosen, tf.int64), where[:, 0]), where[:, 1]], axis=1))
        return tf.concat(states, axis=0), tf.concat(places, axis=0)

    def counted(self, examples: Examples, with_padding: bool | None = None) -> tf.Tensor:
        """Returns which positions count in the loss: `[batch, blanks, answer_length]` bool."""
        if with_padding is None:
            with_padding = self.hparams["loss"]["count_padding"]
        lengths = examples["answer_lengths"]
        if with_padding:
            lengths = tf.broadcast_to(tf.reduce_max(lengths, axis=0, keepdims=True), tf.shape(lengths))
        position = tf.range(tf.shape(examples["answer_ids"])[2] - 1)
        return position[None, None, :] < lengths[:, :, None]

    def compute_loss(self, x: Examples, y=None, y_pred=None, sample_weight=None, training: bool = True) -> tf.Tensor:
        """Returns the mean smoothed cross entropy over the positions that count, a scalar in nats.

        Args:
            x: examples, as for `call`.
            y, y_pred, sample_weight: unused; the answers are part of `x`.
            training: whether dropout is active.
        """
        # TensorFlow's graph optimizer orders the sums of gradients by op names. With the same scope in all models, the
        # GAN without weight has bitwise the gradients of seq2seq.
        with tf.name_scope("loss"):
            losses, _ = self.score(x, training=training)
        return tf.reduce_sum(losses) / tf.reduce_sum(tf.cast(self.counted(x), losses.dtype))

    def train_step(self, data) -> dict[str, tf.Tensor]:
        examples, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            loss = self.compute_loss(examples)
            scaled = self.optimizer.scale_loss(loss)
        self.optimizer.apply(tape.gradient(scaled, self.trainable_variables), self.trainable_variables)
        return self._with_loss(loss, examples)

    def test_step(self, data) -> dict[str, tf.Tensor]:
        examples, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        return self._with_loss(self.compute_loss(examples, training=False), examples)

    def _with_loss(self, loss, examples):
        """Adds the loss of a batch to the mean and returns the metrics."""
        self.loss_mean.update_state(loss, sample_weight=tf.shape(examples["answer_ids"])[0])
        return self.get_metrics_result()

    def answer_states(self, examples: Examples, training: bool = False) -> tf.Tensor:
        """Returns hidden states `[rows, answer_length, dim]` of teacher-forced answers, one row per blank."""
        raise NotImplementedError(f"{type(self).__name__} must implement answer_states")

    def output_weights(self) -> tuple[keras.Variable, keras.Variable | None]:
        """Returns kernel `[vocab, dim]` and bias `[vocab]` (or None) of the output layer."""
        raise NotImplementedError(f"{type(self).__name__} must implement output_weights")

    def output(self, states: tf.Tensor) -> tf.Tensor:
        """Returns logits `[rows, vocab]` of hidden states `[rows, dim]`."""
        kernel, bias = self.output_weights()
        # `transpose_b`, because `ops.transpose` would copy the kernel at every step of a decoding loop.
        logits = tf.matmul(states, ops.cast(kernel, states.dtype), transpose_b=True)
        return logits if bias is None else logits + ops.cast(bias, states.dtype)

    def output_loss(self, states: tf.Tensor, labels: tf.Tensor, smoothing: float) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the smoothed cross entropy and negative log likelihood `[positions]` of states `[positions, dim]`."""
        weights = (None if x is None else ops.cast(x, states.dtype) for x in self.output_weights())
        return smoothed_cross_entropy(states, *weights, labels, smoothing)

    def start(self, template: templates.Template, template_format: templates.TemplateFormat | None = None) -> dict:
        """Returns the state for decoding the first open blank of a `templates.Template`: a nest of tensors whose first
        axis is the rows.

        Args:
            template: the template.
            template_format: in which it was built; default: that of the model.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement start")

    def step(self, ids: tf.Tensor, time: tf.Tensor, state: dict) -> tuple[tf.Tensor, dict]:
        """Returns logits `[rows, vocab]` for the token after `ids` `[rows]`, which are at position `time` of the infill
        (`<BOB>` is at 0), and the new state, in which only "cache" has changed."""
        raise NotImplementedError(f"{type(self).__name__} must implement step")

    def diagnostics(self, examples: Examples, seed: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns one tensor `[rows]` for each name in `DIAGNOSTICS`; a metric is its mean over all rows of a split.

        Args:
            examples: as for `call`.
            seed: `[2]` integers, for what is sampled.
        """
        return ()

    def get_config(self) -> dict:
        return {**super().get_config(), "vocabulary_size": self.vocabulary_size, "hparams": self.hparams}


def _rows(examples: Examples) -> Examples:
    """Returns the examples with the axes `batch` and `blanks` merged into one axis `rows`."""
    return {name: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0)) for name, x in examples.items()}
