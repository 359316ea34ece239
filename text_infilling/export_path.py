"""Checks of where an export is written, without TensorFlow."""

from pathlib import Path


def check_export_path(path: Path, kind: str, overwrite: bool) -> None:
    """Checks that an export can be written to `path`.

    Args:
        path: of the export.
        kind: "savedmodel" or "keras".
        overwrite: whether another export at `path` may be replaced.

    Raises:
        ValueError: `path` exists and may not be replaced; or a Keras file is not named `.keras`.
    """
    if kind == "keras" and path.suffix != ".keras":
        raise ValueError(f"a Keras file is named so: give --out FILE.keras. Received: {path}")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} is there already: give another --out, or --overwrite")
    if path.exists() and not _is_export(path):
        raise ValueError(f"{path} is no export, and --overwrite replaces nothing else: give another --out")


def _is_export(path):
    return (path / "saved_model.pb").is_file() or (path.suffix == ".keras" and path.is_file())
