"""From a phase's sections to one Markdown text and back to the lines that prompts show."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from nightdesk.desk.outputs import Section
from nightdesk.text import storable

_HEADING = regex.compile(r"^[ \t]{0,3}#{1,2}(?!#)[ \t]*(.*)$", regex.MULTILINE)


def assemble(introduction: str, sections: Sequence[Section]) -> str:
    """The body of an article in Markdown: the introduction, then each section under its H2."""
    parts = [_body(introduction)]
    parts += [f"## {one_line(section.heading)}\n\n{_body(section.body)}" for section in sections]
    return "\n\n".join(part for part in parts if part) + "\n"


def one_line(text: str) -> str:
    """White space folded, so that a heading or a title stays one line."""
    return regex.sub(r"\s+", " ", storable(text)).strip()


def _body(text: str) -> str:
    # An H1 or H2 inside a body would change the outline: it becomes an H3.
    return _HEADING.sub(lambda match: f"### {match[1].strip()}", storable(text).strip())


def bullets(lines: Sequence[str], *, empty: str) -> str:
    """One line each, or `empty` if there are none."""
    return "\n".join(f"- {one_line(line)}" for line in lines) or empty
