"""Losses per token; the caller reduces once."""

import tensorflow as tf

from text_infilling.vocabulary import PAD_ID


def smoothed_cross_entropy(logits, labels, smoothing, label_logits=None, pad_logits=None, logit_sums=None):
    """Cross entropy with smoothed targets, and without smoothing the negative log likelihood, of each position.

    Targets: `1 - smoothing` on the label, `smoothing / (vocab - 2)` on every other word, 0 on `<PAD>`. Where the label
    is `<PAD>` the targets sum to about `smoothing`, not to 1; the gradient is softmax - targets there too, as the
    fused op of the authors' code had it. No one-hot `[positions, vocab]` is made, and the logits are passed over once.

    Args:
        logits: `[positions, vocab]`.
        labels: `[positions]` ids.
        smoothing: of the targets, in [0, 1).
        label_logits, pad_logits, logit_sums: `[positions]`, the logit of the label, of `<PAD>`, and the sum over the
            vocabulary: may be given where they can be had without a pass (and a gradient) over all logits.

    Returns:
        Smoothed cross entropy and negative log likelihood, `[positions]` each, float32, in nats.
    """
    logits = tf.cast(logits, tf.float32)
    labels = tf.cast(labels, tf.int32)
    if tf.config.list_physical_devices("GPU"):
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    else:
        # What the line above comes down to, but where op determinism is on, that makes more passes over the logits for
        # the sake of GPUs, whose kernel is not deterministic; the CPU's is.
        nll, _ = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=logits, labels=labels)
    if label_logits is None:
        label_logits = tf.gather(logits, labels, batch_dims=1)
    if pad_logits is None:
        pad_logits = logits[:, PAD_ID]
    if logit_sums is None:
        logit_sums = tf.reduce_sum(logits, axis=1)
    label_logits, pad_logits, logit_sums = (tf.cast(x, tf.float32) for x in (label_logits, pad_logits, logit_sums))

    others = smoothing / (tf.cast(tf.shape(logits)[1], tf.float32) - 2.0)
    is_pad = tf.cast(labels == PAD_ID, tf.float32)
    confidence = (1.0 - smoothing - others) * (1.0 - is_pad)
    expected = confidence * label_logits + others * (logit_sums - pad_logits)  # sum over words of target * logit
    log_normalizer = nll + label_logits
    target_sum = 1.0 + is_pad * (smoothing + others - 1.0)
    loss = log_normalizer - expected + tf.stop_gradient((target_sum - 1.0) * log_normalizer)
    return loss, nll
