"""All commands."""

from __future__ import annotations

from typing import Annotated

import typer

from nightdesk import __version__
from nightdesk.cli import articles, budget, check, demo, dlq, jobs, run, sandbox, sites, status, topics, up

app = typer.Typer(
    name="nightdesk",
    help="An AI content studio that works while you sleep, and never spends more than it was told to.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(topics.app, name="topics")
app.add_typer(articles.app, name="articles")
app.add_typer(jobs.app, name="jobs")
app.add_typer(dlq.app, name="dlq")
app.add_typer(budget.app, name="budget")
app.add_typer(sites.app, name="sites")
app.command("run")(run.run)
app.command("up")(up.up)
app.command("status")(status.status)
app.command("check")(check.check)
app.command("demo")(demo.demo)
app.command("sandbox")(sandbox.sandbox)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nightdesk {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
