"""Keras's Muon with fewer, larger operations per step."""

import collections

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("text_infilling")
class StackedMuon(keras.optimizers.Muon):
    """Keras's Muon that orthogonalizes all matrices of one shape in the same batched products.

    The rule, its arguments and its variables are Keras's; a step differs from Keras's by rounding only. A product of
    two 256 x 256 matrices keeps two processor cores a quarter busy, and one of 24 such pairs keeps them busy. A tall
    matrix is stacked transposed, as Keras's orthogonalization would transpose it.
    Source: Jordan 2024, "Muon: an optimizer for hidden layers in neural networks".

    >>> optimizer = StackedMuon(0.1, ns_steps=2)
    >>> weights = [keras.Variable(keras.ops.ones((2, 3))), keras.Variable(keras.ops.ones((3, 2)))]
    >>> optimizer.apply([keras.ops.ones((2, 3)), keras.ops.ones((3, 2))], weights)
    >>> bool((weights[0] == keras.ops.transpose(weights[1])).numpy().all())
    True
    """

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        # The hook of Keras 3.13 to 3.15 that has all gradients. Replicas each need their own momenta, so with several
        # of them Keras updates variable by variable.
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            super()._backend_update_step(grads, trainable_variables, learning_rate)
            return
        matrices = collections.defaultdict(list)
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            if self._should_use_adamw(variable):
                self.update_step(gradient, variable, learning_rate)
            else:
                matrices[tuple(sorted(variable.shape))].append((gradient, variable))
        for alike in matrices.values():
            self._update_alike(alike, learning_rate)

    def _update_alike(self, alike, learning_rate):
        """Updates matrices that have the same shape, or that of the transpose."""
        wide = []
        for gradient, variable in alike:
            momentum = self.momentums[self._get_variable_index(variable)]
            self.assign_add(momentum, gradient + momentum * (self.momentum - 1))
            direction = gradient + self.momentum * momentum if self.nesterov else momentum
            wide.append(tf.transpose(direction) if _tall(variable) else tf.convert_to_tensor(direction))
        updates = self.zeropower_via_newtonschulz5(tf.stack(wide), self.ns_steps)
        for (_, variable), update in zip(alike, tf.unstack(updates), strict=True):
            update = tf.transpose(update) if _tall(variable) else update
            self.assign_sub(variable, self.lr_adjust(learning_rate * update))


def _tall(variable):
    rows, columns = variable.shape
    return rows > columns
