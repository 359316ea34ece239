"""A small GAN, a batch for it and what the tests of the GAN compare."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from text_infilling import hparams, templates
from text_infilling.models.gan import GANModel

VOCAB = 14
SEQ2SEQ = {"embedder": {"dim": 8}, "encoder": {"units": 10}, "decoder": {"units": 10}}
SMALL = {**SEQ2SEQ, "classifier": {"filters": 6}, "gan": {"discriminator_dim": 6, "discriminator_rate": 0.01}}
STILL = {"encoder": {"dropout": 0.0}, "decoder": {"dropout": 0.0}, "classifier": {"dropout": 0.0}}  # no dropout
ADVERSARIAL_LOGS = {"loss", "d_loss", "g_loss", "temperature"}
estimators = pytest.mark.parametrize("estimator", ["straight_through", "reinforce", "soft"])
objectives = pytest.mark.parametrize("objective", ["standard", "released"])


def gan(changes=None, rate=0.1, seed=0, adversarial=True, vocab=VOCAB, **options):
    """Returns a small GAN with seeded weights and noise, whose generator learns by plain gradient descent."""
    keras.utils.set_random_seed(seed)
    model = GANModel(vocab, hparams.merge(changes, hparams.merge(SMALL, GANModel.default_hparams())), **options)
    model.build()
    model.compile(keras.optimizers.SGD(rate))
    if adversarial:
        model.begin_adversarial()
    return model


def with_gan(**keys):
    """Returns changes to the group `gan`, with dropout turned off."""
    return {**STILL, "gan": keys}


@functools.cache
def batch(counts=(2, 1, 2)):
    """Returns three sentences of words 7 to 9; only the first `counts` blanks of each exist."""
    arguments = (
        [[7, 8, 9, 7], [8, 9, 7, 0], [9, 9, 8, 0]],
        [4, 3, 3],
        [[0, 2], [1, 2], [1, 1]],
        [[1, 4], [2, 3], [1, 3]],
    )
    template_format = templates.TemplateFormat()
    return templates.build_examples(
        *(tf.constant(x, tf.int32) for x in (*arguments, counts)), template_format
    )._asdict()


def values(variables):
    return [variable.numpy().copy() for variable in variables]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def networks(model):
    return values(model.generator_variables), values(model.discriminator_variables)


def after_step(model, examples=None):
    """Returns generator weights, discriminator weights and logs after one step."""
    logs = model.train_step((examples or batch(),))
    return *networks(model), {name: float(value) for name, value in logs.items()}


def fitted(model, steps, examples=None):
    """Returns the logs of one epoch of `steps` steps on one batch."""
    examples = examples or batch()
    return model.fit(tf.data.Dataset.from_tensors(examples).repeat(steps), verbose=0, shuffle=False).history


def accuracy(model, draws=40):
    """Returns the discriminator's accuracy on truth, soft and hard infills of the batch, dropout off."""
    graph = accuracy_graph(model)
    found = [graph(tf.constant([0, k])) for k in range(draws)]
    return dict(zip(("truth", "soft", "hard"), np.mean(found, axis=0), strict=True))


@functools.lru_cache(maxsize=1)
def accuracy_graph(model):
    """Returns the graph of one draw of `accuracy`, which reads the weights anew at every call."""
    return tf.function(lambda seed: [tf.reduce_mean(x) for x in model.diagnostics(batch(), seed)], autograph=False)
