"""Base class of the three models."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling import templates
from text_infilling.hparams import merge
from text_infilling.losses import smoothed_cross_entropy
from text_infilling.vocabulary import PAD_ID


class InfillingModel(keras.Model):
    """Base model: scores the answers of all blanks at once, and fills one blank step by step.

    A subclass implements `answer_states` (teacher forcing), `output_weights`, `start` and `step` (decoding). It
    also defines its default hyperparameters and `dim`, the size that a learning rate may depend on.

    Args:
        vocabulary_size: number of words and special tokens.
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        examples: `templates.Examples` as a dict; see there for the shapes.

    Returns:
        The training loss per position, `[batch, blanks, answer_length]`; 0 where a position does not count.
    """

    OPTIMIZERS = ("optimizer",)  # attributes that hold an optimizer once the model is compiled
    row_groups = 1  # groups of answers of similar length, trained one after another; faster if lengths vary a lot

    def __init__(self, vocabulary_size, hparams=None, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hparams = merge(hparams, self.default_hparams())
        self.protocol = templates.Protocol.from_hparams(self.hparams)

    @classmethod
    def adversarial_epochs(cls, hparams, pretraining_epochs):
        """Returns the number of adversarial epochs after `pretraining_epochs` epochs."""
        return 0

    def call(self, examples, training=False):
        loss, _ = self.score(examples, training=training)
        return loss

    def score(self, examples, training=False, with_padding=None, smoothing=None):
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
        flat = {name: tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0)) for name, x in examples.items()}
        labels = flat["answer_ids"][:, 1:]
        if self.compiled and self.jit_compile:  # XLA needs static shapes: compute all positions
            states = self.answer_states(flat, training=training)  # [batch * blanks, answer_length, dim]
            loss, nll = self.output_loss(
                tf.reshape(states, [-1, states.shape[-1]]), tf.reshape(labels, [-1]), smoothing
            )
            weights = tf.cast(counted, loss.dtype)
            return tf.reshape(loss, shape) * weights, tf.reshape(nll, shape) * weights
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

    def counted(self, examples, with_padding=None):
        """Returns which positions count in the loss: `[batch, blanks, answer_length]` bool."""
        if with_padding is None:
            with_padding = self.hparams["loss"]["count_padding"]
        lengths = examples["answer_lengths"]
        if with_padding:
            lengths = tf.broadcast_to(tf.reduce_max(lengths, axis=0, keepdims=True), tf.shape(lengths))
        position = tf.range(tf.shape(examples["answer_ids"])[2] - 1)
        return position[None, None, :] < lengths[:, :, None]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the mean of the losses over the positions that count."""
        return tf.reduce_sum(y_pred) / tf.reduce_sum(tf.cast(self.counted(x), y_pred.dtype))

    def answer_states(self, examples, training=False):
        """Returns hidden states `[rows, answer_length, dim]` of teacher-forced answers, one row per blank."""
        raise NotImplementedError(f"{type(self).__name__} must implement answer_states")

    def output_weights(self):
        """Returns kernel `[vocab, dim]` and bias `[vocab]` (or None) of the output layer."""
        raise NotImplementedError(f"{type(self).__name__} must implement output_weights")

    def output(self, states):
        """Returns logits `[rows, vocab]` of hidden states `[rows, dim]`."""
        kernel, bias = self.output_weights()
        # `transpose_b`, because `ops.transpose` would copy the kernel at every step of a decoding loop.
        logits = tf.matmul(states, ops.cast(kernel, states.dtype), transpose_b=True)
        return logits if bias is None else logits + ops.cast(bias, states.dtype)

    def output_loss(self, states, labels, smoothing):
        """Returns the smoothed cross entropy and negative log likelihood `[positions]` of states `[positions, dim]`."""
        # Label logit, `<PAD>` logit and logit sum are computed by separate small products: taken from the logits, each
        # would cost a gradient as large as the logits.
        kernel, bias = self.output_weights()
        kernel = ops.cast(kernel, states.dtype)
        label_logits = ops.sum(states * ops.take(kernel, labels, axis=0), axis=-1)
        pad_logits = ops.sum(states * ops.take(kernel, [PAD_ID], axis=0), axis=-1)
        logit_sums = ops.sum(states * ops.sum(kernel, axis=0), axis=-1)
        if bias is not None:
            bias = ops.cast(bias, states.dtype)
            label_logits, pad_logits = label_logits + ops.take(bias, labels, axis=0), pad_logits + bias[PAD_ID]
            logit_sums = logit_sums + ops.sum(bias)
        return smoothed_cross_entropy(self.output(states), labels, smoothing, label_logits, pad_logits, logit_sums)

    def start(self, template):
        """Returns the state for decoding the first open blank of a `templates.Template`: a nest of tensors whose first
        axis is the rows."""
        raise NotImplementedError(f"{type(self).__name__} must implement start")

    def step(self, ids, time, state):
        """Returns logits `[rows, vocab]` for the token after `ids` `[rows]`, which are at position `time` of the infill
        (`<BOB>` is at 0), and the new state, in which only "cache" has changed."""
        raise NotImplementedError(f"{type(self).__name__} must implement step")

    def get_config(self):
        return {**super().get_config(), "vocabulary_size": self.vocabulary_size, "hparams": self.hparams}
