"""Whether a text is in the language it was asked for, by its letters and by its words."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Protocol, cast

import regex

from nightdesk.desk.quality.article import Article, Kind
from nightdesk.desk.quality.verdict import Finding, finding
from nightdesk.desk.quality.words import split_words
from nightdesk.languages import Language

# Foreign names are no mismatch; a text whose letters are mostly foreign is. A single block may
# hold more of them than the whole article.
_MIN_LETTERS = 40
_MIN_SHARE = 0.5
_MIN_BLOCK_LETTERS = 100
_MIN_BLOCK_SHARE = 0.3

# The classifier is sure of a language from about this many words on; it weighs repeated words
# less, so that scores of longer texts cannot be compared: they are judged in samples.
_MIN_WORDS = 40
_SAMPLE_WORDS = 60
# By how much (log-probability per word) the best language must beat the accepted ones: another
# language leads by 4.5 and more, the right one full of foreign names trails by up to 3.
_MIN_LEAD_PER_WORD = 4.0
# What the classifier calls each language. South Slavic standards share their words, so Serbian in
# Latin script comes out as any of them.
_ACCEPTED: dict[str, frozenset[str]] = {
    "en": frozenset({"en"}),
    "sr-Latn": frozenset({"sr", "hr", "bs", "sl", "sh"}),
    "sr-Cyrl": frozenset({"sr", "mk", "bs"}),
    "te": frozenset({"te"}),
}

_LETTER = regex.compile(r"\p{L}")
_LATIN_LETTER = regex.compile(r"\p{Script=Latin}")
_CYRILLIC_LETTER = regex.compile(r"\p{Script=Cyrillic}")
_LATIN_LIKE_CYRILLIC = frozenset("aceiopxyjABCEHIJKMOPTXY")
_CYRILLIC_LIKE_LATIN = frozenset("асеорхуіјѕАВЕНКМОРСТХУІЈЅ")
_MIN_MIXED_LETTERS = 3


def check_language(article: Article, language: Language) -> Iterator[Finding]:
    """`language_mismatch`, at most once: the whole article, else its first foreign paragraph."""
    whole = article.own
    reason = _foreign(whole, language, _MIN_LETTERS, _MIN_SHARE)
    if reason:
        yield finding("language_mismatch", reason, whole)
        return
    for block in article.blocks:
        if block.kind not in (Kind.PARAGRAPH, Kind.ITEM):
            continue
        reason = _foreign(block.own, language, _MIN_BLOCK_LETTERS, _MIN_BLOCK_SHARE)
        if reason:
            yield finding("language_mismatch", reason, block.own)
            return


def check_script_mix(article: Article) -> Iterator[Finding]:
    """`script_mix`: words in which look-alike letters of the other alphabet stand."""
    prose = article.prose
    if not (_LATIN_LETTER.search(prose) and _CYRILLIC_LETTER.search(prose)):
        return
    for word in dict.fromkeys(split_words(prose)):
        if _mixed(word):
            yield finding(
                "script_mix",
                "Write this word in one alphabet: it has look-alike letters of another.",
                word,
            )


def _mixed(word: str) -> bool:
    latin = _LATIN_LETTER.findall(word)
    cyrillic = _CYRILLIC_LETTER.findall(word)
    if not latin or not cyrillic or len(latin) + len(cyrillic) < _MIN_MIXED_LETTERS:
        return False
    # "SMSови" is no accident: neither half could pass for the other alphabet.
    return _LATIN_LIKE_CYRILLIC.issuperset(latin) or _CYRILLIC_LIKE_LATIN.issuperset(cyrillic)


def _foreign(text: str, language: Language, min_letters: int, min_share: float) -> str | None:
    letters = len(_LETTER.findall(text))
    if letters < min_letters:
        return None
    own = len(regex.findall(rf"\p{{Script={language.script}}}", text))
    own_letters = min(own, letters)  # vowel signs are of the script but no letters
    if own_letters < min_share * letters:
        return f"Write this in {language.name}: most of its letters are not {language.script}."
    code = _other_language(split_words(text), language)
    return f"Write this in {language.name}: it reads as the language '{code}'." if code else None


def _other_language(words: list[str], language: Language) -> str | None:
    """The code of the language that most samples of the text are in, if it is another one."""
    accepted = _ACCEPTED.get(language.tag)
    samples = [words[i : i + _SAMPLE_WORDS] for i in range(0, len(words), _SAMPLE_WORDS)]
    samples = [sample for sample in samples if len(sample) >= _MIN_WORDS]
    if accepted is None or not samples:
        return None
    codes = [code for sample in samples if (code := _clearly_other(sample, accepted))]
    return Counter(codes).most_common(1)[0][0] if len(codes) > len(samples) / 2 else None


def _clearly_other(words: list[str], accepted: frozenset[str]) -> str | None:
    ranked = _classifier().rank(" ".join(words))
    best_code, best = ranked[0]
    lead = best - max((score for code, score in ranked if code in accepted), default=best)
    return best_code if lead >= _MIN_LEAD_PER_WORD * len(words) else None


_LOADING = threading.Lock()


class _Classifier(Protocol):
    def rank(self, text: str) -> list[tuple[str, float]]: ...


@cache
def _classifier() -> _Classifier:
    # Its model takes 1 s of CPU to load, and each thread that comes meanwhile would load its own.
    with _LOADING:
        import py3langid  # only here: short texts never ask

        py3langid.rank("load")
        return cast(_Classifier, py3langid)
