"""Plots of results with matplotlib (extra `report`), as PNG files and in TensorBoard.

Each plot is a function of numbers and returns a figure, or None if it has nothing to show. Colours are those of Okabe
and Ito, which colour-blind readers can tell apart; models also differ in their markers.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.cells.setting import TASKS, Setting
from experiments.curves import Point
from experiments.effects import Effect
from experiments.tables import paper
from text_infilling.utils import files

# Colour and marker of each model.
STYLES = {
    "template": ("#767676", "s"),
    "seq2seq": ("#D55E00", "^"),
    "gan": ("#009E73", "D"),
    "self_attention": ("#0072B2", "o"),
}
MODELS = paper.MODELS[1:]  # the models that are trained
DPI = 160
LEAST = 10

EffectOf = Callable[[Setting, str, str], Effect | None]  # our number for a setting, model and metric


def learning(
    setting: Setting, ours: Mapping[str, Sequence[Point]], authors: Mapping[str, Sequence[Sequence[Point]]]
) -> Figure | None:
    """Returns BLEU and perplexity by training sentences seen.

    Args:
        setting: the setting of the curves.
        ours: our validation scores, by model.
        authors: the authors' test scores, by model, each in one or more parts.
    """
    if not any(ours.values()) and not any(authors.values()):
        return None
    figure, panels = _figure(f"Learning curves: {named(setting)}", 1, 2)
    for model in MODELS:
        colour, marker = STYLES[model]
        parts = [(points, "--", "", 1.0, "authors, test") for points in authors.get(model, ())]
        parts.append((ours.get(model, ()), "-", marker, 2.0, "ours, validation"))
        labelled = set()
        for points, line, mark, width, whose in parts:
            label = None if whose in labelled or not points else f"{paper.TITLES[model]}, {whose}"
            labelled.add(whose)
            for panel, name in zip(panels, ("bleu", "ppl"), strict=True):
                shown = [
                    (p.sentences, getattr(p, name)) for p in points if p.sentences and getattr(p, name) is not None
                ]
                panel.plot([x for x, _ in shown], [y for _, y in shown], line, marker=mark, color=colour,
                           linewidth=width, markersize=5, label=label)  # fmt: skip
    for panel, title in zip(panels, ("BLEU (bleu_paper)", "Perplexity (ppl_paper)"), strict=True):
        panel.set(xscale="log", xlabel="training sentences seen", ylabel=title)
    panels[1].set_yscale("log")
    _plain_ticks(panels[1])
    _legend(figure, panels)
    return figure


def difficulty(settings: Sequence[Setting], of: EffectOf) -> Figure | None:
    """Returns BLEU and perplexity by mask rate, for each number of blanks; the paper's numbers are dashed.

    Args:
        settings: settings with a mask rate.
        of: our numbers with their intervals.
    """
    settings = [one for one in settings if one.mask_rate is not None]
    blanks = sorted({one.blanks for one in settings})
    if not any(of(one, model, "bleu_paper") for one in settings for model in MODELS):
        return None
    figure, panels = _figure("BLEU and perplexity by mask rate and blanks", 2, len(blanks))
    for row, (key, printed, title) in enumerate(
        [("bleu_paper", "bleu", "BLEU (bleu_paper)"), ("ppl_paper", "ppl", "Perplexity (ppl_paper)")]
    ):
        for column, count in enumerate(blanks):
            panel, shown = panels[row * len(blanks) + column], [one for one in settings if one.blanks == count]
            for shift, model in zip((-0.6, 0, 0.6), MODELS, strict=True):
                colour, marker = STYLES[model]
                papers = [(one.mask_rate, paper.printed(one, model, printed)) for one in shown]
                papers = [(100 * rate + shift, float(number)) for rate, number in papers if number]
                panel.plot([x for x, _ in papers], [y for _, y in papers], "--", marker=marker, color=colour,
                           markerfacecolor="white", linewidth=1, label=f"{paper.TITLES[model]}, paper")  # fmt: skip
                ours = [(100 * one.mask_rate + shift, found) for one in shown if (found := of(one, model, key))]
                if ours:
                    panel.errorbar(
                        [x for x, _ in ours], [found.value for _, found in ours], yerr=_bars([f for _, f in ours]),
                        fmt=f"-{marker}", color=colour, linewidth=2, capsize=3, label=f"{paper.TITLES[model]}, ours",
                    )  # fmt: skip
            panel.set(
                title=f"{count} blank{'s' if count > 1 else ''}", xlabel="mask rate in %", ylabel=title,
                xticks=sorted({100 * one.mask_rate for one in shown}),
            )  # fmt: skip
            if key == "ppl_paper":
                panel.set_yscale("log")
                _plain_ticks(panel)
    _legend(figure, panels)
    return figure


def against_template(
    settings: Sequence[Setting], of: EffectOf, template_of: Callable[[Setting], Effect | None]
) -> Figure | None:
    """Returns bars of `bleu` of our models beside that of the unfilled template, and the authors' outputs as lines.

    Args:
        settings: the settings, left to right.
        of: our numbers with their intervals.
        template_of: returns our `bleu` of the template in a setting, or None.
    """
    settings = [one for one in settings if any(of(one, model, "bleu") for model in MODELS)]
    if not settings:
        return None
    figure, (panel,) = _figure("bleu of the models against the unfilled template", 1, 1)
    for shift, model in enumerate(paper.MODELS):
        effects = [template_of(one) if model == "template" else of(one, model, "bleu") for one in settings]
        places = [i + 0.2 * (shift - 1.5) for i, found in enumerate(effects) if found]
        shown = [found for found in effects if found]
        panel.bar(places, [f.value for f in shown], 0.18, color=STYLES[model][0], yerr=_bars(shown), capsize=3,
                  label=paper.TITLES[model])  # fmt: skip
        theirs = [(i, paper.printed(one, model, "outputs_bleu_clean")) for i, one in enumerate(settings)]
        places = [i + 0.2 * (shift - 1.5) for i, number in theirs if number]
        panel.hlines([float(number) for _, number in theirs if number], [x - 0.09 for x in places],
                     [x + 0.09 for x in places], color="black", linewidth=1.5,
                     label="authors' outputs" if shift == 0 else None)  # fmt: skip
    panel.set_xticks(range(len(settings)), [named(one).replace(", ", "\n") for one in settings])
    panel.set(ylabel="bleu")
    panel.xaxis.grid(False)
    _legend(figure, [panel])
    return figure


def infill_lengths(of: Mapping[Setting, Mapping[str, Sequence[tuple[int, int]]]]) -> Figure | None:
    """Returns the mean words of infills by words of the true answer, one panel per setting.

    A length that fewer than `LEAST` true answers have is left out.

    Args:
        of: words of the true answer and of the infill for each blank, by setting and model.
    """
    of = {setting: models for setting, models in of.items() if any(models.values())}
    if not of:
        return None
    columns = min(3, len(of))
    figure, panels = _figure("Words per infill by words of the true answer", -(-len(of) // columns), columns)
    for panel, (setting, models) in zip(panels, of.items(), strict=False):
        longest = 0
        for model in MODELS:
            by_length: dict[int, list[int]] = {}
            for true, ours in models.get(model, ()):
                by_length.setdefault(true, []).append(ours)
            shown = {true: lengths for true, lengths in sorted(by_length.items()) if len(lengths) >= LEAST}
            colour, marker = STYLES[model]
            panel.plot(list(shown), [sum(x) / len(x) for x in shown.values()], marker=marker, color=colour,
                       label=paper.TITLES[model])  # fmt: skip
            longest = max([longest, *shown])
        panel.plot([0, longest], [0, longest], ":", color="black", label="equal length")
        panel.set(title=named(setting), xlabel="words of the true answer", ylabel="mean words per infill")
        panel.xaxis.get_major_locator().set_params(integer=True)
    for panel in panels[len(of) :]:
        panel.set_axis_off()
    _legend(figure, panels[: len(of)])
    return figure


def attention(title: str, columns: Sequence[str], rows: Sequence[str], weights: Sequence[Sequence[float]]) -> Figure:
    """Returns the attention of the tokens of an infill over a template.

    Args:
        title: the blank.
        columns: tokens of the template.
        rows: tokens of the infill.
        weights: `[rows, columns]`, each row sums to 1.
    """
    figure, (panel,) = _figure(title, 1, 1, height=1.6 + 0.35 * len(rows))
    image = panel.imshow(weights, cmap="Blues", vmin=0, aspect="auto")
    panel.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
    panel.set_yticks(range(len(rows)), rows)
    panel.set(xlabel="token of the template", ylabel="token of the infill")
    panel.grid(False)
    figure.colorbar(image, label="attention weight")
    return figure


def named(setting: Setting) -> str:
    """Returns the title of a setting with its task, e.g. `Yelp, 40%, 2 blanks`, and whether its texts are made up."""
    title = setting.title if setting.mask_rate is None else f"{TASKS[setting.task]}, {setting.title}"
    return f"{title}, synthetic" if setting.corpus.endswith("synthetic") else title


def png(figure: Figure) -> bytes:
    """Returns a figure as a PNG file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, facecolor="white")
    return out.getvalue()


def write(figures: Mapping[str, Figure], folder: Path) -> dict[str, bytes]:
    """Writes figures by name to `folder/NAME.png` and to TensorBoard events in the folder; returns the PNG files.

    Raises:
        OSError: the folder cannot be written.
    """
    import tensorflow as tf  # takes seconds, and only TensorBoard needs it

    made = {name: png(figure) for name, figure in figures.items()}
    for old in folder.glob("events.out.tfevents.*"):
        files.remove(old)
    with tf.summary.create_file_writer(str(folder)).as_default():
        for name, content in made.items():
            (folder / f"{name}.png").write_bytes(content)
            tf.summary.image(name, tf.io.decode_png(content, channels=3)[None], step=0)
    return made


def _figure(title: str, rows: int, columns: int, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    """Returns an empty figure with its panels, row by row."""
    figure = Figure(figsize=(max(4 * columns, 7), rows * height + 0.8), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in panels:
        panel.grid(True, color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _bars(effects: Sequence[Effect]) -> list[list[float]]:
    """Returns the lengths of error bars below and above; 0 for a number without an interval."""
    below = [0.0 if one.low is None else one.value - one.low for one in effects]
    return [below, [0.0 if one.high is None else one.high - one.value for one in effects]]


def _plain_ticks(panel: Axes) -> None:
    """Labels a logarithmic axis with plain numbers."""
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter(lambda x, _: f"{x:g}" if str(x)[0] in "235" else "")


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Adds one legend of all panels below them."""
    entries: dict[str, object] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
