"""Names of results: a setting is what the cells of one table row share; a cell adds the model and the seed."""

import dataclasses
from pathlib import Path

# The tasks, with their names in the tables.
TASKS = {"yelp": "Yelp", "grimm": "Grimm's tales", "nba": "NBA reports", "prepositions": "Prepositions"}

# The GAN without its adversarial loss, which is seq2seq trained as long: a control, not one of the paper's models.
CONTROL = "gan_weight0"
CONTROL_ASSIGNMENT = "gan.weight=0.0"


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the cells of one table row share.

    >>> setting = Setting("yelp", "fixed", 0.4, 2, "paper", "laptop")
    >>> setting.title
    '40%, 2 blanks'
    >>> setting.blanks_name
    'fixed.rate0.4.blanks2'

    Attributes:
        corpus: name of the corpus, e.g. `yelp`.
        masking: `fixed` or `random`, or the rule that placed the blanks in the corpus, e.g. `pairs`.
        mask_rate: fraction of tokens blanked, in (0, 1); None if the corpus comes with blanks.
        blanks: blanks per sentence.
        protocol, preset: select the hyperparameters before any overrides.
    """

    corpus: str
    masking: str
    mask_rate: float | None
    blanks: int
    protocol: str
    preset: str

    @property
    def task(self) -> str:
        """The task that the corpus belongs to, a key of `TASKS`; the corpus's own name for other corpora."""
        return task_of(self.corpus)

    @property
    def name(self) -> str:
        """The text of a table's first column: the mask rate, or the task if the corpus comes with blanks."""
        return TASKS[self.task] if self.mask_rate is None else percent(self.mask_rate)

    @property
    def title(self) -> str:
        """The name with the number of blanks, e.g. `40%, 2 blanks`."""
        return f"{self.name}, {self.blanks} blank{'s' if self.blanks > 1 else ''}"

    @property
    def blanks_name(self) -> str:
        """The part of a folder's name that describes the blanks, e.g. `fixed.rate0.4.blanks2`; `:` becomes `-`."""
        rate = "" if self.mask_rate is None else f".rate{self.mask_rate!r}"
        return f"{self.masking.replace(':', '-')}{rate}.blanks{self.blanks}"

    def of_the_same_kind(self, row: "Setting") -> "Setting":
        """Returns the setting of the paper's `row` with this setting's kind of corpus, masking, protocol and preset.

        >>> built = Setting("grimm_built", "word_classes", None, 3, "paper", "laptop")
        >>> built.of_the_same_kind(Setting("nba", "pairs", None, 3, "paper", "full"))
        Setting(corpus='nba_built', masking='word_classes', mask_rate=None, blanks=3, protocol='paper', preset='laptop')
        """
        corpus = self.corpus.replace(self.task, row.task, 1)
        return dataclasses.replace(self, corpus=corpus, mask_rate=row.mask_rate, blanks=row.blanks)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One entry of a table; cells that differ in any attribute have different folders.

    Attributes:
        setting: the table row.
        model: the name of a model, `CONTROL`, or `template` (no model: the unfilled template is scored).
        seed: seed of weights, batches and dropout.
    """

    setting: Setting
    model: str
    seed: int

    def folder(self, workdir: str | Path) -> Path:
        """Returns the cell's folder, e.g. `runs/yelp/yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1`."""
        one = self.setting
        name = f"{one.corpus}.{one.blanks_name}.{self.model}.{one.protocol}.{one.preset}.seed{self.seed}"
        return Path(workdir) / one.corpus / name

    @property
    def network(self) -> str:
        """The name of the network that is trained: `gan` for `CONTROL`, otherwise that of the model."""
        return network_of(self.model)

    def as_dict(self) -> dict[str, str | float | int | None]:
        """Returns all attributes, those of the setting included, in a flat dict as stored in config.json."""
        return {**dataclasses.asdict(self.setting), "model": self.model, "seed": self.seed}

    @classmethod
    def from_dict(cls, stored: dict) -> "Cell":
        """Returns the cell of which `as_dict` returned `stored`."""
        setting = Setting(**{key: value for key, value in stored.items() if key not in ("model", "seed")})
        return cls(setting, stored["model"], stored["seed"])


# The keys of `Cell.as_dict`.
KEYS = (*(field.name for field in dataclasses.fields(Setting)), "model", "seed")


def network_of(model: str) -> str:
    """Returns the network of a cell's model, see `Cell.network`."""
    return "gan" if model == CONTROL else model


def task_of(corpus: str) -> str:
    """Returns the task that a corpus belongs to, e.g. `grimm` for `grimm_built`."""
    return "yelp" if corpus == "synthetic" else corpus.partition("_")[0]


def percent(mask_rate: float) -> str:
    """Returns a mask rate as text, e.g. `30%`."""
    return f"{100 * mask_rate:.6g}%"
