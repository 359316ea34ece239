"""The paper's GAN-based model."""

import functools

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.defaults import defaults, model_keys
from text_infilling.decoding.sampling import gumbel_softmax
from text_infilling.layers.conv1d_classifier import Conv1DClassifier
from text_infilling.layers.word_embedder import WordEmbedder
from text_infilling.losses import discriminator_loss, generator_loss
from text_infilling.models.adversarial_watch import AdversarialWatch
from text_infilling.models.phase import Phase
from text_infilling.models.seq2seq import Seq2SeqModel


@keras.saving.register_keras_serializable("text_infilling")
class GANModel(Seq2SeqModel):
    """Seq2seq generator with a discriminator that tells infills from true answers (paper, appendix B.1).

    Pre-training trains the generator as seq2seq and leaves the discriminator unchanged. After `begin_adversarial` every
    step samples Gumbel-softmax infills; the discriminator learns to tell them from the true answers, and the generator
    minimizes its cross entropy plus `gan.weight` times its adversarial loss (`losses.generator_loss`). Each network has
    its own optimizer, and neither loss updates the other network. The discriminator sees an infill without its
    template, including `<EOB>`. Scoring and decoding do not use it.
    Arguments and results: see `InfillingModel`.
    """

    OPTIMIZERS = ("optimizer", "discriminator_optimizer")

    def __init__(self, vocabulary_size: int, hparams: dict | None = None, **kwargs):
        super().__init__(vocabulary_size, hparams, **kwargs)
        h, dtype = self.hparams, self.dtype_policy
        self.adversarial = False
        dim = {"dim": h["gan"]["discriminator_dim"]}
        self.discriminator_embedder = WordEmbedder(vocabulary_size, dim, dtype=dtype)
        self.classifier = Conv1DClassifier(h["classifier"], dtype=dtype)
        for layer in (self.discriminator_embedder, self.classifier):
            layer.trainable = False  # the generator's optimizer updates all trainable variables
        self._noise = keras.random.SeedGenerator()
        names = ("d_loss", "g_loss", "d_accuracy_truth", "d_accuracy_infills")
        self._means = {name: keras.metrics.Mean(name) for name in names}
        self._temperature_shown = keras.metrics.Mean("temperature")

    @classmethod
    def default_hparams(cls) -> dict:
        return defaults(model_keys("gan"))

    @classmethod
    def phases(cls, hparams: dict) -> tuple[Phase, ...]:
        adversarial = Phase(
            "adversarial training",
            functools.partial(cls.adversarial_epochs, hparams),
            cls.adversarial_multiply_adds,
            early_stopping=False,
            begin=cls.begin_adversarial,
            callbacks=lambda first_epoch, log: [AdversarialWatch(first_epoch, log)],
        )
        return (*super().phases(hparams), adversarial)

    @classmethod
    def adversarial_epochs(cls, hparams: dict, pretraining_epochs: int) -> int:
        """Returns the number of adversarial epochs after `pretraining_epochs` epochs."""
        return max(1, int(hparams["gan"]["adversarial_epochs"] * pretraining_epochs))

    @classmethod
    def adversarial_multiply_adds(cls, hparams: dict, vocabulary_size: int) -> tuple[int, int]:
        """Returns the same pair as `multiply_adds`, for a step of the adversarial phase."""
        answer, template = cls.multiply_adds(hparams, vocabulary_size)
        gan, classifier = hparams["gan"], hparams["classifier"]
        convolutions = sum(classifier["kernel_sizes"]) * classifier["filters"] * gan["discriminator_dim"]
        # The generator embeds soft ids once and the discriminator twice; the classifier runs three times.
        soft = vocabulary_size * (hparams["embedder"]["dim"] + 2 * gan["discriminator_dim"])
        return 2 * answer + soft + 3 * convolutions, 2 * template

    def build(self, input_shape: object = None) -> None:
        super().build()
        self.discriminator_embedder.build()
        self.classifier.build((None, None, self.hparams["gan"]["discriminator_dim"]))
        self.temperature = self.add_weight(name="temperature", shape=(), initializer="ones", trainable=False)

    def compile(self, *args, **kwargs) -> None:
        super().compile(*args, **kwargs)
        self.discriminator_optimizer = keras.optimizers.Adam(self.hparams["gan"]["discriminator_rate"])
        self.discriminator_optimizer.build(self.discriminator_variables)

    @property
    def discriminator_variables(self) -> list[keras.Variable]:
        return [*self.discriminator_embedder.weights, *self.classifier.weights]

    @property
    def generator_variables(self) -> list[keras.Variable]:
        return self.trainable_variables

    def begin_adversarial(self) -> None:
        """Switches all later training steps to adversarial training."""
        self.adversarial = True
        self.make_train_function(force=True)  # otherwise `fit` reuses the graph it has traced

    def set_adversarial_epoch(self, epoch: int) -> None:
        """Sets the Gumbel-softmax temperature of adversarial epoch `epoch`, counted from 0."""
        self.temperature.assign(max(0.5**epoch, self.hparams["gan"]["temperature_floor"]))

    def train_step(self, data) -> dict[str, tf.Tensor]:
        if not self.adversarial:
            return super().train_step(data)
        examples, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        generator, discriminator = self.generator_variables, self.discriminator_variables
        with tf.GradientTape() as tape:
            cross_entropy = self.compute_loss(examples)
            truth, infills, lengths = self._pairs(examples)
            g_loss = tf.reduce_mean(
                generator_loss(self.discriminate(infills.probabilities, infills.lengths), self._objective)
            )
            total = cross_entropy + self.hparams["gan"]["weight"] * g_loss
        gradients = tape.gradient(total, [v.value for v in generator])
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([v.value for v in discriminator])
            on_truth = self.discriminate(truth, lengths, training=True)
            on_infills = self.discriminate(tf.stop_gradient(infills.probabilities), infills.lengths, training=True)
            d_loss = tf.reduce_mean(discriminator_loss(on_truth, on_infills, self._objective))
        d_gradients = tape.gradient(d_loss, [v.value for v in discriminator])
        self.optimizer.apply(gradients, generator)
        self.discriminator_optimizer.apply(d_gradients, discriminator)

        values = (d_loss, g_loss, ops.mean(on_truth > 0), ops.mean(on_infills <= 0))
        for mean, value in zip(self._means.values(), values, strict=True):
            mean.update_state(value)
        self._temperature_shown.update_state(self.temperature)
        return self._with_loss(cross_entropy, examples)

    def discriminate(self, ids: tf.Tensor, lengths: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns logits `[rows]`, positive for rows classified as truth, of ids `[rows, length]` or soft ids
        `[rows, length, vocab]`."""
        embedded = self.discriminator_embedder(ids)
        # Pads every row, so that the logits do not depend on how close a row's end is to the end of the batch.
        behind = (max(self.hparams["classifier"]["kernel_sizes"]) + 1) // 2
        return self.classifier(ops.pad(embedded, [[0, 0], [0, behind], [0, 0]]), lengths, training=training)

    @property
    def metrics(self) -> list[keras.Metric]:
        return [*super().metrics, *self._means.values(), self._temperature_shown]

    def get_metrics_result(self) -> dict[str, tf.Tensor]:
        results = super().get_metrics_result()
        return results if self.adversarial else {"loss": results["loss"]}

    @property
    def _objective(self):
        return self.hparams["gan"]["objective"]

    def _pairs(self, examples):
        """Returns true answers and Gumbel-softmax infills of all existing blanks, and the lengths of the answers.

        Infills are cut at the length of the longest answer in the batch: an infill without `<EOB>` by then is too long,
        and the discriminator can see that.
        """
        width = tf.shape(examples["answer_ids"])[2] - 1
        real = tf.where(tf.reshape(examples["answer_lengths"], [-1]) > 0)[:, 0]
        flat = {
            name: tf.gather(tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0)), real)
            for name, x in examples.items()
        }
        fields = ("template_ids", "template_segment_ids", "template_offset_ids", "template_lengths")
        state = {
            "segments": flat["answer_segment_ids"],
            "cache": self.encode(*(flat[name] for name in fields)),
        }
        infills = gumbel_softmax(
            self.step,
            state,
            tf.shape(real)[0],
            width,
            self._noise.next(),
            self.temperature,
            forbid_special=self._objective == "standard",  # the authors' code allows them
        )
        return flat["answer_ids"][:, 1:], infills, flat["answer_lengths"]
