"""What an article must have: length, sections, the keyword at its start, and an end."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from nightdesk.desk.quality.article import Article, Block, Ink, Kind
from nightdesk.desk.quality.folding import fold
from nightdesk.desk.quality.keyphrase import keyword_in_first_words
from nightdesk.desk.quality.verdict import Finding, Requirements, finding
from nightdesk.desk.quality.words import split_words
from nightdesk.languages import Language

KEYWORD_WITHIN_WORDS = 100
# Anything shorter is a snippet, which may end as it likes.
_MIN_ARTICLE_WORDS = 50

# A sentence's end, then closing quotes, brackets, emoji and footnote marks.
_TERMINATED = regex.compile(
    r"[.!?…。！？।॥](?:[\"'”’»«“)\]】}*†‡\s]|\p{So}|\p{Emoji_Modifier}|\[\d{1,4}\]){0,40}$"
    r"|[\"”»)\]】]$|(?:\p{So}|\p{Emoji_Presentation})$"
)
_HANGING = regex.compile(r"(?:[,;(\[{„«&/–—-]|[,;]\s?[\"'”’»)]?)$")
_SIGNATURE = regex.compile(r"^[–—-] ?\p{L}")


def check_length(words: int, wanted: Requirements) -> Iterator[Finding]:
    """`min_words`."""
    if words < wanted.min_words:
        yield finding("min_words", f"Write at least {wanted.min_words} words: the text has {words}.")


def check_keyword(article: Article, wanted: Requirements) -> Iterator[Finding]:
    """`keyword_first_100`, from the first body paragraph on."""
    keyword = (wanted.keyword or "").strip()
    if keyword and not keyword_in_first_words(article.body, keyword, wanted.language, KEYWORD_WITHIN_WORDS):
        yield finding(
            "keyword_first_100",
            f"Use '{keyword}' within the first {KEYWORD_WITHIN_WORDS} words of the body.",
            article.body,
        )


def check_sections(article: Article, wanted: Requirements) -> Iterator[Finding]:
    """`required_h2` for each missing heading, `empty_section` for each with nothing under it."""
    present = {_heading_key(block.full, wanted.language) for block in article.blocks if block.level == 2}
    for heading in wanted.required_h2:
        if _heading_key(heading, wanted.language) not in present:
            yield finding("required_h2", f"Add the section '{heading}' as an H2.", heading)
    for block in _empty(article.blocks):
        yield finding("empty_section", f"Write the section '{block.full}' or remove its heading.", block.full)


def _heading_key(heading: str, language: Language) -> tuple[str, ...]:
    """The words alone: case, punctuation, spaces and, for Serbian, the script do not matter."""
    return tuple(split_words(fold(heading, language))) or (heading.strip(),)


def _empty(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Headings with no content before the next heading of the same or a higher level."""
    open_headings: list[Block] = []
    for block in blocks:
        if block.kind is not Kind.HEADING:
            open_headings = []
            continue
        while open_headings and open_headings[-1].level >= block.level:
            yield open_headings.pop()
        open_headings.append(block)
    yield from open_headings


def check_end(article: Article, words: int) -> Iterator[Finding]:
    """`truncated_end`: an article of at least 50 words that stops in the middle of a sentence."""
    if words < _MIN_ARTICLE_WORDS or not article.blocks:
        return
    last = article.blocks[-1]
    if last.last in (Ink.CODE, Ink.LINK) or _TERMINATED.search(last.full):
        stopped = False
    elif _HANGING.search(last.full):
        stopped = True
    elif last.kind is Kind.ITEM:
        # Where the other items end in a full stop, so must the last one.
        stopped = all(_TERMINATED.search(block.full) for block in _items_before(article.blocks))
    else:
        stopped = last.kind is Kind.PARAGRAPH and not _SIGNATURE.search(last.full)
    if stopped:
        yield finding(
            "truncated_end",
            "Finish the text: its last block stops in the middle of a sentence.",
            last.full[-100:],
        )


def _items_before(blocks: tuple[Block, ...]) -> list[Block]:
    """The items of the last list but its last one; an unterminated stand-in if there is none."""
    start = len(blocks) - 1
    while start > 0 and blocks[start - 1].kind is Kind.ITEM:
        start -= 1
    return list(blocks[start:-1]) or [blocks[-1]]
