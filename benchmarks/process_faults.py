"""The faults of processes of `benchmarks.faults`: kills, signals, a full disk, folders that cannot be written.

Commands run in processes forked from one that has imported TensorFlow, so that an attempt takes seconds.
"""

import contextlib
import dataclasses
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import h5py

from benchmarks.damage import Tally
from text_infilling.runs import layout
from text_infilling.utils.command import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_TERMINATED

LONGEST = 600.0  # seconds that a command may take
EXIT_CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: EXIT_TERMINATED, signal.SIGINT: EXIT_INTERRUPTED}
NOBODY = 65534  # a user without rights: root may write everywhere
SIZES = {
    "self_attention": ["decoder.dim=8", "decoder.num_blocks=1", "decoder.num_heads=2", "decoder.ffn_dim=8"],
    "gan": [
        "embedder.dim=8", "encoder.units=8", "decoder.units=8", "gan.discriminator_dim=4", "classifier.filters=2",
        "gan.adversarial_epochs=1",
    ],
}  # fmt: skip
EPOCHS = 3
TEXTS = [f"gardener {i} waters the {what} in the evening ." for i in range(80) for what in ("roses", "beans", "lawn")]


@dataclasses.dataclass(frozen=True)
class Command:
    """A command that trains.

    Attributes:
        name: `fit`, or the model of a cell.
        folder: folder of its inputs, which must exist.
    """

    name: str
    folder: Path

    def arguments(self, out: Path) -> list[str]:
        """Returns the command line; the run is written to `out`."""
        model = "self_attention" if self.name == "fit" else self.name
        settings = [*SIZES[model], f"train.epochs={EPOCHS}", "train.batch_size=10", "train.resume_seconds=0.2"]
        flags = [f"--set={setting}" for setting in [*settings, "train.patience=0"]]
        if self.name == "fit":
            return ["fit", str(self.folder / "texts.txt"), f"--out={out}", "--from_scratch", *flags]
        return [
            "yelp", "--preset=smoke", "--corpus=yelp", f"--data_dir={self.folder}", f"--workdir={out}",
            f"--models={model}", "--set=train.min_count=1", *flags,
        ]  # fmt: skip

    def result(self, out: Path) -> dict:
        """Returns what a finished run in `out` computed: weights, metrics and predictions."""
        (metrics,) = out.glob(f"**/{layout.METRICS}")
        found = {name: (metrics.parent / name).read_bytes() for name in (layout.PREDICTIONS,)}
        timing = ("seconds", "sentences_per_s", "per_s")
        found["metrics"] = {
            name: value for name, value in json.loads(metrics.read_text("utf-8")).items() if not name.endswith(timing)
        }
        with h5py.File(metrics.parent / layout.WEIGHTS) as file:
            file.visititems(lambda name, x: found.update({name: x[()].tobytes()}) if hasattr(x, "dtype") else None)
        return found


class Running:
    """A command in its own process.

    Args:
        arguments: the command line.
        most_bytes: size that no file may exceed, as on a full disk; None: no limit.
        user: the process runs as this user; None: the current one.
    """

    def __init__(self, arguments: list[str], most_bytes: int | None = None, user: int | None = None):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.process_imports"])
        self._output, writing = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(arguments, writing, most_bytes, user))
        self._process.start()
        writing.close()
        self.began = time.monotonic()

    def stop(self, number: int) -> None:
        """Sends a signal, unless the command has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def wait_for_resume_point(self, out: Path) -> float:
        """Waits for the first resume point in `out`, or the end; returns the seconds since the beginning."""
        while self._process.is_alive() and not any(out.glob(f"**/{layout.RESUME_POINT}")):
            time.sleep(0.01)
        return time.monotonic() - self.began

    def wait(self) -> tuple[int, str, float]:
        """Returns exit code, output and seconds since the beginning; kills a command that takes too long."""
        with open(os.dup(self._output.fileno()), "rb") as output:
            timer = multiprocessing.connection.wait([self._process.sentinel], LONGEST)
            if not timer:
                self._process.kill()
            text = output.read().decode("utf-8", "replace")
        self._process.join()
        return self._process.exitcode, text, time.monotonic() - self.began


def _run(arguments: list[str], output, most_bytes: int | None, user: int | None) -> None:
    """Runs a command in this process, with its output in a pipe."""
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    if user is not None:
        os.setuid(user)
    sys.argv = arguments
    if arguments[0] == "fit":
        from text_infilling.app import cli

        cli.main(arguments)
    else:
        from experiments import yelp
        from experiments.cells import flags

        flags.main(yelp.run, yelp.define_flags, "")


def campaign(folder: Path, kills: int, seed: int) -> Iterator[dict]:
    """Yields a row for each fault of each command.

    Args:
        folder: an empty folder to work in.
        kills: kills of each command; each is also interrupted a quarter as often.
        seed: random seed of the moments.
    """
    write_texts(folder)
    for name in ("fit", "self_attention", "gan"):
        command = Command(name, folder)
        out = folder / f"{name}_undisturbed"
        running = Running(command.arguments(out))
        before = running.wait_for_resume_point(out)
        code, text, seconds = running.wait()
        if code:
            raise OSError(f"the undisturbed {name} failed: {text[-1000:]}")
        rng, expected = random.Random(f"{seed} {name}"), command.result(out)
        for number in EXIT_CODES:
            count = kills if number == signal.SIGKILL else max(1, kills // 4)
            yield stopped(command, expected, number, count, before, seconds, rng).row(signal.Signals(number).name)
        if name != "gan":
            yield full_disk(command, expected, out, kills).row("full disk")
    yield unwritable(Command("fit", folder)).row("folder not writable")
    yield two_processes(Command("fit", folder)).row("two processes")


def write_texts(folder: Path) -> None:
    """Writes the texts that the commands learn from."""
    (folder / "yelp").mkdir()
    for name, part in (("train", TEXTS[:200]), ("valid", TEXTS[200:220]), ("test", TEXTS[220:])):
        (folder / "yelp" / f"{name}.txt").write_text("".join(f"{text}\n" for text in part), "utf-8")
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    os.chmod(folder, 0o755)


def stopped(
    command: Command, expected: dict, number: int, count: int, before: float, seconds: float, rng: random.Random
) -> Tally:
    """Stops a command at random moments, and then lets the same command resume; the result must be `expected`.

    Three of four moments are after the first resume point, when the command writes most.

    Args:
        command: the command.
        expected: the result of an undisturbed run.
        number: the signal.
        count: the number of moments.
        before: seconds of the undisturbed run until its first resume point.
        seconds: seconds of the undisturbed run.
        rng: source of the moments.
    """
    tally = Tally(command.name)
    for _ in range(count):
        with tempfile.TemporaryDirectory(dir=command.folder) as folder:
            out = Path(folder) / "out"
            running = Running(command.arguments(out))
            if rng.random() < 0.75:
                running.wait_for_resume_point(out)
                time.sleep(rng.uniform(0, seconds - before))
            else:
                time.sleep(rng.uniform(0, before))
            running.stop(number)
            code, text, stopped_after = running.wait()
            fault = f"{signal.Signals(number).name} after {stopped_after:.1f} s"
            if code not in (0, EXIT_CODES[number]) or "Traceback" in text:
                tally.fail(f"{fault}: exit code {code}: {text[-1000:]}")
                continue
            _complete(tally, command, out, expected, fault)
    return tally


def full_disk(command: Command, expected: dict, finished: Path, count: int) -> Tally:
    """Limits the size of files to just below that of each file of a finished run; then completes the run."""
    tally = Tally(command.name)
    sizes = sorted(
        {path.stat().st_size for path in finished.glob("**/*") if path.is_file() and path.stat().st_size > 1}
    )
    for size in [1, *sizes][:: max(1, (len(sizes) + 1) // max(3, count))]:
        with tempfile.TemporaryDirectory(dir=command.folder) as folder:
            out = Path(folder) / "out"
            code, text, _ = Running(command.arguments(out), most_bytes=size - 1).wait()
            if code != EXIT_FAILED or "Traceback" in text or "error: " not in text.splitlines()[-1]:
                if code or "Traceback" in text:  # 0: larger files were temporary
                    tally.fail(f"at most {size - 1} bytes per file: exit code {code}: {text[-1000:]}")
                    continue
            _complete(tally, command, out, expected, f"at most {size - 1} bytes per file")
    return tally


def unwritable(command: Command) -> Tally:
    """Starts a command whose folder cannot be written."""
    tally = Tally(command.name)
    user = NOBODY if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(dir=command.folder) as folder:
        os.chmod(folder, 0o555)
        for out in (Path(folder), Path(folder) / "out", Path("/proc/out"), command.folder / "texts.txt"):
            code, text, _ = Running(command.arguments(out), user=user).wait()
            if code == EXIT_FAILED and text.count("\n") == 1 and str(out) in text:
                tally.refused += 1
            else:
                tally.fail(f"{out}: exit code {code}: {text[-1000:]}")
    return tally


def two_processes(command: Command) -> Tally:
    """Starts a command twice on one folder: one must be refused, the other complete."""
    tally = Tally(command.name)
    with tempfile.TemporaryDirectory(dir=command.folder) as folder:
        both = [Running(command.arguments(Path(folder) / "out")) for _ in range(2)]
        for code, text, seconds in [running.wait() for running in both]:
            tally.slowest = max(tally.slowest, seconds)
            if code == 0:
                tally.accepted += 1
            elif code == EXIT_FAILED and "in use by another process" in text:
                tally.refused += 1
            else:
                tally.fail(f"exit code {code}: {text[-1000:]}")
    if (tally.accepted, tally.refused) != (1, 1):
        tally.fail(f"{tally.accepted} of two processes completed")
    return tally


def _complete(tally: Tally, command: Command, out: Path, expected: dict, fault: str) -> None:
    """Runs a command to its end, and compares its result."""
    finished = list(out.glob(f"**/{layout.METRICS}")) if out.exists() else []
    code, text, seconds = (0, "", 0.0) if finished else Running(command.arguments(out)).wait()
    tally.slowest = max(tally.slowest, seconds)
    if code or "Traceback" in text:
        tally.fail(f"{fault}: the same command then has exit code {code}: {text[-1000:]}")
        return
    found = command.result(out)
    if different := [name for name in expected | found if expected.get(name) != found.get(name)]:
        tally.fail(f"{fault}: the result differs in {', '.join(different)}")
        return
    tally.accepted += 1
