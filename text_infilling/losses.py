"""Losses per token, and GAN losses per row; the caller reduces them once."""

import tensorflow as tf

from text_infilling.vocabulary import PAD_ID


def smoothed_cross_entropy(
    logits: tf.Tensor,
    labels: tf.Tensor,
    smoothing: float,
    label_logits: tf.Tensor | None = None,
    pad_logits: tf.Tensor | None = None,
    logit_sums: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns cross entropy with smoothed targets, and the unsmoothed negative log likelihood, per position.

    Targets: `1 - smoothing` on the label, `smoothing / (vocab - 2)` on every other word, 0 on `<PAD>`. If the label
    is `<PAD>`, the targets sum to about `smoothing`, not to 1; the gradient is softmax - targets there too, as in the
    fused op of the authors' code. No one-hot `[positions, vocab]` is built, and the logits are read only once.

    Args:
        logits: `[positions, vocab]`.
        labels: `[positions]` ids.
        smoothing: label smoothing, in [0, 1).
        label_logits, pad_logits, logit_sums: optional `[positions]`: logit of the label, logit of `<PAD>`, and sum
            over the vocabulary, if the caller can compute them without a pass (and a gradient) over all logits.

    Returns:
        Smoothed cross entropy and negative log likelihood, `[positions]` each, float32, in nats.
    """
    logits = tf.cast(logits, tf.float32)
    labels = tf.cast(labels, tf.int32)
    if tf.config.list_physical_devices("GPU"):
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    else:
        # Same result as the line above. With op determinism on, that line makes extra passes over the logits, because
        # the GPU kernel is not deterministic; the CPU kernel is.
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


def discriminator_loss(truth_logits: tf.Tensor, infill_logits: tf.Tensor, objective: str) -> tf.Tensor:
    """Returns the discriminator's loss: cross entropy of telling true answers from infills, per pair of rows.

    Docs: fidelity.md, row 16. With "standard" the truth has label 1 and the infill label 0. With "released", as in the
    authors' code, the discriminator sees only the truth, with label 1: the infills do not enter the loss.

    Args:
        truth_logits, infill_logits: `[rows]`, logits of the discriminator, positive for rows classified as truth.
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


def generator_loss(infill_logits: tf.Tensor, objective: str) -> tf.Tensor:
    """Returns the generator's adversarial loss: cross entropy of the label that its infills should get.

    Docs: fidelity.md, row 17. With "standard" the label is 1, the label of the truth, so the generator learns to
    imitate true answers. With "released", as in the authors' code, the label is 0.

    Args:
        infill_logits: `[rows]`, logits of the discriminator, positive for rows classified as truth.
        objective: "standard" or "released", the hyperparameter gan.objective.

    Returns:
        `[rows]`, float32, in nats; without the factor gan.weight.

    Raises:
        ValueError: an unknown objective.
    """
    _check_objective(objective)
    return _cross_entropy_of_label(infill_logits, 1 if objective == "standard" else 0)


def reinforce_loss(log_probabilities: tf.Tensor, rewards: tf.Tensor, baseline: tf.Tensor) -> tf.Tensor:
    """Returns a loss whose gradient is the policy gradient of the mean reward: -(reward - baseline) * log probability.

    Source: Williams 1992, "Simple statistical gradient-following algorithms for connectionist reinforcement learning".

    Args:
        log_probabilities: `[rows]`, of the sampled infills, in nats.
        rewards: `[rows]`; no gradient flows through them.
        baseline: scalar that reduces the variance of the gradient, usually the mean reward of earlier samples.

    Returns:
        `[rows]`, float32; only its gradient has a meaning.
    """
    return -tf.stop_gradient(rewards - baseline) * log_probabilities


def _cross_entropy_of_label(logits, label):
    """Returns -log sigmoid(logits) for label 1 and -log(1 - sigmoid(logits)) for label 0, without overflow."""
    logits = tf.cast(logits, tf.float32)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), float(label)), logits=logits)


def _check_objective(objective):
    if objective not in ("standard", "released"):
        raise ValueError(f"gan.objective takes one of standard, released. Received: gan.objective={objective!r}")
