"""Builds clauses from tales, as the paper does from Grimm's (section "Long Content Infilling").

    "Old hen," said the fox, "what hast thou in thy basket? Show it to me; I won't tell."
    old hen , said the fox , what hast thou in thy basket ?
    show it to me ; i wo n't tell .

The tales may be any folder of text files.
"""

import itertools
import random
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from text_infilling.corpora.builders.common import (
    BuildReport,
    SplitCounts,
    Splits,
    distinct,
    read_text,
    some,
    text_files,
)

SEED = 0
# The paper has 16K + 3K sentences.
TEST_SHARE = 3 / 19
# The paper says 10 to 18 tokens; 99.5% of the authors' sentences have 10 to 17.
SHORTEST, LONGEST = 10, 17

# Typographic characters become plain ones. Double quotes, brackets, asterisks and marks of emphasis become spaces.
# Invisible characters, which occur inside words of pasted text, are removed.
_PLAIN = str.maketrans(
    dict.fromkeys("’‘`", "'") | dict.fromkeys('"“”„«»()[]{}<>*_', " ") | dict.fromkeys("\u00ad\u200b\u200c\u2060\ufeff")
)
_LETTER = r"[^\s,;:.?!…'–—-]"
# Words follow the Penn Treebank (do n't, king 's), on which taggers are trained. An apostrophe at the edge of a word
# counts as a quote; hyphens separate words. NLTK 3.10's tokenizers are not used underneath: on the paragraphs of Hunt's
# translation they give the same words for 578 of 2,017. They keep 9,188 periods inside a paragraph and 1,677 hyphens
# within words, split `cannot` 128 times, and keep 94 apostrophes at the edge of a word.
_TOKEN = re.compile(
    rf"""(?:mr|mrs|ms|dr|st)\. | (?:[^\W\d_]\.){{2,}} | \d+(?:[.,:]\d+)+   # with inner points: mr. e.g. 3.50
    | {_LETTER}+?(?=n't\b) | n't\b | '(?:s|ll|d|ve|re|m)\b
    | {_LETTER}+(?:'(?!(?:s|ll|d|ve|re|m)\b){_LETTER}+)*                   # o'clock
    | [.…]+ | [?!]+ | [,;:]
    | --+ | [–—] | (?<=\s)-(?=\s)                                         # dashes
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SEPARATORS, _ENDS, _DASHES = (",", ";", ":"), (".", "…", "?", "!"), ("-", "–", "—")
_MARKS = _SEPARATORS + _ENDS


def build_tales(folder: str | Path, seed: int = SEED) -> Splits:
    """Builds clauses of 10 to 17 lower-case tokens, with separate punctuation tokens, from a folder of tales.

    A tale is a UTF-8 file `*.txt`: the title on the first line, an empty line, and paragraphs separated by empty lines.
    Without a title it starts with a sentence. Double quotes, brackets, hyphens and dashes do not become tokens.

    File names and seed alone determine the order of the tales, of which the last 3 in 19 (at least one) are test.
    Sentences follow this order and that of the text, so a contiguous part of train cuts at most two tales. Since tales
    differ in length, the seeds 0 to 11 give 2.3K to 3.7K test sentences of Grimm's tales; with seed 0 both splits are
    within 3% of the paper's.

    Sentences are split into parts at punctuation and dashes. Parts are joined to a clause as long as it has at most 17
    tokens; a comma, semicolon or colon at its end is dropped. A part that is longer by itself is cut after every 17
    tokens. Results with fewer than 10 tokens are left out. With Hunt's translation 69% of these clauses equal one of
    the authors' except for punctuation; their edition differs ("you" for "thou").

    Args:
        folder: the folder of tales.
        seed: seed of the order of the tales.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: a file is not UTF-8, fewer than two files have text, or train or test has no clause.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {folder}: it should hold the tales, one text file (*.txt) each")
    texts = {path.name: read_text(path) for path in text_files(folder)}
    tales = [name for name, text in texts.items() if text.strip()]
    if len(tales) < 2:
        raise ValueError(f"{folder} has {len(tales)} text files (*.txt) with text: at least 2 are needed, 1 for test")

    report = BuildReport(str(folder))
    if empty := [name for name in texts if name not in tales]:
        report.notes.append(f"skipped because they are empty: {some(empty)}")
    if others := sorted(path.name for path in folder.iterdir() if path.name not in texts):
        report.notes.append(f"skipped because tales are *.txt files: {some(others)}")
    draw = random.Random(seed).random  # Gives the same numbers on all Python versions, unlike `shuffle`.
    tales.sort(key=lambda _: draw())
    tests = max(1, round(TEST_SHARE * len(tales)))
    report.train.files, report.test.files = tales[:-tests], tales[-tests:]

    def clauses(counts: SplitCounts) -> Iterator[list[str]]:
        return itertools.chain.from_iterable(_clauses_of_tale(texts[name], counts) for name in counts.files)

    return distinct(clauses(report.train), clauses(report.test), report)


def _clauses_of_tale(text: str, counts: SplitCounts) -> Iterator[list[str]]:
    lines = text.splitlines()
    groups = itertools.groupby(lines, key=lambda line: bool(line.strip()))
    paragraphs = [list(group) for filled, group in groups if filled]
    for i, paragraph in enumerate(paragraphs):
        plain = unicodedata.normalize("NFC", "\n".join(paragraph)).translate(_PLAIN)
        tokens = _TOKEN.findall(plain)
        length = sum(not token.startswith(_DASHES) for token in tokens)
        counts.lines_in += len(paragraph)
        counts.tokens_in += length
        on_top = i == 0 and len(paragraph) == 1 and len(paragraphs) > 1
        # Otherwise it is the first paragraph of a text without a title.
        if on_top and length <= LONGEST and not (tokens and tokens[-1].startswith(_MARKS)):
            counts.leave("title", length)
            continue
        for parts in _sentences(tokens):
            yield from _clauses(parts, counts)


def _sentences(tokens: list[str]) -> Iterator[list[list[str]]]:
    """Yields the sentences in lower case, each as the list of parts that its punctuation and dashes delimit."""
    parts, part = [], []
    for token, following in itertools.zip_longest(tokens, tokens[1:], fillvalue=""):
        dash = token.startswith(_DASHES)
        if not dash:
            part.append(token.lower())
        if following.startswith(_MARKS):
            continue
        if dash or token.startswith(_MARKS):
            parts.append(part)
            part = []
        if token.startswith(_ENDS) and not following[:1].islower():  # No end in: "Who is there?" asked the king.
            yield parts
            parts = []
    yield [*parts, part]


def _clauses(parts: list[list[str]], counts: SplitCounts) -> Iterator[list[str]]:
    clause = []
    for part in parts:
        if len(clause) + len(_trimmed(part)) > LONGEST:
            yield from _cut(clause, counts)
            clause = []
        clause += part
    yield from _cut(clause, counts)


def _cut(clause: list[str], counts: SplitCounts) -> Iterator[list[str]]:
    """Yields the clause if its length is within the limits; cuts a longer one into sequences of 17 tokens."""
    trimmed = _trimmed(clause)
    counts.leave("comma, semicolon or colon before a cut", len(clause) - len(trimmed))
    for start in range(0, len(trimmed), LONGEST):
        run = trimmed[start : start + LONGEST]
        if len(run) >= SHORTEST:
            yield run
        else:
            counts.leave(f"fewer than {SHORTEST} tokens{f', after a run of {LONGEST}' if start else ''}", len(run))


def _trimmed(tokens: list[str]) -> list[str]:
    end = len(tokens)
    while end and tokens[end - 1] in _SEPARATORS:
        end -= 1
    return tokens[:end]
