"""`nightdesk dlq`: the dead letters, and what a person does about them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="Dead letters: jobs that were given up, with their whole context.", no_args_is_help=True
)

_Ids = Annotated[list[int], typer.Argument(metavar="LETTER...", help="Numbers of dead letters.", min=1)]
_Why = Annotated[str, typer.Option(help="Why, for the record.")]
_Who = Annotated[str, typer.Option(help="Who decides; default: the account that runs this.")]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command("list")
def list_(
    all_: Annotated[bool, typer.Option("--all", help="Those that were dealt with too.")] = False,
    limit: Annotated[int, typer.Option(min=1)] = 100,
    as_json: _Json = False,
) -> None:
    """List the dead letters that nobody has dealt with, the newest first."""
    from rich.text import Text

    from nightdesk.cli.output import console, print_json, print_note, work_table
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.insights import letters
    from nightdesk.money import show_usd

    with open_database(load_settings()) as database, database.reading() as session:
        found = letters(session, resolved=all_, limit=limit)
    if as_json:
        print_json(found)
        return
    if not found:
        console.print("no dead letters")
        return
    table = work_table("#", "phase", "error", "tries", "cost", "by", "resolution")
    for one in found:
        table.add_row(
            str(one.id), Text(one.topic), one.phase, one.error_class, str(one.attempts),
            show_usd(one.cost_usd), one.layer, one.resolution or "",
        )  # fmt: skip
    console.print(table)
    for one in found:
        print_note(one.id, one.message)


@app.command()
def show(
    letter: Annotated[int, typer.Argument(help="Number of the letter.")], as_json: _Json = False
) -> None:
    """Show one dead letter: input, error, stack, every attempt, cost, run."""
    from nightdesk.cli.output import print_json
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.errors import InputError, InputProblem
    from nightdesk.insights import letter as find

    with open_database(load_settings()) as database, database.reading() as session:
        found = find(session, letter)
    if found is None:
        raise InputError("the argument", [InputProblem(f"there is no dead letter {letter}")])
    if as_json:
        print_json(found)
    else:
        _print(found)


@app.command()
def requeue(
    letters: _Ids,
    why: _Why,
    who: _Who = "",
    max_usd: Annotated[str | None, typer.Option(help="A new limit in USD for the job.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="A new limit in tokens for the job.")] = None,
) -> None:
    """Try the jobs of dead letters again, with all their attempts; the letters stay as history."""
    from nightdesk.cli.output import account, console
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.desk.dead_letters import requeue as requeue_one
    from nightdesk.money import parse_usd

    limit_usd = None if max_usd is None else parse_usd(max_usd)
    with open_database(load_settings()) as database, database.transaction() as session:
        for letter in letters:
            requeue_one(
                session, letter, who=who or account(), why=why, max_usd=limit_usd, max_tokens=max_tokens
            )
    console.print(f"{len(letters)} requeued: the next tick of their phase claims them")


@app.command()
def discard(letters: _Ids, why: _Why, who: _Who = "") -> None:
    """Give up the articles of dead letters for good; the letters stay as history."""
    from nightdesk.cli.output import account, console
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.desk.dead_letters import discard as discard_one

    with open_database(load_settings()) as database, database.transaction() as session:
        for letter in letters:
            discard_one(session, letter, who=who or account(), why=why)
    console.print(f"{len(letters)} discarded")


def _print(letter: dict[str, Any]) -> None:
    from rich.text import Text

    from nightdesk.cli.output import console
    from nightdesk.money import show_usd

    def line(name: str, value: object) -> None:
        console.print(Text(f"{name:>12}  ", style="dim"), Text(str(value)), sep="", soft_wrap=True)

    line(
        "letter",
        f"{letter['id']} of {letter['created_at']:%Y-%m-%d %H:%M:%S} UTC, brought by {letter['layer']}",
    )
    line("article", f"{letter['number']}. {letter['topic']} ({letter['site']})")
    line("phase", letter["phase"])
    line("error", f"{letter['error_class']}: {letter['message']}")
    line("cost", show_usd(letter["cost_usd"]))
    line("run", letter["run_url"] or letter["run"] or "-")
    if letter["resolution"]:
        line("resolution", f"{letter['resolution']} by {letter['resolved_by']}: {letter['resolved_why']}")
    for attempt in letter["attempts"]:
        line(
            f"attempt {attempt['claim_no']}",
            f"{attempt['started_at']} to {attempt['ended_at']}: {attempt['outcome']}, "
            f"{attempt['error_class']}: {attempt['error_message']} (run {attempt['run']})",
        )
    line("input", json.dumps(letter["input"], ensure_ascii=False, indent=2))
    line("stack", letter["stack"] or "none was recorded")
