"""What a text holds besides its words: programs, depths that nobody sees, nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from nightdesk.desk import quality
from nightdesk.desk.quality import RULES, Requirements, Verdict, check_html, check_markdown
from nightdesk.desk.quality.article import MAX_DEPTH
from nightdesk.languages import LANGUAGES

EN = Requirements(LANGUAGES["en"])
WORDS = "A heat pump moves heat into the house."


def _rules(verdict: Verdict) -> set[str]:
    assert verdict.ok is not any(finding.severity == "block" for finding in verdict.findings)
    return {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>",
        "<ScRiPt src='/x.js'></sCrIpT>",
        "<svg><script>alert(1)</script></svg>",
        "<p onclick='alert(1)'>Press.</p>",
        "<img src='a.png'/onerror=alert(1)>",
        "<svg\nonload = alert(1)></svg>",
        "<a href='javascript:alert(1)'>this</a>",
        "<a href=' Java\tScript:alert(1)'>this</a>",
        "<a href='&#106;avascript:alert(1)'>this</a>",
        "<a href='data:text/html,x'>this</a>",
        "<a href='vbscript:x'>this</a>",
        "<form action='javascript:alert(1)'></form>",
        "<svg><a xlink:href='javascript:alert(1)'>x</a></svg>",
        "<iframe srcdoc='&lt;b>x'></iframe>",
    ],
)
def test_what_would_run_in_a_readers_browser_is_held_in_html_and_in_markdown(html: str) -> None:
    assert _rules(check_html(f"<p>{WORDS}</p>{html}", EN)) == {"active_content"}
    assert _rules(check_markdown(f"{WORDS}\n\n<div>{html}</div>\n", EN)) == {"active_content"}


@pytest.mark.parametrize(
    "link",
    [
        "[this](javascript:alert(1))",
        "[this]( JavaScript:alert(1) )",
        "[this](<data:text/html,x>)",
        "<vbscript:x>",
        "[this]: javascript:alert(1)",
    ],
)
def test_a_markdown_link_that_is_a_program_is_held(link: str) -> None:
    assert _rules(check_markdown(f"{WORDS}\n\n{link}\n", EN)) == {"active_content"}


@pytest.mark.parametrize(
    "text",
    [
        "Write `<script>` and `onclick=` or `[x](javascript:y)` in code.",
        "The word javascript: what it means, on the data: side.",
        "![a dot](data:image/png;base64,iVBORw0KGgo=)",
        "An [address](/data:1) and <https://a.example/?q=javascript:>.",
    ],
)
def test_what_only_speaks_of_programs_passes(text: str) -> None:
    assert _rules(check_markdown(f"{text}\n", EN)) == set()


@pytest.mark.parametrize("depth", [20, 101, 5_000])
@pytest.mark.parametrize("mark", ["> ", "- "])
def test_markdown_that_is_nested_too_deep_to_be_shown_is_held(mark: str, depth: int) -> None:
    assert "too_deep" in _rules(check_markdown(f"{WORDS}\n\n{mark * depth}[TODO: price]\n\nAfter it.\n", EN))


def test_markdown_nested_as_people_do_passes() -> None:
    text = (
        f"{WORDS}\n\n" + "".join(f"{'  ' * depth}- item\n" for depth in range(8)) + f"\n{'> ' * 9}quoted.\n"
    )
    assert _rules(check_markdown(text, EN)) == set()


@pytest.mark.parametrize("tag", ["div", "ul><li", "section><p"])
def test_html_nested_a_hundred_deep_is_read(tag: str) -> None:
    assert _rules(check_html(f"<{tag}>" * 101 + "[TODO: price]", EN)) == {"placeholder_todo"}


@pytest.mark.timeout(20)  # a parse of this text takes minutes
@pytest.mark.parametrize("tag", ["div", "i id=x", "ul><li"])
def test_html_nested_too_deep_to_be_read_is_held_at_once(tag: str) -> None:
    assert _rules(check_html(f"<{tag}>" * 300_000 + WORDS, EN)) == {"too_deep"}


@given(
    st.integers(2 * MAX_DEPTH, 5_000),
    st.sampled_from(["<p>a", "<ul><li>a</ul>", "<br>", "<b>a</b>", "</div>"]),
)
@settings(max_examples=10, deadline=None)
def test_many_elements_side_by_side_are_not_deep(many: int, piece: str) -> None:
    assert "too_deep" not in _rules(check_html(piece * many, EN))


@pytest.mark.parametrize(
    "text", ["", " \n\t\n", "\x00\x00", "\u200b\ufeff", "&nbsp;", "<!-- a -->", "<p></p>"]
)
def test_a_text_with_nothing_in_it_is_held(text: str) -> None:
    for check in (check_html, check_markdown):
        assert _rules(check(text, EN)) == {"empty_text"}


def test_every_rule_that_the_gate_knows_is_listed_and_no_other() -> None:
    named: set[str] = set()
    for file in Path(quality.__file__).parent.rglob("*.py"):
        named.update(
            regex.findall(r"(?:\bfinding|\bLeftover)\(\s*(?:#.*\s*)?\"(\w+)\"", file.read_text("utf-8"))
        )
    assert named == RULES
