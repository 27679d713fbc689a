"""`nightdesk jobs`: the queue itself."""

from __future__ import annotations

from typing import Annotated

import typer

from nightdesk.states import JobState, Phase

app = typer.Typer(help="Jobs: one per article, phase and round.", no_args_is_help=True)
_MOVING = [JobState.READY, JobState.LEASED, JobState.WAITING, JobState.FAILED]


@app.command("list")
def list_(
    state: Annotated[
        list[JobState] | None, typer.Option(help="Only these states; default: all that is not final.")
    ] = None,
    phase: Annotated[Phase | None, typer.Option(help="Only this phase.")] = None,
    limit: Annotated[int, typer.Option(min=1)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List jobs in the order in which they are claimed."""
    from rich.text import Text

    from nightdesk.cli.output import console, print_json, print_note, work_table
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.insights import job_list

    with open_database(load_settings()) as database, database.reading() as session:
        found = job_list(session, states=list(state or _MOVING), phase=phase, limit=limit)
    if as_json:
        print_json(found)
        return
    if not found:
        console.print("no such jobs")
        return
    table = work_table("job", "phase", "state", "tries", "due or held until")
    for job in found:
        until = job["due_at"] or job["locked_until"]
        table.add_row(
            str(job["id"]), Text(job["topic"]), job["phase"], job["state"],
            f"{job['attempts']}/{job['max_attempts']}", f"{until:%Y-%m-%d %H:%M:%S}" if until else "",
        )  # fmt: skip
    console.print(table)
    for job in found:
        if job["reason"] and job["state"] in ("waiting", "failed"):
            print_note(job["id"], job["reason"])
