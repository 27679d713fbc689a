"""An article's HTML as the blocks a reader sees, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

import regex
from selectolax.lexbor import LexborHTMLParser, LexborNode

from nightdesk.desk.quality.active import active_content
from nightdesk.desk.quality.folding import normalise, plain_apostrophes
from nightdesk.text import storable


class Kind(Enum):
    """What a block is; decides which rules look at it."""

    PARAGRAPH = auto()  #: also text that stands in no block of its own
    HEADING = auto()
    ITEM = auto()  #: of a list
    CELL = auto()  #: of a table
    CAPTION = auto()
    CODE = auto()
    MEDIA = auto()


class Ink(Enum):
    """How a run of text is set."""

    PLAIN = auto()
    LINK = auto()
    QUOTED = auto()
    CODE = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """One block; its three texts are normalised, with single spaces and `\\n` for a `<br>`."""

    kind: Kind
    level: int  #: of a heading, else 0
    full: str  #: everything shown
    prose: str  #: without code
    own: str  #: without code and quotations: what the author says
    last: Ink  #: how the block's last run is set


@dataclass(frozen=True, slots=True)
class Article:
    """The blocks, the targets of all links, and the names of all elements, in order.

    `active` holds what would run in a reader's browser. An article that is `too_deep` was not read.
    """

    blocks: tuple[Block, ...]
    links: tuple[str, ...]
    elements: tuple[str, ...]
    active: tuple[str, ...] = ()
    too_deep: bool = False

    @property
    def prose(self) -> str:
        """All text but code, one block a line."""
        return "\n".join(block.prose for block in self.blocks if block.prose)

    @property
    def own(self) -> str:
        """All text but code and quotations, one block a line."""
        return "\n".join(block.own for block in self.blocks if block.own)

    @property
    def body(self) -> str:
        """The text from the first body paragraph on, headings and inline code included."""
        shown = [block for block in self.blocks if block.kind is not Kind.CODE]
        starts = [i for i, block in enumerate(shown) if block.kind is Kind.PARAGRAPH]
        return "\n".join(block.full for block in shown[starts[0] if starts else 0 :])


# fmt: off
_PARAGRAPHS = (
    "p", "div", "section", "article", "main", "header", "footer", "aside", "address", "form",
    "fieldset", "details", "summary", "blockquote", "figure", "table", "thead", "tbody",
    "tfoot", "tr", "ul", "ol", "dl", "hr", "body",
)
_MEDIA = frozenset({
    "img", "picture", "video", "audio", "iframe", "embed", "object", "canvas", "svg", "math",
})
# A table of contents (`nav`) is not prose either.
_HIDDEN = frozenset({
    "script", "style", "template", "noscript", "nav", "head", "title", "meta", "link",
})
# fmt: on
_KINDS: dict[str, Kind] = (
    dict.fromkeys(_PARAGRAPHS, Kind.PARAGRAPH)
    | dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), Kind.HEADING)
    | dict.fromkeys(("li", "dt", "dd"), Kind.ITEM)
    | dict.fromkeys(("td", "th"), Kind.CELL)
    | dict.fromkeys(("figcaption", "caption", "legend"), Kind.CAPTION)
    | dict.fromkeys(("pre", "textarea", "xmp", "listing", "plaintext"), Kind.CODE)
)
# Elements that are never closed, or may be left open.
# fmt: off
_LEFT_OPEN = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "caption",
    "colgroup", "option", "optgroup", "rb", "rt", "rp", "rtc", "html", "head", "body",
})
# fmt: on
_TAG = regex.compile(r"<(/?)([a-zA-Z][^\s/>]{0,40})")
#: The parser's time grows with the square of the depth; no page is nested a tenth as deep.
MAX_DEPTH = 1_000
_CODE = frozenset({"code", "kbd", "samp", "tt", "var"})
_QUOTES = frozenset({"q", "blockquote", "cite"})

_SPACES = regex.compile(r"\s+")
_AROUND_BREAK = regex.compile(r" *\n *")
_BLANKS = regex.compile(r"[^\S\n]+")
# Quotations of one block; an apostrophe inside a word does not end one in single quotes.
_QUOTED_RUN = regex.compile(
    r"“[^“”]{0,600}”"
    r'|„[^„“”"]{0,600}[“”"]'
    r"|«[^«»]{0,600}»|»[^«»]{0,600}«"
    r'|"[^"]{1,600}"'
    r"|(?<!\w)‘[^‘’]{0,200}(?:’\w[^‘’]{0,200}){0,9}’(?!\w)"
)


def parse(html: str) -> Article:
    """Parse as a browser does; anything at all is an article, if perhaps an empty one."""
    html = storable(html)
    if _depth(html) > MAX_DEPTH:
        return Article((), (), (), too_deep=True)
    tree = LexborHTMLParser(html)
    body = tree.body
    if body is None:
        return Article((), (), ())
    reader = _Reader()
    reader.read(body)
    targets = (a.attributes.get("href") for a in body.css("a[href], area[href]"))
    links = tuple(href.strip() for href in targets if href)
    active = tuple(dict.fromkeys(active_content(tree, html)))
    return Article(tuple(reader.blocks), links, tuple(reader.elements), active)


def _depth(html: str) -> int:
    """How many elements are open at once, as far as their tags tell before they are parsed."""
    depth = deepest = 0
    for match in _TAG.finditer(html):
        if match[2].lower() not in _LEFT_OPEN:
            depth = max(depth - 1, 0) if match[1] else depth + 1
            deepest = max(deepest, depth)
    return deepest


class _Reader:
    """Walks the tree with a stack of its own: a hostile page may be nested deeper than Python."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.elements: list[str] = []
        self._runs: list[tuple[Ink, str]] = []
        self._kinds: list[tuple[Kind, int]] = []
        self._inks: list[Ink] = [Ink.PLAIN]

    def read(self, body: LexborNode) -> None:
        self._enter("body", body)
        walk: list[tuple[LexborNode, bool]] = _unread(body)
        while walk:
            node, leaving = walk.pop()
            tag = node.tag or ""
            if leaving:
                self._leave(tag)
            elif node.is_text_node:
                # A line break in the source is a space on the page; "\n" stands for <br> alone.
                self._runs.append((self._inks[-1], _SPACES.sub(" ", node.text_content or "")))
            elif node.is_element_node and tag not in _HIDDEN:
                self.elements.append(tag)
                if tag in _MEDIA:
                    self._flush()
                    self.blocks.append(Block(Kind.MEDIA, 0, "", "", "", Ink.PLAIN))
                    continue
                self._enter(tag, node)
                walk.append((node, True))
                walk.extend(_unread(node))
        self._leave("body")

    def _enter(self, tag: str, node: LexborNode) -> None:
        if tag == "br":
            self._runs.append((self._inks[-1], "\n"))
        if tag in _KINDS:
            self._flush()
            kind = _KINDS[tag]
            self._kinds.append((kind, int(tag[1]) if kind is Kind.HEADING else 0))
        self._inks.append(self._ink(tag, node))

    def _ink(self, tag: str, node: LexborNode) -> Ink:
        around = self._inks[-1]
        if around is Ink.CODE or tag in _CODE or _KINDS.get(tag) is Kind.CODE:
            return Ink.CODE
        if around is Ink.QUOTED or tag in _QUOTES:
            return Ink.QUOTED
        return Ink.LINK if tag == "a" and node.attributes.get("href") else around

    def _leave(self, tag: str) -> None:
        if tag in _KINDS:
            self._flush()
            self._kinds.pop()
        self._inks.pop()

    def _flush(self) -> None:
        runs, self._runs = self._runs, []
        inked = [ink for ink, text in runs if not text.isspace()]
        full = _shown(text for _, text in runs)
        if full:
            kind, level = self._kinds[-1]
            prose = _shown(" " if ink is Ink.CODE else text for ink, text in runs)
            own = _shown(_own(runs))
            own = _shown([plain_apostrophes(_QUOTED_RUN.sub(" ", own))])
            self.blocks.append(Block(kind, level, full, prose, own, inked[-1]))


def _unread(node: LexborNode) -> list[tuple[LexborNode, bool]]:
    return [(child, False) for child in reversed(list(node.iter(include_text=True)))]


def _own(runs: list[tuple[Ink, str]]) -> Iterator[str]:
    """The runs the author answers for; a link in brackets is a reference, not a slot."""
    for index, (ink, text) in enumerate(runs):
        before = runs[index - 1][1] if index else ""
        after = runs[index + 1][1] if index + 1 < len(runs) else ""
        bracketed = ink is Ink.LINK and before.endswith("[") and after.startswith("]")
        yield " " if bracketed or ink in (Ink.CODE, Ink.QUOTED) else text


def _shown(texts: Iterable[str]) -> str:
    """Joined as a browser joins them: inline tags are no spaces."""
    return _AROUND_BREAK.sub("\n", _BLANKS.sub(" ", normalise("".join(texts)))).strip()
