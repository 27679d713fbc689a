"""Text in the form it is compared in."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import cyrtranslit
import regex

from nightdesk.languages import Language

# Format characters (soft hyphen, zero-width space and joiners, marks of direction, Unicode tags)
# and whatever else is shown as nothing (UAX #44, Default_Ignorable_Code_Point).
_INVISIBLE = regex.compile(r"[\p{Cf}\p{Default_Ignorable_Code_Point}]")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'"})


def normalise(text: str) -> str:
    """NFKC without invisible characters; letter case and line breaks stay."""
    # Again after NFKC: a few compatibility forms (Hangul fillers) turn into invisible ones.
    visible = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return _INVISIBLE.sub("", visible)


def plain_apostrophes(text: str) -> str:
    """Typographic apostrophes as `'`, so that a pattern is written once."""
    return text.translate(_APOSTROPHES)


def strip_marks(text: str) -> str:
    """Latin, Cyrillic and Greek letters without accents; in other scripts a mark is a vowel."""
    return "".join(_bare(char) for char in unicodedata.normalize("NFC", text))


def to_latin(text: str) -> str:
    """Serbian Cyrillic in Latin script, casefolded, with its diacritics; Latin stays as it is.

    Never the other way round: `injekcija` would become `ињекција`.
    """
    return "".join(_latin(char) for char in text)


def fold(text: str, language: Language) -> str:
    """`text` normalised, casefolded and, where the language wants it, in its ASCII spelling."""
    return folded(normalise(text), language).text


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text and, for each of its characters, the index of the original one."""

    text: str
    origin: tuple[int, ...]

    def original(self, source: str, start: int, end: int) -> str:
        """The part of `source` that the folded characters `start` to `end` come from."""
        if start >= end:
            return ""
        return source[self.origin[start] : self.origin[end - 1] + 1]


def folded(normalised: str, language: Language) -> Folded:
    """Fold an already normalised text one character at a time, remembering where each came from.

    Serbian: towards Latin, đ→dj, without marks, so that `djački`, `đački` and `ђачки` meet.
    """
    fold_char = _serbian if language.base == "sr" else _casefolded
    parts = [fold_char(char) for char in normalised]
    origin = tuple(index for index, part in enumerate(parts) for _ in part)
    return Folded("".join(parts), origin)


@lru_cache(maxsize=4096)
def _casefolded(char: str) -> str:
    return _bare(char.casefold())


@lru_cache(maxsize=4096)
def _latin(char: str) -> str:
    return str(cyrtranslit.to_latin(char, "sr")).casefold()


@lru_cache(maxsize=4096)
def _serbian(char: str) -> str:
    return strip_marks(_latin(char).replace("đ", "dj"))


@lru_cache(maxsize=4096)
def _bare(char: str) -> str:
    decomposed = unicodedata.normalize("NFD", char)
    if len(decomposed) == 1 or unicodedata.name(decomposed[0], "").split(" ")[0] not in (
        "LATIN",
        "CYRILLIC",
        "GREEK",
    ):
        return char
    return "".join(part for part in decomposed if not unicodedata.combining(part))
