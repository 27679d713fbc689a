"""How the command line speaks: tables for people, JSON for programs."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nightdesk.money import show_usd

if TYPE_CHECKING:
    from nightdesk.insights import ArticleSummary

console = Console(highlight=False)
_NUMBERS = frozenset({"#", "words", "cost", "tokens"})
_DROPPED_FIRST = ("prompt", "tokens", "lang", "words", "site", "cost", "state")
_TOPIC_COLUMNS = 26
_STYLES = {
    "published": "green",
    "needs_review": "yellow",
    "dead": "red",
    "failed": "red",
    "waiting": "magenta",
    "working": "cyan",
}


def account() -> str:
    """The account that runs this, for the record of who decided."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def complain(message: str) -> None:
    """One message on standard error."""
    Console(stderr=True, highlight=False).print(Text(f"nightdesk: {message}"), soft_wrap=True)


def print_json(value: Any) -> None:
    """`value` as JSON on standard output, in ASCII if that has no Unicode."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(to_json(value, ascii_only=not unicode) + "\n")


def write_json(path: Path, value: Any) -> None:
    """`value` as a JSON file, whole or not at all."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.write_text(to_json(value) + "\n", encoding="utf-8")
    unfinished.replace(path)


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    return json.dumps(_plain(value), ensure_ascii=ascii_only, indent=2)


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


def articles_table(
    articles: Sequence[ArticleSummary], title: str | None = None, *, width: int | None = None
) -> Table:
    """Where articles stand; in a narrow terminal without the less important columns."""
    cells = [_cells(article) for article in articles]
    shown = _fitting(cells, width or console.width)
    table = Table(title=title, title_justify="left", expand=True, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in shown:
        if name == "topic":
            table.add_column(name, ratio=1, overflow="ellipsis", no_wrap=True)
        else:
            table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for row in cells:
        table.add_row(*(row[name] for name in shown))
    return table


def work_table(number: str, *columns: str) -> Table:
    """An empty table of the width of the terminal: a number, the article, and narrow columns."""
    table = Table(box=SIMPLE_HEAD, expand=True, padding=(0, 1, 0, 0))
    table.add_column(number, justify="right", no_wrap=True)
    table.add_column("article", ratio=1, overflow="ellipsis", no_wrap=True)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def print_note(number: int, note: str) -> None:
    """What is to be said of one row, below its table; it stays whole."""
    console.print(Text(f"{number:>3}  {note}"), soft_wrap=True)


def _cells(article: ArticleSummary) -> dict[str, Text]:
    return {
        "#": Text(str(article.number)),
        "topic": Text(article.topic),
        "site": Text(article.site),
        "lang": Text(article.language),
        "state": Text(_standing(article), style=_STYLES.get(article.state, "")),
        "words": Text(str(article.words or "")),
        "cost": Text(show_usd(article.cost_usd) if article.cost_usd else ""),
        "tokens": Text(str(article.tokens or "")),
        "prompt": Text((article.prompt_version or "").partition("@")[0]),
    }


def _fitting(cells: Sequence[dict[str, Text]], width: int) -> list[str]:
    """The columns that leave the topic room to be read."""
    shown = ["#", "topic", "site", "lang", "state", "words", "cost", "tokens", "prompt"]
    widths = {name: max([len(name), *(row[name].cell_len for row in cells)]) for name in shown}
    for dropped in _DROPPED_FIRST:
        # Beside each column stands a space, and another where the box would have its lines.
        taken = sum(widths[name] + 2 for name in shown if name != "topic")
        if width - taken >= _TOPIC_COLUMNS:
            break
        shown.remove(dropped)
    return shown


def print_articles(articles: Sequence[ArticleSummary]) -> None:
    """The table, and below it each article's page or what stopped it; addresses stay whole."""
    console.print(articles_table(articles))
    for article in articles:
        for line in _outcome(article):
            console.print(line, soft_wrap=True)


def _standing(article: ArticleSummary) -> str:
    match article.state:
        case "working":
            return f"{article.phase} …"
        case "queued":
            return article.phase
        case state:
            return state


def _outcome(article: ArticleSummary) -> list[Text]:
    """The page of a published article, the reasons of one that stopped, nothing for one that moves."""
    head = f"{article.number:>3}  "
    if article.state == "published":
        return [Text(f"{head}{article.url}")]
    return [
        Text(
            f"{head}{article.topic}: {reason['rule']}: {reason['message']}"
            + (f" «{reason['passage']}»" if reason["passage"] else ""),
            style=_STYLES.get(article.state, ""),
        )
        for reason in article.reasons
    ]
