"""How the command line speaks, however narrow or poor the terminal is."""

from __future__ import annotations

import io
import json
import sys
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from nightdesk.cli.output import articles_table, print_json
from nightdesk.insights import ArticleSummary
from nightdesk.states import ArticleState


def an_article(**changes: Any) -> ArticleSummary:
    fields: dict[str, Any] = {
        "id": uuid.UUID(int=1), "number": 1234, "topic": "Starting a compost heap in a small town garden",
        "site": "the-garden-of-a-long-name", "language": "sr-Cyrl", "priority": 0,
        "state": ArticleState.NEEDS_REVIEW, "phase": "publish", "words": 1234, "cost_usd": Decimal("1.2345"),
        "tokens": 123_456, "prompt_version": "draft/1@x", "url": None, "verified_at": None, "reasons": (),
    }  # fmt: skip
    return ArticleSummary(**fields | changes)


def shown(width: int, *articles: ArticleSummary) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(articles_table(articles, width=width))
    return out.getvalue()


def test_a_narrow_terminal_keeps_the_number_and_a_readable_topic() -> None:
    page = shown(40, an_article())
    assert "1234" in page
    assert "Starting a compost heap" in page
    assert "sr-Cyrl" not in page


def test_a_wide_terminal_shows_every_column() -> None:
    page = shown(160, an_article())
    for part in ("sr-Cyrl", "the-garden-of-a-long-name", "needs_review", "$1.2345", "123456", "draft/1"):
        assert part in page
    assert "Starting a compost heap in a small town garden" in page


@given(
    st.integers(36, 200),
    st.sampled_from(["garden", "a-site-with-quite-a-long-name-indeed"]),
    st.integers(1, 10**7),
)
def test_at_any_usual_width_the_topic_has_room_and_nothing_is_wider(
    width: int, site: str, number: int
) -> None:
    page = shown(width, an_article(site=site, number=number), an_article())
    assert str(number) in page
    assert "Starting a compost" in page
    assert all(len(line) <= width for line in page.split("\n"))


def test_an_empty_list_has_its_header() -> None:
    assert "topic" in shown(40)


@pytest.mark.parametrize(("encoding", "ascii_only"), [("ascii", True), ("latin-1", True), ("utf-8", False)])
def test_json_is_json_in_every_encoding(
    monkeypatch: pytest.MonkeyPatch, encoding: str, ascii_only: bool
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    print_json({"topic": "Башта 🍅"})
    sys.stdout.flush()
    assert raw.getvalue().isascii() is ascii_only
    assert json.loads(raw.getvalue().decode(encoding)) == {"topic": "Башта 🍅"}
