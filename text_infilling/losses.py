"""Losses per token, and those of the GAN per row; the caller reduces once."""

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


def discriminator_loss(truth_logits, infill_logits, objective):
    """What the discriminator minimizes: the cross entropy of telling true answers from infills, for each pair of rows.

    FIDELITY, key 18. With "standard" the truth has label 1 and the infill label 0. With "released", as in the authors'
    code, the discriminator sees the truth alone, with label 1: the infills have no part in the loss.

    Args:
        truth_logits, infill_logits: `[rows]`, the discriminator's, positive for what it takes for the truth.
        objective: "standard" or "released", the hyperparameter gan.objective.

    Returns:
        `[rows]`, float32, in nats.

    Raises:
        ValueError: an unknown objective.
    """
    _check_objective(objective)
    loss = _cross_entropy_of_label(truth_logits, 1)
    if objective == "standard":
        loss += _cross_entropy_of_label(infill_logits, 0)
    return loss


def generator_loss(infill_logits, objective):
    """What the generator minimizes beside its likelihood: the cross entropy of the label its infills are to get.

    FIDELITY, key 19. With "standard" the label is 1, the truth's, so that the generator learns to pass for it. With
    "released", as in the authors' code, it is 0.

    Args:
        infill_logits: `[rows]`, the discriminator's, positive for what it takes for the truth.
        objective: "standard" or "released", the hyperparameter gan.objective.

    Returns:
        `[rows]`, float32, in nats; not weighted.

    Raises:
        ValueError: an unknown objective.
    """
    _check_objective(objective)
    return _cross_entropy_of_label(infill_logits, 1 if objective == "standard" else 0)


def _cross_entropy_of_label(logits, label):
    """-log sigmoid(logits) for label 1 and -log(1 - sigmoid(logits)) for label 0, without overflow."""
    logits = tf.cast(logits, tf.float32)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), float(label)), logits=logits)


def _check_objective(objective):
    if objective not in ("standard", "released"):
        raise ValueError(f"gan.objective takes one of standard, released. Received: gan.objective={objective!r}")
