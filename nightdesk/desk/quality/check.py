"""The gate itself: all rules over one text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from nightdesk.desk.quality.article import Article, Block, Kind, parse
from nightdesk.desk.quality.folding import folded
from nightdesk.desk.quality.leftovers import ALWAYS, EVERY_LANGUAGE, Leftover, own_leftovers
from nightdesk.desk.quality.leftovers.every import SLOT_TAGS, TOOL_TAGS
from nightdesk.desk.quality.links import check_links
from nightdesk.desk.quality.scripts import check_language, check_script_mix
from nightdesk.desk.quality.structure import check_end, check_keyword, check_length, check_sections
from nightdesk.desk.quality.verdict import (
    GATE_VERSION,
    Finding,
    Requirements,
    Severity,
    Verdict,
    finding,
)
from nightdesk.desk.quality.words import count_words
from nightdesk.languages import Language
from nightdesk.text import storable

# A verdict is stored and read by a person: the twenty-first hit of a rule says nothing new.
_MAX_PER_RULE = 20
#: The ids of all rules, as `Requirements.waived` names them.
RULES: frozenset[str] = frozenset({leftover.rule for leftover in EVERY_LANGUAGE}) | {
    "active_content",
    "empty_section",
    "empty_text",
    "keyword_first_100",
    "language_mismatch",
    "min_words",
    "placeholder_link",
    "required_h2",
    "script_mix",
    "too_deep",
    "truncated_end",
    "unknown_link",
}
_CONTAINERS = frozenset({"blockquote_open", "list_item_open"})
# A code block that is an article: a heading of Markdown or a block of HTML at the start of a line.
_ARTICLE_IN_CODE = regex.compile(r"(?i)^ ?(?:#{1,3} \S|<(?:h[1-6]|p|article|!doctype)\b)")


def check_html(html: str, requirements: Requirements) -> Verdict:
    """The verdict on an article's HTML (the body's content, without title). Never raises."""
    article = parse(html)
    words = count_words(article.prose, requirements.language)
    return _verdict(_all_findings(article, words, requirements), words, requirements)


def check_markdown(markdown: str, requirements: Requirements) -> Verdict:
    """The verdict on an article in Markdown (CommonMark with tables). Never raises."""
    source = storable(markdown)
    renderer = _renderer()
    tokens = renderer.parse(source)
    article = parse(str(renderer.renderer.render(tokens, renderer.options, {})))
    words = count_words(article.prose, requirements.language)
    found = (
        *_too_deep_to_show(tokens, renderer.options.maxNesting),
        *_unclosed_fence(source, tokens),
        *_all_findings(article, words, requirements),
    )
    return _verdict(found, words, requirements)


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _verdict(found: Iterable[Finding], words: int, requirements: Requirements) -> Verdict:
    kept: list[Finding] = []
    per_rule: Counter[str] = Counter()
    for item in dict.fromkeys(found):
        if item.rule not in requirements.waived and per_rule[item.rule] < _MAX_PER_RULE:
            per_rule[item.rule] += 1
            kept.append(item)
    ok = all(item.severity is not Severity.BLOCK for item in kept)
    return Verdict(ok, tuple(kept), words, GATE_VERSION)


def _all_findings(article: Article, words: int, wanted: Requirements) -> Iterator[Finding]:
    if article.too_deep:
        yield finding("too_deep", "Close the elements: too many are open at once to read the text.")
        return
    if not article.blocks:
        yield finding("empty_text", "Write the article: there is no text in it.")
    for passage in article.active:
        yield finding("active_content", "Take out what would run in the reader's browser.", passage)
    yield from check_length(words, wanted)
    yield from check_keyword(article, wanted)
    yield from check_sections(article, wanted)
    yield from _foreign_elements(article)
    yield from _all_code(article)
    seen: set[tuple[str, bool]] = set()
    for block in article.blocks:
        key = (block.own, _is_prose(block))
        if block.own and key not in seen:
            seen.add(key)
            yield from _left_over(block, wanted.language)
    yield from check_links(article, wanted.known_links)
    yield from check_end(article, words)
    yield from check_language(article, wanted.language)
    yield from check_script_mix(article)


def _is_prose(block: Block) -> bool:
    return block.kind in (Kind.PARAGRAPH, Kind.HEADING)


def _left_over(block: Block, language: Language) -> Iterator[Finding]:
    for leftover, pattern in _patterns(ALWAYS, _is_prose(block)):
        for match in pattern.finditer(block.own):
            yield _leftover_finding(leftover, match[0])
    own = own_leftovers(language)
    if not own:
        return
    view = folded(block.own, language)
    for leftover, pattern in _patterns(own, _is_prose(block)):
        for match in pattern.finditer(view.text):
            yield _leftover_finding(leftover, view.original(block.own, match.start(), match.end()))


@cache
def _patterns(
    leftovers: tuple[Leftover, ...], prose: bool
) -> tuple[tuple[Leftover, regex.Pattern[str]], ...]:
    """Those that apply to a block, compiled."""
    return tuple((one, one.compiled()) for one in leftovers if prose or not one.paragraphs_only)


def _leftover_finding(leftover: Leftover, passage: str) -> Finding:
    return finding(leftover.rule, leftover.advice, passage, leftover.severity)


def _foreign_elements(article: Article) -> Iterator[Finding]:
    for name in dict.fromkeys(article.elements):
        if name in TOOL_TAGS or name.startswith("antml:"):
            yield finding("tool_tag", "Remove the model's reasoning or tool output.", f"<{name}>")
        elif name in SLOT_TAGS:
            yield finding("placeholder_angle", "Fill this slot.", f"<{name} …>")


def _all_code(article: Article) -> Iterator[Finding]:
    """An article that a model wrapped in a code fence as a whole."""
    kinds = {block.kind for block in article.blocks}
    if kinds == {Kind.CODE} and _ARTICLE_IN_CODE.search(article.blocks[0].full):
        yield finding(
            "markdown_left",
            "Take the article out of its code fence.",
            article.blocks[0].full,
        )


def _too_deep_to_show(tokens: list[Token], max_nesting: int) -> Iterator[Finding]:
    """Markdown leaves out, without a word, what is nested deeper, and in a list all that follows."""
    if any(token.type in _CONTAINERS and token.level + 1 >= max_nesting for token in tokens):
        yield finding(
            "too_deep",
            "Nest quotations and lists less deeply: what is inside the deepest is not shown.",
        )


def _unclosed_fence(source: str, tokens: list[Token]) -> Iterator[Finding]:
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for token in tokens:
        if token.type == "fence" and token.map and token.level == 0:
            start, end = token.map
            last = lines[end - 1].strip() if end <= len(lines) else ""
            if end - start < 2 or not last.startswith(token.markup):
                yield finding(
                    "truncated_end",
                    "Finish the text: its last code block is not closed.",
                    lines[start] if start < len(lines) else token.markup,
                )
