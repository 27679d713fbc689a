"""`nightdesk status`: the desk at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nightdesk.insights import DeskStatus


def status(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Show what waits, what is at work, what is closed, and what needs a person."""
    from nightdesk.cli.output import print_json
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.insights import desk_status

    with open_database(load_settings()) as database, database.reading() as session:
        found = desk_status(session)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(status: DeskStatus) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from nightdesk.cli.output import console
    from nightdesk.money import show_usd
    from nightdesk.states import JobState, Phase

    shown = [state for state in JobState if any(state in counts for counts in status.jobs.values())]
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    table.add_column("phase", no_wrap=True)
    for state in shown:
        table.add_column(state, justify="right")
    for phase in Phase:
        counts = status.jobs.get(phase, {})
        table.add_row(phase, *(str(counts.get(state, "")) for state in shown))
    console.print(table)
    console.print(
        f"last 24 hours: {status.published_24h} published, {show_usd(status.spent_24h_usd)} spent; "
        f"{status.open_calls} calls in flight",
        soft_wrap=True,
    )
    for lane in status.closed_lanes:
        until = f"{lane['until']:%H:%M:%S} UTC"
        said = f"{lane['kind']} {lane['name']} is closed until {until}: {lane['reason']}"
        console.print(Text(said), soft_wrap=True)
    review = sum(counts.get(JobState.NEEDS_REVIEW, 0) for counts in status.jobs.values())
    if status.open_letters or review:
        console.print(
            f"a person is needed: {status.open_letters} dead letters (nightdesk dlq list), "
            f"{review} to review (nightdesk articles list --state needs_review)",
            soft_wrap=True,
        )
