"""Words and their ids, in pure Python. The special tokens are defined here and nowhere else."""

import collections
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from text_infilling import files

SPECIAL_TOKENS = ("<PAD>", "<BOS>", "<EOS>", "<UNK>", "<m>", "<BOB>", "<EOB>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID, BLANK_ID, BOB_ID, EOB_ID = range(7)


class Vocabulary:
    """The words a model knows: ids 0 to 6 are the special tokens, the words follow in the order given.

    Text never becomes a special token: `<PAD>` or `<m>` typed as a word is an unknown word like any other.

    Attributes:
        words: tuple of the words, without the special tokens; the first one has id 7.
    """

    def __init__(self, words: Iterable[str]):
        """Takes the words in the order of their ids.

        Raises:
            ValueError: no words, or one that is empty, has white space in it, stands twice or is a special token.
        """
        self.words = tuple(words)
        if not self.words:
            raise ValueError("A vocabulary has at least one word. Received: none (empty text, or min_count too high?)")
        for word in self.words:
            if word.split() != [word]:
                raise ValueError(f"A word of a vocabulary is not empty and has no white space. Received: {word!r}")
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

        The most frequent word comes first, words of equal count stand in alphabetical order; special tokens among the
        text are left out.
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
            ValueError: it is not one word a line in UTF-8.
        """
        content = Path(path).read_bytes()
        try:
            lines = content.decode("utf-8").split("\n")
            if lines.pop():
                raise ValueError("its last line has no end")
            return cls(lines)
        except ValueError as error:
            raise ValueError(f"{path} is not a vocabulary of one word a line in UTF-8: {error}") from error

    def save(self, path: str | Path) -> None:
        """Writes one word a line; a reader never sees half a file."""
        files.write_text(Path(path), self._content().decode())

    @property
    def hash(self) -> str:
        """The sha256 of the saved file, in hexadecimal."""
        return hashlib.sha256(self._content()).hexdigest()

    def check_hash(self, expected: str, where: str | Path) -> None:
        """Raises ValueError unless `expected`, the hash that `where` (a file or folder) records, is this one's."""
        if self.hash != expected:
            raise ValueError(
                f"This vocabulary ({len(self.words)} words, sha256 {self.hash}) is not the one that {where} was made "
                f"with (sha256 {expected}): give the vocabulary that was saved beside it, or make {where} anew"
            )

    def __len__(self) -> int:
        """Returns the number of ids: special tokens and words."""
        return len(SPECIAL_TOKENS) + len(self.words)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Returns the id of each token, `UNK_ID` for one that is no word here."""
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
        """Returns the tokens with `<UNK>` for each that is no word here (also for a special token)."""
        return [token if token in self._ids else SPECIAL_TOKENS[UNK_ID] for token in tokens]

    def _content(self) -> bytes:
        return "".join(f"{word}\n" for word in self.words).encode("utf-8")
