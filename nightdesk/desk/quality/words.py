"""Words by the default word boundaries of Unicode (UAX #29), not by spaces."""

from __future__ import annotations

import math

import regex

from nightdesk.desk.quality.folding import normalise
from nightdesk.languages import Language

# A word character and all that follows it up to the next word boundary: "don't" and "3.14" are one
# word, "e-mail" is two, an emoji is none.
_WORD = regex.compile(r"(?w)\b\w(?:\B.)*", regex.DOTALL)
# Scripts without spaces: UAX #29 gives one "word" per character there; a word has about 1.7.
_UNSPACED = regex.compile(
    r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}"
    r"\p{Script=Khmer}\p{Script=Myanmar}]"
)
_CHARS_PER_UNSPACED_WORD = 1.7


def split_words(text: str) -> list[str]:
    """The words of `text`, normalised, in order."""
    return [match[0] for match in _WORD.finditer(normalise(text))]


def count_words(text: str, language: Language) -> int:
    """How many words `text` has; scripts without spaces are estimated at 1.7 characters a word.

    The rule goes by the script of each word, not by `language`: an English name in a Chinese text
    is one word, and a Chinese one in an English text is not twenty.
    """
    del language  # one rule for all so far; the parameter is there for those that need their own
    words = split_words(text)
    if not _UNSPACED.search("".join(words)):
        return len(words)
    unspaced = sum(len(_UNSPACED.findall(word)) for word in words)
    spaced = sum(1 for word in words if not _UNSPACED.search(word))
    return spaced + math.ceil(unspaced / _CHARS_PER_UNSPACED_WORD)
