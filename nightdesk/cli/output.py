"""How the command line speaks: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nightdesk.insights import ArticleSummary
from nightdesk.money import show_usd

console = Console(highlight=False)
_STYLES = {
    "published": "green",
    "needs_review": "yellow",
    "dead": "red",
    "failed": "red",
    "waiting": "magenta",
    "working": "cyan",
}


def complain(message: str) -> None:
    """One message on standard error."""
    Console(stderr=True, highlight=False).print(Text(f"nightdesk: {message}"), soft_wrap=True)


def print_json(value: Any) -> None:
    """`value` as JSON on standard output."""
    sys.stdout.write(to_json(value) + "\n")


def write_json(path: Path, value: Any) -> None:
    """`value` as a JSON file, whole or not at all."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_text(to_json(value) + "\n", encoding="utf-8")
    unfinished.replace(path)


def to_json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, indent=2)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case Decimal():
            # Shown only: the shortest float that reads as this amount has the same digits.
            return float(value)
        case datetime():
            return value.isoformat()
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def articles_table(articles: Sequence[ArticleSummary], title: str | None = None) -> Table:
    """Where articles stand."""
    table = Table(title=title, title_justify="left", expand=True, show_edge=False, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("topic", ratio=3, overflow="ellipsis", no_wrap=True)
    table.add_column("site", no_wrap=True)
    table.add_column("lang", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("words", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("draft prompt", no_wrap=True, overflow="ellipsis", max_width=10)
    table.add_column("page or reason", ratio=4, overflow="fold")
    for article in articles:
        moving = article.state in ("working", "queued")
        state = f"{article.phase}{' …' if article.state == 'working' else ''}" if moving else article.state
        page = article.url if article.state == "published" else None
        reason = "; ".join(reason["message"] for reason in article.reasons)
        table.add_row(
            str(article.number),
            Text(article.topic),
            article.site,
            article.language,
            Text(state, style=_STYLES.get(article.state, "")),
            str(article.words or ""),
            show_usd(article.cost_usd) if article.cost_usd else "",
            str(article.tokens or ""),
            (article.prompt_version or "").partition("@")[0],
            Text(page or reason),
        )
    return table
