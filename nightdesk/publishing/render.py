"""Markdown to HTML that is safe to put on a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from nightdesk.text import storable

_EXTERNAL_REL = "nofollow noopener"
_CELL = {"style"}
_ATTRIBUTES: dict[str, set[str]] = {
    "a": {"href", "title", "rel"},
    "img": {"src", "alt", "title"},
    "ol": {"start"},
    "code": {"class"},
    "th": _CELL,
    "td": _CELL,
}
_TAGS = {
    *("h2", "h3", "h4", "h5", "h6", "p", "blockquote", "pre", "hr", "br"),
    *("ol", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("a", "code", "em", "img", "strong"),
}


def markdown_to_html(markdown: str) -> str:
    """HTML of a body in CommonMark with tables; no HTML written in the Markdown gets through.

    Links to other sites carry `rel="nofollow noopener"`. A level-1 heading becomes level 2, since
    the page's title is its only one. A picture on another site becomes its alternative text: pages
    make no request to strangers, and addresses of pictures that a model wrote are seldom real.
    """
    html: str = _parser().render(storable(markdown))
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        filter_style_properties={"text-align"},
        link_rel=None,  # set below, on links to other sites only
    )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.push("nightdesk", lambda state: _adapt(state.tokens))
    return parser


def _adapt(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.type in {"heading_open", "heading_close"} and token.tag == "h1":
            token.tag = "h2"
        elif token.type == "link_open" and _is_external(str(token.attrs.get("href", ""))):
            token.attrs["rel"] = _EXTERNAL_REL
        elif token.type == "image" and _is_external(str(token.attrs.get("src", ""))):
            token.content = "".join(child.content for child in token.children or ())
            token.type, token.tag, token.children = "text", "", None
        if token.children:
            _adapt(token.children)


def _is_external(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unclosed IPv6 bracket: certainly no address of our own
        return True
    return bool(parts.scheme or parts.netloc) and parts.scheme != "mailto"
