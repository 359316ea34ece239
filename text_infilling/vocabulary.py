"""Words and their ids, in pure Python. Only this module defines the special tokens."""

import collections
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from text_infilling.utils import files

SPECIAL_TOKENS = ("<PAD>", "<BOS>", "<EOS>", "<UNK>", "<m>", "<BOB>", "<EOB>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID, BLANK_ID, BOB_ID, EOB_ID = range(7)
TEMPLATE_BLANK = SPECIAL_TOKENS[BLANK_ID]


class Vocabulary:
    """The words a model knows: ids 0 to 6 are the special tokens, the words follow in the given order.

    Text never becomes a special token: `<PAD>` or `<m>` typed as a word is an unknown word.

    Attributes:
        words: tuple of the words, without the special tokens; the first one has id 7.
    """

    def __init__(self, words: Iterable[str]):
        """Takes the words in the order of their ids.

        Raises:
            ValueError: no words, or a word that is empty, contains white space, occurs twice or is a special token.
        """
        self.words = tuple(words)
        if not self.words:
            raise ValueError("A vocabulary needs at least one word. Received: none (empty text or min_count too high?)")
        for word in self.words:
            if word.split() != [word]:
                raise ValueError(f"A vocabulary word must not be empty or contain white space. Received: {word!r}")
        special = [word for word in self.words if word in SPECIAL_TOKENS]
        if special:
            raise ValueError(f"The special token {special[0]} cannot be a word of a vocabulary")
        self._ids = {word: i for i, word in enumerate(self.words, start=len(SPECIAL_TOKENS))}
        if len(self._ids) != len(self.words):
            word, count = collections.Counter(self.words).most_common(1)[0]
            raise ValueError(f"The words of a vocabulary must differ. Received: {word!r} {count} times")

    @classmethod
    def build(cls, lines: Iterable[str], min_count: int) -> "Vocabulary":
        """Returns the vocabulary of the white-space tokens seen at least `min_count` times in `lines`.

        Words are sorted by descending count, then alphabetically; special tokens in the text are skipped.

        Raises:
            ValueError: min_count is less than 1, or no word is left.
        """
        if min_count < 1:
            raise ValueError(f"min_count must be at least 1. Received: min_count={min_count}")
        counts = collections.Counter()
        for line in lines:
            counts.update(line.split())
        words = [word for word, count in counts.items() if count >= min_count and word not in SPECIAL_TOKENS]
        return cls(sorted(words, key=lambda word: (-counts[word], word)))

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        """Returns the vocabulary that `save` wrote to `path`.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not UTF-8 text with one word per line.
        """
        content = Path(path).read_bytes()
        try:
            lines = content.decode("utf-8").split("\n")
            if lines.pop():
                raise ValueError("the last line has no line end")
            return cls(lines)
        except ValueError as error:
            raise ValueError(f"{path} is not a vocabulary with one word per line in UTF-8: {error}") from error

    def save(self, path: str | Path) -> None:
        """Writes one word per line, atomically: a reader never sees a partial file."""
        files.write_text(Path(path), self._content().decode())

    @property
    def hash(self) -> str:
        """The sha256 of the saved file in hexadecimal."""
        return hashlib.sha256(self._content()).hexdigest()

    def check_hash(self, expected: str, where: str | Path) -> None:
        """Raises ValueError if the hash differs from `expected`, which `where` (a file or folder) records."""
        if self.hash != expected:
            raise ValueError(
                f"This vocabulary ({len(self.words)} words, sha256 {self.hash}) is not the one that {where} was made "
                f"with (sha256 {expected}): use the vocabulary saved next to it, or create {where} again"
            )

    def __len__(self) -> int:
        """Returns the number of ids: special tokens and words."""
        return len(SPECIAL_TOKENS) + len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Returns the id of each token, `UNK_ID` for unknown words."""
        return [self._ids.get(token, UNK_ID) for token in tokens]

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Returns the word or special token of each id.

        Raises:
            ValueError: an id that is not in [0, len(self)).
        """
        tokens = SPECIAL_TOKENS + self.words
        for i in ids:
            if not 0 <= i < len(tokens):
                raise ValueError(f"An id must be at least 0 and less than {len(tokens)}. Received: {i}")
        return [tokens[i] for i in ids]

    def replace_unknown(self, tokens: Iterable[str]) -> list[str]:
        """Returns the tokens with unknown words, and special tokens, replaced by `<UNK>`."""
        return [token if token in self._ids else SPECIAL_TOKENS[UNK_ID] for token in tokens]

    def _content(self) -> bytes:
        return "".join(f"{word}\n" for word in self.words).encode("utf-8")
