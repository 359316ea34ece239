"""Builds the optimizer of a run, and detaches optimizers while weights are saved or loaded."""

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf


def new_optimizer(
    rate: float | keras.optimizers.schedules.LearningRateSchedule, hparams: dict
) -> keras.optimizers.Optimizer:
    """Builds the optimizer that the hyperparameter group `optimizer` describes.

    Source: Adam is the paper's optimizer (appendix A, "Optimizing"); Muon is Jordan 2024, "Muon: an optimizer for
    hidden layers in neural networks".

    Args:
        rate: the learning rate, or a learning-rate schedule.
        hparams: the group `optimizer`.
    """
    beta_1, beta_2, epsilon = hparams["beta_1"], hparams["beta_2"], hparams["epsilon"]
    if hparams["name"] == "adam":
        return Adam(rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)
    return Muon(
        rate,
        adam_beta_1=beta_1,
        adam_beta_2=beta_2,
        epsilon=epsilon,
        adam_lr_ratio=hparams["adam_lr_ratio"],
        ns_steps=hparams["ns_steps"],
        weight_decay=hparams["weight_decay"] or None,
        adam_weight_decay=None,
        exclude_layers=["output_kernel"],  # one vector per word, as in embeddings, which Keras excludes itself
    )


class Adam(keras.optimizers.Adam):
    """Keras's Adam; TensorFlow's fused operation updates each variable, with the same formula in one pass."""

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor) -> None:
        index = self._get_variable_index(variable)
        moments = self._momentums[index], self._velocities[index]
        _adam_update(self, gradient, variable, learning_rate, *moments, self.beta_1, self.beta_2)


class Muon(keras.optimizers.Muon):
    """Keras's Muon with fewer and smaller products; the results differ by rounding only."""

    def _adamw_update_step(self, gradient, variable, learning_rate, m, v):
        _adam_update(self, gradient, variable, learning_rate, m, v, self.adam_beta_1, self.adam_beta_2)

    def zeropower_via_newtonschulz5(self, x: tf.Tensor, steps: int) -> tf.Tensor:
        """Returns a matrix after Newton-Schulz iterations, which make it nearly orthogonal.

        An iteration multiplies x by the factor `a + b g + c g^2`, where `g = x x^T`, or `x^T x` if that is smaller. All
        factors are polynomials of the first g. So the products have the size of g, and x is multiplied once, at the
        end, by the product of all factors.

        Args:
            x: `[rows, columns]`.
            steps: iterations.
        """
        tall = x.shape[0] > x.shape[1]
        norm = tf.norm(x) + 1e-7
        gram = tf.matmul(x, x, transpose_a=tall, transpose_b=not tall) / norm**2  # largest eigenvalue: at most 1
        one = tf.eye(min(x.shape), dtype=x.dtype)

        def factor_of(gram):
            return self.muon_a * one + tf.matmul(self.muon_b * one + self.muon_c * gram, gram)

        factor = product = factor_of(gram)
        for _ in range(steps - 1):
            gram = tf.matmul(factor, tf.matmul(factor, gram))
            factor = factor_of(gram)
            product = tf.matmul(factor, product)
        product /= norm
        return tf.matmul(x, product) if tall else tf.matmul(product, x)


def _adam_update(optimizer, gradient, variable, learning_rate, momentum, velocity, beta_1, beta_2):
    """Updates a variable and its moments by one step of Adam."""
    step = tf.cast(optimizer.iterations + 1, variable.dtype)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.value.handle,
        v=velocity.value.handle,
        beta1_power=tf.pow(beta_1, step),
        beta2_power=tf.pow(beta_2, step),
        lr=learning_rate,
        beta1=beta_1,
        beta2=beta_2,
        epsilon=optimizer.epsilon,
        grad=tf.convert_to_tensor(gradient),
    )


@contextlib.contextmanager
def without_optimizers(model: keras.Model) -> Iterator[None]:
    """Detaches the optimizers within the block, so that weights are saved and loaded without optimizer state."""
    # Keras 3.15: `save_weights` and `load_weights` walk all attributes of a compiled model and have no option that
    # leaves its optimizers out. A second, uncompiled model would need all weights in memory twice.
    optimizers = {name: getattr(model, name) for name in model.OPTIMIZERS}
    try:
        for name in optimizers:
            setattr(model, name, None)
        yield
    finally:
        for name, optimizer in optimizers.items():
            setattr(model, name, optimizer)
