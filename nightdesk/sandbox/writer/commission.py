"""What a prompt asks for, from its labelled lines.

One label per line: `topic:`, `primary keyword:`, `language: <name> (<tag>)`, `audience:`,
`minimum words:`, `title:`, `section:` (repeated), and for a revision `current title:`,
`current introduction:` and `current section: <heading>`, the last two followed by text up to the
next labelled line. Sources are blocks from `<source nonce="…" url="…">` to `</source …>`; nothing
inside them is read as a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

from nightdesk.errors import ConfigError
from nightdesk.languages import language

_SOURCE = regex.compile(
    r'^<source\b[^>\n]*\burl="(?P<url>[^"\n]*)"[^>\n]*>[^\S\n]*\n(?P<text>.*?)^</source\b[^>\n]*>',
    regex.DOTALL | regex.MULTILINE,
)
_LABEL = regex.compile(
    r"^(?P<label>topic|primary keyword|language|audience|minimum words|title|section|"
    r"current title|current introduction|current section)[^\S\n]*:[^\S\n]*(?P<value>.*?)[^\S\n]*$",
    regex.MULTILINE,
)
_TAG = regex.compile(r"\(([^()]+)\)\s*$")
_NUMBER = regex.compile(r"\d+")
_DEFAULT_WORDS = 300


@dataclass(frozen=True, slots=True)
class Source:
    """A quoted source."""

    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A heading and the text under it."""

    heading: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commission:
    """What is to be written."""

    topic: str
    keyword: str
    language: str  #: tag
    audience: str
    min_words: int
    title: str
    headings: tuple[str, ...]
    current_title: str
    current_introduction: str
    current_sections: tuple[Passage, ...]
    sources: tuple[Source, ...]


def read_commission(user_text: str) -> Commission:
    """The commission in a prompt; what is missing gets a usable default."""
    sources = tuple(Source(found["url"], found["text"].strip()) for found in _SOURCE.finditer(user_text))
    lines = _SOURCE.sub("\n", user_text)
    labels = list(_LABEL.finditer(lines))
    # The text after a label belongs to it up to the next label or source.
    ends = [*(label.start() for label in labels), len(lines)][1:]
    first: dict[str, str] = {}
    headings: list[str] = []
    passages: list[Passage] = []
    introduction = ""
    for label, end in zip(labels, ends, strict=True):
        name, value, following = label["label"], label["value"], lines[label.end() : end].strip()
        if name == "section":
            headings.append(value)
        elif name == "current section":
            passages.append(Passage(value, following))
        elif name == "current introduction":
            introduction = introduction or f"{value}\n{following}".strip()
        else:
            first.setdefault(name, value)
    topic = first.get("topic") or "daily work"
    return Commission(
        topic=topic,
        keyword=first.get("primary keyword") or topic,
        language=_tag(first.get("language", "")),
        audience=first.get("audience", ""),
        min_words=_number(first.get("minimum words", "")),
        title=first.get("title", ""),
        headings=tuple(dict.fromkeys(headings)),
        current_title=first.get("current title", ""),
        current_introduction=introduction,
        current_sections=tuple(passages),
        sources=sources,
    )


def _tag(value: str) -> str:
    found = _TAG.search(value)
    try:
        return language(found[1] if found else value).tag
    except ConfigError:
        return "en"


def _number(value: str) -> int:
    found = _NUMBER.search(value)
    return int(found[0]) if found else _DEFAULT_WORDS
