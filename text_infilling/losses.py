"""Losses per token, and GAN losses per row; the caller reduces them once."""

import tensorflow as tf

from text_infilling.vocabulary import PAD_ID


def smoothed_cross_entropy(
    states: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor | None, labels: tf.Tensor, smoothing: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns cross entropy with smoothed targets, and the unsmoothed negative log likelihood, per position.

    Logits: `states @ kernel^T + bias`. Targets: `1 - smoothing` on the label, `smoothing / (vocab - 2)` on every other
    word, 0 on `<PAD>`. If the label is `<PAD>`, the targets sum to about `smoothing`, not to 1; the gradient is
    softmax - targets there too, as in the fused op of the authors' code.

    The output product is part of this function because its gradients need the softmax only: targets, weights of the
    losses, `<PAD>` and bias are applied to the small results of the products, not to `[positions, vocab]`.

    Args:
        states: `[positions, dim]`.
        kernel: `[vocab, dim]`.
        bias: `[vocab]`, or None.
        labels: `[positions]` ids.
        smoothing: label smoothing, in [0, 1).

    Returns:
        Smoothed cross entropy and negative log likelihood, `[positions]` each, float32, in nats.
    """
    labels = tf.cast(labels, tf.int32)
    others = smoothing / (kernel.shape[0] - 2.0)
    is_pad = tf.cast(labels == PAD_ID, tf.float32)
    confidence = (1.0 - smoothing - others) * (1.0 - is_pad)  # added to `others` on the label

    @tf.custom_gradient
    def losses(states, kernel, *bias):
        logits = tf.matmul(states, kernel, transpose_b=True)
        kernel_sum = tf.reduce_sum(tf.cast(kernel, tf.float32), axis=0)
        logit_sums = tf.linalg.matvec(tf.cast(states, tf.float32), kernel_sum)
        if bias:
            logits, logit_sums = logits + bias[0], logit_sums + tf.reduce_sum(tf.cast(bias[0], tf.float32))
        logits = tf.cast(logits, tf.float32)
        softmax = tf.nn.softmax(logits)  # on CPUs several times as fast as TensorFlow's cross entropy with logits
        # Of the most probable word: its probability is at least 1 / vocab, so that the logarithm is exact.
        log_normalizer = tf.reduce_max(logits, axis=1) - tf.math.log(tf.reduce_max(softmax, axis=1))
        label_logits = tf.gather(logits, labels, batch_dims=1)
        nll = log_normalizer - label_logits
        expected = confidence * label_logits + others * (logit_sums - logits[:, PAD_ID])  # sum of target * logit
        target_sum = 1.0 + is_pad * (smoothing + others - 1.0)

        def gradients_of(loss_gradient, nll_gradient):
            # Gradient of the logits: all * softmax - of_label on the label - of_others on every word except `<PAD>`.
            weights = (loss_gradient + nll_gradient, loss_gradient * confidence + nll_gradient, loss_gradient * others)
            all_, of_label, of_others = (tf.cast(x, states.dtype)[:, None] for x in weights)
            probabilities = tf.cast(softmax, states.dtype)
            ids = tf.concat([labels, [PAD_ID]], axis=0)[:, None]

            def gradient(inputs):  # of the kernel if inputs are the states, of the bias if they are 1
                others_sum = tf.reduce_sum(of_others * inputs, axis=0, keepdims=True)
                dense = tf.matmul(probabilities, all_ * inputs, transpose_a=True) - others_sum
                return tf.tensor_scatter_nd_add(dense, ids, tf.concat([-of_label * inputs, others_sum], axis=0))

            states_gradient = all_ * tf.matmul(probabilities, kernel) - of_label * tf.gather(kernel, labels)
            states_gradient -= of_others * (tf.cast(kernel_sum, kernel.dtype) - kernel[PAD_ID])
            bias_gradient = [gradient(tf.ones_like(all_))[:, 0]] if bias else []
            return states_gradient, gradient(states), *bias_gradient

        def gradients(loss_gradient, nll_gradient):
            # A fixed scope, because names decide the order in which gradients are added: see `compute_loss`.
            with tf.name_scope("output_gradients"):
                return gradients_of(loss_gradient, nll_gradient)

        return (target_sum * log_normalizer - expected, nll), gradients

    return losses(states, kernel, *([] if bias is None else [bias]))


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
