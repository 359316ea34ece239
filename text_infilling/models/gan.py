"""The paper's GAN-based model."""

import functools

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.defaults import defaults, model_keys
from text_infilling.decoding.sampling import gumbel_softmax
from text_infilling.layers.conv1d_classifier import Conv1DClassifier
from text_infilling.layers.word_embedder import WordEmbedder
from text_infilling.losses import discriminator_loss, generator_loss, reinforce_loss
from text_infilling.models.adversarial_watch import AdversarialWatch
from text_infilling.models.infilling_model import Examples
from text_infilling.models.phase import Phase, Span
from text_infilling.models.seq2seq import Seq2SeqModel
from text_infilling.vocabulary import EOB_ID


@keras.saving.register_keras_serializable("text_infilling")
class GANModel(Seq2SeqModel):
    """Seq2seq generator with a discriminator that tells infills from true answers (paper, appendix B.1).

    Pre-training trains the generator as seq2seq, and the discriminator only if `gan.discriminator_start` says so. After
    `begin_adversarial` every step samples infills; the discriminator learns to tell them from the true answers, and the
    generator minimizes its cross entropy plus `gan.weight` times its adversarial loss (`losses.generator_loss`).
    `gan.estimator` determines how the gradient of that loss reaches the generator; with "straight_through" and
    "reinforce" the discriminator sees truth and infills as words, so they differ in content only. With `gan.weight=0`
    the generator's steps are bitwise those of seq2seq. Each network has its own optimizer, and neither loss updates the
    other network. The discriminator sees an infill without its template, including `<EOB>`. Scoring and decoding do not
    use it.
    Arguments and results: see `InfillingModel`.
    """

    OPTIMIZERS = ("optimizer", "discriminator_optimizer")
    DIAGNOSTICS = ("d_accuracy_truth", "d_accuracy_soft", "d_accuracy_hard")
    BASELINE_MOMENTUM = 0.9  # of the moving average of rewards, the baseline of "reinforce"

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
        self._means = {name: keras.metrics.Mean(name) for name in ("d_loss", "g_loss")}
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
            callbacks=lambda span, log: [AdversarialWatch(span, log)],
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
        # Each estimator: passes of the generator at answers and templates, each forward and backward, besides the cross
        # entropy (sampling alone is a third of a pass); embeddings of soft ids by the generator and the discriminator.
        passes, by_generator, by_discriminator = {
            "soft": (1, 1, 2),
            "straight_through": (1, 1, 1),
            "reinforce": (4 / 3, 1 / 3, 0),
        }[gan["estimator"]]
        soft = vocabulary_size * (
            by_generator * hparams["embedder"]["dim"] + by_discriminator * gan["discriminator_dim"]
        )
        # The classifier runs three times.
        return round((1 + passes) * answer + soft + 3 * convolutions), round((1 + passes) * template)

    def build(self, input_shape: object = None) -> None:
        super().build()
        self.discriminator_embedder.build()
        self.classifier.build((None, None, self.hparams["gan"]["discriminator_dim"]))
        self.temperature = self.add_weight(name="temperature", shape=(), initializer="ones", trainable=False)
        self.baseline = self.add_weight(name="baseline", shape=(), initializer="zeros", trainable=False)

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

    def set_temperature(self, epoch: int, step: int, span: Span) -> None:
        """Sets the Gumbel-softmax temperature of a step of the adversarial phase.

        Args:
            epoch: of the phase, counted from 0.
            step: of the epoch, counted from 0.
            span: epochs and steps of the phase.
        """
        gan = self.hparams["gan"]
        start, floor = gan["temperature_start"], gan["temperature_floor"]
        if gan["temperature_decay"] == "epoch":
            self.temperature.assign(max(start * 0.5**epoch, floor))
        else:
            done = (epoch * span.steps + step) / max(span.epochs * span.steps - 1, 1)
            self.temperature.assign(max(start * (floor / start) ** done, floor))

    def train_step(self, data) -> dict[str, tf.Tensor]:
        examples, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        if not self.adversarial:
            logs = super().train_step(data)
            if self.hparams["gan"]["discriminator_start"] == "pretraining":
                rows = self._existing(examples)
                self._train_discriminator(rows, self._sample(rows, self._noise.next(), self._hard))
            return logs
        weight, generator = self.hparams["gan"]["weight"], self.generator_variables
        if weight:
            with tf.GradientTape() as tape:
                cross_entropy = self.compute_loss(examples)
                rows = self._existing(examples)
                infills = self._sample(rows, self._noise.next(), self._hard)
                g_losses, estimate = self._adversarial_losses(rows, infills)
                total = cross_entropy + weight * tf.reduce_mean(estimate)
            gradients = tape.gradient(total, [v.value for v in generator])
        else:  # a control: the generator's steps are exactly those of seq2seq
            super().train_step(data)
            rows = self._existing(examples)
            infills = self._sample(rows, self._noise.next(), self._hard)
            g_losses, _ = self._adversarial_losses(rows, infills)
        d_loss = self._train_discriminator(rows, infills)
        if weight:
            self.optimizer.apply(gradients, generator)
            self.loss_mean.update_state(cross_entropy, sample_weight=tf.shape(examples["answer_ids"])[0])
        self._means["d_loss"].update_state(d_loss)
        self._means["g_loss"].update_state(tf.reduce_mean(g_losses))
        self._temperature_shown.update_state(self.temperature)
        return self.get_metrics_result()

    def diagnostics(self, examples: Examples, seed: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns, for each existing blank, whether the discriminator is right on the truth, on a soft and on a hard
        infill: three tensors `[rows]` of 0 and 1. Dropout is off; the soft infill has the current temperature."""
        rows = self._existing(examples)
        soft, hard = (self._sample(rows, seed, hard=hard) for hard in (False, True))
        right = (
            self.discriminate(rows["answer_ids"][:, 1:], rows["answer_lengths"]) > 0,
            self.discriminate(soft.probabilities, soft.lengths) <= 0,
            self.discriminate(hard.ids, hard.lengths) <= 0,
        )
        return tuple(tf.cast(x, tf.float32) for x in right)

    def discriminate(self, ids: tf.Tensor, lengths: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns logits `[rows]`, positive for rows classified as truth, of ids `[rows, length]` or soft ids
        `[rows, length, vocab]`."""
        embedded = self.discriminator_embedder(ids)
        # Pads every row, so that the logits do not depend on how close a row's end is to the end of the batch.
        after = (max(self.hparams["classifier"]["kernel_sizes"]) + 1) // 2
        return self.classifier(ops.pad(embedded, [[0, 0], [0, after], [0, 0]]), lengths, training=training)

    @property
    def metrics(self) -> list[keras.Metric]:
        return [*super().metrics, *self._means.values(), self._temperature_shown]

    def get_metrics_result(self) -> dict[str, tf.Tensor]:
        results = super().get_metrics_result()
        return results if self.adversarial else {"loss": results["loss"]}

    @property
    def _objective(self):
        return self.hparams["gan"]["objective"]

    @property
    def _hard(self):
        return self.hparams["gan"]["estimator"] != "soft"

    def _existing(self, examples):
        """Returns the examples of all existing blanks, with the axes `batch` and `blanks` merged into one axis."""
        real = tf.where(tf.reshape(examples["answer_lengths"], [-1]) > 0)[:, 0]
        return {
            name: tf.gather(tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], axis=0)), real)
            for name, x in examples.items()
        }

    def _sample(self, rows, seed, hard):
        """Returns Gumbel-softmax infills.

        Infills are cut at the length of the longest answer in the batch: an infill without `<EOB>` by then is too long,
        and the discriminator can see that.
        """
        fields = ("template_ids", "template_segment_ids", "template_offset_ids", "template_lengths")
        state = {"segments": rows["answer_segment_ids"], "cache": self.encode(*(rows[name] for name in fields))}
        return gumbel_softmax(
            self.step,
            state,
            tf.shape(rows["answer_ids"])[0],
            tf.shape(rows["answer_ids"])[1] - 1,
            seed,
            self.temperature,
            forbid_special=self._objective == "standard",  # the authors' code allows them
            hard=hard,
        )

    def _adversarial_losses(self, rows, infills):
        """Returns the generator's adversarial losses `[rows]`, and losses `[rows]` whose gradient reaches it."""
        sampled = self.hparams["gan"]["estimator"] == "reinforce"
        ids = infills.ids if sampled else infills.probabilities
        logits = self.discriminate(ids, infills.lengths, training=self.hparams["gan"]["generator_dropout"])
        losses = generator_loss(logits, self._objective)
        if not sampled:
            return losses, losses
        estimate = reinforce_loss(self._log_probabilities(rows, infills), -losses, self.baseline)
        self.baseline.assign(
            self.BASELINE_MOMENTUM * self.baseline - (1 - self.BASELINE_MOMENTUM) * tf.reduce_mean(losses)
        )
        return losses, estimate

    def _log_probabilities(self, rows, infills):
        """Returns the log probabilities `[rows]` of sampled infills, teacher-forced, with dropout off."""
        first = EOB_ID if self._objective == "standard" else 0  # smallest id that can be sampled
        states = self.answer_states({**rows, "answer_ids": tf.concat([rows["answer_ids"][:, :1], infills.ids], axis=1)})
        where = tf.where(tf.sequence_mask(infills.lengths, tf.shape(infills.ids)[1]))
        logits = tf.cast(self.output(tf.gather_nd(states, where)), tf.float32)[:, first:]
        labels = tf.gather_nd(infills.ids, where) - first
        scores = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.scatter_nd(where[:, :1], scores, [tf.shape(infills.ids, out_type=tf.int64)[0]])

    def _train_discriminator(self, rows, infills):
        """Updates the discriminator and returns its loss before the update."""
        variables = self.discriminator_variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([v.value for v in variables])
            on_truth = self.discriminate(rows["answer_ids"][:, 1:], rows["answer_lengths"], training=True)
            ids = infills.ids if self._hard else tf.stop_gradient(infills.probabilities)
            on_infills = self.discriminate(ids, infills.lengths, training=True)
            loss = tf.reduce_mean(discriminator_loss(on_truth, on_infills, self._objective))
        self.discriminator_optimizer.apply(tape.gradient(loss, [v.value for v in variables]), variables)
        return loss
