"""Checks of the output path of an export; needs no TensorFlow."""

from pathlib import Path


def check_export_path(path: Path, kind: str, overwrite: bool) -> None:
    """Checks that an export can be written to `path`.

    Args:
        path: output path of the export.
        kind: "savedmodel" or "keras".
        overwrite: whether another export at `path` may be replaced.

    Raises:
        ValueError: `path` exists and may not be replaced; or the name of a Keras file does not end in `.keras`.
    """
    if kind == "keras" and path.suffix != ".keras":
        raise ValueError(f"the name of a Keras file must end in .keras. Received: {path}")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} already exists: give another path, or set overwrite")
    if path.exists() and not _is_export(path):
        raise ValueError(f"{path} is not an export, and overwrite replaces only exports: give another path")


def _is_export(path):
    return (path / "saved_model.pb").is_file() or (path.suffix == ".keras" and path.is_file())
