"""What would run in a reader's browser: scripts, event handlers and addresses that are programs."""

from __future__ import annotations

from collections.abc import Iterator

import regex
from selectolax.lexbor import LexborHTMLParser

# Browsers ignore these characters in front of and inside a scheme.
_IGNORED = regex.compile(r"[\x00-\x20]")
# `data:` leads to a page of the writer's making. As the source of a picture it is only a picture.
_PROGRAM = ("javascript:", "vbscript:", "data:")
_TARGETS = ("href", "xlink:href", "action", "formaction")
# Most texts have none of these words: only the others are walked element by element.
_MAY_BE_ACTIVE = regex.compile(r"(?i)[\s/\"'](?:on\w{3,30}|xlink:href|srcdoc)[\s/]{0,100}=")


def active_content(tree: LexborHTMLParser, html: str) -> Iterator[str]:
    """Each thing in the page that would run, as a passage of it."""
    for _ in tree.css("script"):
        yield "<script>"
    for node in tree.css("*" if _MAY_BE_ACTIVE.search(html) else "[href], [action], [formaction]"):
        for name, value in node.attributes.items():
            if _runs(name.lower(), value or ""):
                yield f'<{node.tag} {name}="{value or ""}">'


def _runs(name: str, value: str) -> bool:
    if name in _TARGETS:
        return _IGNORED.sub("", value).casefold().startswith(_PROGRAM)
    return name == "srcdoc" or name.startswith("on")
