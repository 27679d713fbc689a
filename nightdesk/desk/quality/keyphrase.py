"""Whether a keyword occurs in a text, in any of its inflected forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from threading import Lock
from typing import Protocol, cast

import regex

from nightdesk.desk.quality.folding import fold, plain_apostrophes, strip_marks, to_latin
from nightdesk.desk.quality.words import split_words
from nightdesk.languages import Language

SameWord = Callable[[str, str], bool]

_SIBILARISED = {"c": "k", "z": "g", "s": "h"}
_MIN_SIBILARISED_STEM = 3
_MIN_TELUGU_PREFIX = 3
# Endings that may follow a Telugu word too short for a prefix to mean anything.
# fmt: off
_TELUGU_ENDINGS = frozenset({
    "లు", "ల", "లో", "కు", "కి", "ని", "ను", "తో", "పై", "గా", "కై", "లలో", "లకు", "లను", "లతో",
    "లపై", "నుండి", "నుంచి", "వల్ల", "కోసం",
})
# fmt: on
_CLUSTER = regex.compile(r"\X")


def keyword_in_first_words(text: str, keyword: str, language: Language, words: int = 100) -> bool:
    """Whether the first `words` words of `text` hold the words of `keyword` side by side.

    Inflected forms count: by Snowball stems (English, Serbian), by lemma as a second chance
    (Serbian), by prefix (Telugu); other languages compare folded words. A blank keyword is found.
    """
    wanted = split_words(keyword)
    head = split_words(text)[:words]
    if not wanted:
        return fold(keyword, language).strip() in fold(text, language)
    rules = _SAME_WORD.get(language.base, (_same_folded(language),))
    return any(_side_by_side(wanted, head, same) for same in rules)


def _side_by_side(wanted: list[str], head: list[str], same: SameWord) -> bool:
    return any(
        all(same(word, head[start + offset]) for offset, word in enumerate(wanted))
        for start in range(len(head) - len(wanted) + 1)
    )


def _same_folded(language: Language) -> SameWord:
    return lambda wanted, word: fold(wanted, language) == fold(word, language)


def _same_english(wanted: str, word: str) -> bool:
    return _english_stem(wanted) == _english_stem(word)


def _same_serbian_stem(wanted: str, word: str) -> bool:
    return not _serbian_stems(wanted).isdisjoint(_serbian_stems(word))


def _same_serbian_lemma(wanted: str, word: str) -> bool:
    return _serbian_lemma(wanted) == _serbian_lemma(word)


def _same_telugu(wanted: str, word: str) -> bool:
    wanted, word = wanted.casefold(), word.casefold()
    clusters = _CLUSTER.findall(wanted)
    if len(clusters) < _MIN_TELUGU_PREFIX:
        return word.startswith(wanted) and word[len(wanted) :] in _TELUGU_ENDINGS | {""}
    return word.startswith("".join(clusters[: max(_MIN_TELUGU_PREFIX, len(clusters) - 1)]))


# Tried in order; a later rule is only asked if the earlier ones found nothing.
_SAME_WORD: dict[str, tuple[SameWord, ...]] = {
    "en": (_same_english,),
    "sr": (_same_serbian_stem, _same_serbian_lemma),
    "te": (_same_telugu,),
}


# A stemmer keeps the word it works on in itself, and articles are checked in several threads.
_STEMMING = Lock()


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library names it so


@cache
def _stemmer(name: str) -> _Stemmer:
    import snowballstemmer  # loads every stemmer: 0.2 s

    return cast(_Stemmer, snowballstemmer.stemmer(name))


def _stem(name: str, word: str) -> str:
    with _STEMMING:
        return _stemmer(name).stemWord(word)


@lru_cache(maxsize=4096)
def _english_stem(word: str) -> str:
    return _stem("english", strip_marks(plain_apostrophes(word).casefold()))


@lru_cache(maxsize=4096)
def _serbian_stems(word: str) -> frozenset[str]:
    latin = to_latin(word)
    # With its diacritics the stemmer knows more endings; without, it meets what was typed without.
    stems = {_stem("serbian", form) for form in (latin, _ascii(latin))}
    softened = {
        stem[:-1] + _SIBILARISED[stem[-1]]
        for stem in stems
        if len(stem) >= _MIN_SIBILARISED_STEM and stem[-1] in _SIBILARISED
    }
    return frozenset(_ascii(stem) for stem in stems | softened)


@lru_cache(maxsize=4096)
def _serbian_lemma(word: str) -> str:
    import simplemma  # its dictionary takes 0.5 s to load, and most articles never need it

    return _ascii(simplemma.lemmatize(to_latin(word), lang="hbs").casefold())


def _ascii(latin: str) -> str:
    return strip_marks(latin.replace("đ", "dj"))
