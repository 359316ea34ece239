"""Shared test setup: quiet TensorFlow, reproducible hypothesis, and fixtures."""

import os
import shutil
import signal
from pathlib import Path

# A background process ignores SIGINT, and so would the commands that tests start and interrupt with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Must be set before TensorFlow is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import hypothesis
import pytest

# No deadline: the first example of a test traces a graph. Derandomized: a failing test fails again on the next run.
hypothesis.settings.register_profile("text_infilling", deadline=None, derandomize=True)
hypothesis.settings.load_profile("text_infilling")


# The files that take longest run first, longest to shortest, so that all test processes end at about the same time.
SLOW = (
    "infiller_limits", "gan_learning", "resume", "models", "fitting", "base_model", "training", "startup", "export",
    "gan", "bleu", "run_checks", "base_fit", "infiller", "infiller_input", "layers", "public_api", "benchmarks", "tune",
    "replay", "run_all", "samples", "evaluation", "graph_tokenizer", "graph_detokenizer", "constrained", "templates",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    order = [f"test_{name}" for name in SLOW]
    items.sort(key=lambda item: order.index(item.module.__name__) if item.module.__name__ in order else len(order))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the project, or `TEXT_INFILLING_SHARED`; tests that need it are skipped without it."""
    given = os.environ.get("TEXT_INFILLING_SHARED")
    if given and not Path(given).is_dir():
        pytest.fail(f"TEXT_INFILLING_SHARED is not a folder: {given}")
    path = Path(given) if given else Path(__file__).resolve().parents[1].parent / "shared"
    if not path.is_dir():
        pytest.skip("needs ../shared (the project's reference data), which is missing")
    return path


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium; tests that need it are skipped without it."""
    # Searched when the tests run, not at collection: `.ci/run` may still be installing it then.
    found = next(filter(None, map(shutil.which, ["chromium", "google-chrome"])), None)
    return found or pytest.skip("needs Chromium: apt-get install chromium")


@pytest.fixture(scope="session", autouse=True)
def no_base(tmp_path_factory):
    """Hides the base model of the package: tests get the same results with and without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("text_infilling.runs.run_folder.BASE_MODEL", tmp_path_factory.getbasetemp() / "no base model")
        yield


@pytest.fixture(scope="session")
def infiller_run(tmp_path_factory) -> Path:
    """A run folder that many tests share and must not change."""
    from infilling_runs import write_run

    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def infiller(infiller_run):
    """The infiller loaded from `infiller_run`."""
    from text_infilling.inference.infiller import Infiller

    return Infiller.load(infiller_run)
