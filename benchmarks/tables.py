"""Writes the tables of benchmarks into docs/benchmarks.md, between markers, from the records of `--out`.

Command:
    python -m benchmarks.pipeline --data_dir=DATA --out=results/benchmarks/pipeline.json
    python -m benchmarks.tables

Expected: the text between `<!-- benchmarks:NAME -->` and `<!-- /benchmarks:NAME -->` is replaced with the table of
results/benchmarks/NAME.json, its machine and its command.
Duration: under a second.
"""

import argparse
import re
from pathlib import Path
from typing import NoReturn

from benchmarks import common
from text_infilling.utils import files
from text_infilling.utils.command import run_command

PAIRS = re.compile(r"<!-- benchmarks:(\w+) -->\n.*?<!-- /benchmarks:\1 -->", re.DOTALL)
NUMBER = re.compile(r"[\d.]+( to [\d.]+)?")  # columns of these are aligned on the right


def block(record: dict) -> str:
    """Returns a record as a Markdown table, followed by its machine and its source.

    >>> print(block({"source": "made up", "columns": ["model", "ratio"], "rows": [{"model": "gan", "ratio": 0.5}]}))
    | model | ratio |
    | --- | ---: |
    | gan | 0.500 |
    <BLANKLINE>
    Source: made up.
    """
    columns = record["columns"]
    rows = [[common.as_text(row[column]) for column in columns] for row in record["rows"]]
    grid = [columns, ["---:" if NUMBER.fullmatch(text) else "---" for text in rows[0]], *rows]
    parts = ["\n".join(f"| {' | '.join(cells)} |" for cells in grid)]
    source = f"Source: {record['source']}"
    if "command" in record:
        source += f" `{record['command']}` on {record['date']}, commit {record['commit']}"
    if "machine" in record:
        machine = record["machine"]
        source += (
            f"; {', '.join([machine['processor'], *machine.get('instruction_sets', [])])}, {machine['cores']} cores; a "
            f"2048 x 2048 float32 matrix product ran at "
            f"{common.as_text(machine['gemm_gflops'])} GFLOP/s"
        )
    return "\n\n".join([*parts, f"{source}."])


def written(text: str, folder: Path) -> str:
    """Returns `text` with the content between each pair of markers replaced by its table.

    Args:
        text: content of a document.
        folder: folder of the records.

    Raises:
        ValueError: a marker is unpaired.
        OSError: a marker names a record that does not exist.
    """
    if left := re.search(r"<!-- /?benchmarks:.*", PAIRS.sub("", text)):
        raise ValueError(f"unpaired {left[0]}: expected <!-- benchmarks:X --> ... <!-- /benchmarks:X -->")

    def replace(found: re.Match) -> str:
        name = found[1]
        made = block(files.read_json(folder / f"{name}.json"))
        return f"<!-- benchmarks:{name} -->\n\n{made}\n\n<!-- /benchmarks:{name} -->"

    return PAIRS.sub(replace, text)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Writes the tables; exits with code 1 if a marker is wrong or a record is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--document", type=Path, default="docs/benchmarks.md", help="the document with markers (default: %(default)s)"
    )
    parser.add_argument(
        "--records", type=Path, default="results/benchmarks", help="folder of the records (default: %(default)s)"
    )
    args = parser.parse_args(arguments)
    run_command(lambda: files.write_text(args.document, written(args.document.read_text("utf-8"), args.records)))


if __name__ == "__main__":
    main()
