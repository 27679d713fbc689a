"""Fetched text as evidence (is this quote in it?) and as data (it must not speak to a model)."""

from __future__ import annotations

import unicodedata

import regex

from nightdesk.text import storable

# Shown as nothing: zero-width characters, marks of direction, Unicode tags, variation selectors,
# fillers (UAX #44, Default_Ignorable_Code_Point), and interlinear annotation.
_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\ufff9-\ufffb]")
_SPACE = regex.compile(r"\s+")
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}'-]*")
_MIN_WORDS = 3
_MIN_CHARS = 12

_TYPOGRAPHY = str.maketrans(
    dict.fromkeys("‘’‚‛ʼ′‹›`´", "'") | dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("‐‑‒–—―−⁃﹘", "-")
)

# Scripts that put no spaces between words: there, a quote may begin and end inside a run of letters.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_INSIDE_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_UNSPACED}]]"
_WORD_AT_START = regex.compile(rf"{_INSIDE_WORD}", regex.VERSION1)
_CUT_BEFORE = regex.compile(rf"{_INSIDE_WORD}\Z|\p{{Nd}}[.,]\Z", regex.VERSION1)
_CUT_AFTER = regex.compile(rf"{_INSIDE_WORD}|[.,]\p{{Nd}}", regex.VERSION1)

_NONCE = regex.compile(r"[A-Za-z0-9_-]{8,}")
# The delimiter's tag in any letter case, spacing and width, opening or closing.
_DELIMITER = regex.compile(
    r"[<＜﹤](\s*[/／⁄∕]?\s*(?:source|ｓｏｕｒｃｅ)(?![\p{L}\p{N}_-]))", regex.IGNORECASE
)
_REMOVED = "\N{REPLACEMENT CHARACTER}"


def quote_is_in(quote: str, text: str) -> bool:
    """Whether a quote stands literally in a text.

    Both are compared after NFKC, with every run of white space as one space, typographic quotation
    marks and dashes as plain ones, and without invisible characters; letter case counts. A quote of
    fewer than 3 words and fewer than 12 characters proves nothing and is never "in". A quote must
    not begin or end inside a word or a number: "5 percent agree" is not in "95 percent agree".
    """
    wanted = _folded(quote)
    if len(wanted) < _MIN_CHARS and len(_WORD.findall(wanted)) < _MIN_WORDS:
        return False
    whole = _folded(text)
    start = whole.find(wanted)
    while start >= 0:
        if _stands_alone(whole, start, start + len(wanted)):
            return True
        start = whole.find(wanted, start + 1)
    return False


def as_data(text: str, nonce: str) -> str:
    """A text that cannot end the block of a prompt that it is put in, without anything invisible.

    The caller writes the lines around it: `<source nonce="…" url="…">` and `</source …>`. The nonce
    is new for every call of a model, so that whoever wrote the text cannot know it; were it in the
    text all the same, in any letter case, it is replaced by U+FFFD. What only looks like such a
    line, with any nonce or none, loses its opening bracket to a typographic one.

    Raises:
        ValueError: if the nonce is not at least 8 ASCII letters, digits, '-' or '_'.
    """
    if not _NONCE.fullmatch(nonce) or not nonce.isascii():
        raise ValueError(f"the nonce '{nonce}' must be at least 8 ASCII letters or digits")
    visible = _INVISIBLE.sub("", storable(text))
    unknowable = regex.sub(regex.escape(nonce), _REMOVED, visible, flags=regex.IGNORECASE)
    return _DELIMITER.sub(r"‹\1", unknowable)


def without_invisible(text: str) -> str:
    """A text without the characters that are shown as nothing."""
    return _INVISIBLE.sub("", text)


def _folded(text: str) -> str:
    # Invisible ones go first and last: NFKC composes across where they stood, and makes new ones.
    normal = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).translate(_TYPOGRAPHY))
    plain = _INVISIBLE.sub("", normal).translate(_TYPOGRAPHY)
    return _SPACE.sub(" ", plain).strip()


def _stands_alone(whole: str, start: int, end: int) -> bool:
    before, after = whole[max(0, start - 2) : start], whole[end : end + 2]
    begins_inside = _WORD_AT_START.match(whole[start]) and _CUT_BEFORE.search(before)
    ends_inside = _WORD_AT_START.match(whole[end - 1]) and _CUT_AFTER.match(after)
    return not begins_inside and not ends_inside
