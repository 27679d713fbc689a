"""From sections to one Markdown text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from nightdesk.desk.composition import assemble, one_line
from nightdesk.desk.outputs import Section


def test_the_h2s_of_the_text_are_the_headings_of_the_sections_in_order() -> None:
    sections = [
        Section(heading="One", body="a\n\n## sneaky\n\nb"),
        Section(heading="Two\nlines", body="# loud\nc"),
    ]
    tokens = MarkdownIt().parse(assemble("intro\n\n# title again", sections))
    headings = [(t.tag, tokens[i + 1].content) for i, t in enumerate(tokens) if t.type == "heading_open"]
    assert [text for tag, text in headings if tag == "h2"] == ["One", "Two lines"]
    assert not [tag for tag, _ in headings if tag == "h1"]


@given(st.text())
def test_one_line_is_one_storable_line(text: str) -> None:
    line = one_line(text)
    assert "\n" not in line
    assert "\x00" not in line
    line.encode("utf-8")
