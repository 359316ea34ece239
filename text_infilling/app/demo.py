"""The model of `--demo`: small, and trained on first use on made-up sentences."""

import hashlib
import json
from functools import partial
from pathlib import Path

from text_infilling.runs.layout import METRICS
from text_infilling.utils import files
from text_infilling.utils.command import note

SETTINGS = (  # no regularization: one minute of training does not overfit
    "train.epochs=1", "train.batch_size=12", "schedule.warmup_steps=50", "schedule.peak=3e-3",
    "loss.label_smoothing=0.0", "decoder.embedding_dropout=0.0", "decoder.attention_dropout=0.0",
    "decoder.residual_dropout=0.0",
)  # fmt: skip


def demo_run() -> Path:
    """Returns the run folder of the demo; trains it on first use, or waits while another process trains it."""
    # Imported here, because `fill --run` must not wait for them.
    from text_infilling.app import demo_sentences, fitting
    from text_infilling.corpora.cache import cache_folder
    from text_infilling.corpora.synthetic.grammar import grammar_file

    config = fitting.FitConfig(preset="smoke", mask_rate=0.5, blanks=3, assignments=SETTINGS)
    # Other sentences or settings get another folder. Hashes their sources, which is faster than making the sentences.
    sources = [Path(demo_sentences.__file__), *(grammar_file(name) for name in ("remarks", "reviews"))]
    inputs = b"".join(map(Path.read_bytes, sources)) + json.dumps(config.hparams()).encode()
    folder = cache_folder() / f"demo-{hashlib.sha256(inputs).hexdigest()[:8]}"
    if not (folder / METRICS).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        waiting = partial(note, f"another process is training the demo model in {folder}: waiting until it is done")
        with files.held(folder.with_suffix(".lock"), waiting):
            if not (folder / METRICS).exists():
                note(f"training the demo model once, which takes about a minute; it is kept in {folder}")
                source = folder.with_suffix(".txt")
                files.write_text(source, "".join(f"{sentence}\n" for sentence in demo_sentences.sentences()))
                fitting.fit(source, folder, config, say=note)  # stdout is for the results
    return folder
