"""`nightdesk budget`: what may be spent, and what is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nightdesk.states import ScopeKind

if TYPE_CHECKING:
    from nightdesk.insights import BudgetStatus
    from nightdesk.spend.budgets import Budget

app = typer.Typer(help="Budgets: what may be spent, on what, in which time.", no_args_is_help=True)
_Name = Annotated[str, typer.Argument(metavar="NAME", help="Such as fleet.")]
_Who = Annotated[str, typer.Option(help="Who decides; default: the account that runs this.")]
_Why = Annotated[str, typer.Option(help="Why, for the record.")]


@app.command()
def show(
    for_usd: Annotated[
        str | None, typer.Option("--for-usd", help="For a job of this size; default: jobs.max_usd.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show each budget: state, spent, held, cap, and when a closed one opens again."""
    from nightdesk.cli.output import console, print_json
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.insights import budget_statuses
    from nightdesk.money import parse_usd

    settings = load_settings()
    task_usd = settings.jobs.max_usd if for_usd is None else parse_usd(for_usd)
    with open_database(settings) as database, database.reading() as session:
        found = budget_statuses(session, task_usd)
    if as_json:
        print_json(found)
    elif not found:
        console.print("no budget: nothing is limited but each job (jobs.max_usd); set one with")
        console.print("  nightdesk budget set fleet --cap 100")
    else:
        _print(found)


@app.command("set")
def set_(
    name: _Name,
    cap: Annotated[str, typer.Option(help="In USD, such as 100.")],
    window_h: Annotated[
        int | None, typer.Option(min=1, max=744, help="Rolling, in hours; default: 5.")
    ] = None,
    day: Annotated[str | None, typer.Option(help="By the day in this time zone, instead.")] = None,
    warn: Annotated[str, typer.Option(help="The part of the cap at which to warn.")] = "0.8",
    scope: Annotated[ScopeKind, typer.Option(help="Whose money it counts.")] = ScopeKind.ALL,
    of: Annotated[str, typer.Option(help="The site or the phase, if the scope is one.")] = "",
    cheap_at_warn: Annotated[
        bool, typer.Option(help="Over the warning, draft with the cheap model.")
    ] = False,
    priority_at_warn: Annotated[
        int | None, typer.Option(help="Over the warning, topics below this priority wait.")
    ] = None,
    who: _Who = "",
    why: _Why = "",
) -> None:
    """Set a budget, or change one: it holds from the next job on, with no restart."""
    from nightdesk.cli.output import console
    from nightdesk.config import load_settings
    from nightdesk.money import show_usd

    fields: dict[str, Any] = {"scope": scope, "scope_name": of, "warn_ratio": warn}
    if day is not None:
        fields |= {"window": "day", "time_zone": day}
    if window_h is not None:
        fields |= {"window_s": window_h * 3600}
    budget = _budget(
        name, cap, fields | {"cheap_at_warn": cheap_at_warn, "priority_at_warn": priority_at_warn}
    )
    changed = _save(budget, who=who, why=why, active=True)
    what = "is in force" if changed else "is in force already"
    console.print(f"budget {name} of {show_usd(budget.cap_usd, 2)} {what}", soft_wrap=True)
    one_job = load_settings().jobs.max_usd
    if budget.cap_usd < one_job:
        console.print(
            f"no job fits into it: each may spend {show_usd(one_job, 2)} (jobs.max_usd in nightdesk.toml)",
            soft_wrap=True,
        )


@app.command()
def drop(name: _Name, who: _Who = "", why: _Why = "") -> None:
    """Let a budget limit nothing any more; its history stays."""
    from nightdesk.cli.output import console
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.errors import InputError, InputProblem
    from nightdesk.spend.budgets import in_force

    with open_database(load_settings()) as database, database.reading() as session:
        found = next((one.budget for one in in_force(session) if one.budget.name == name), None)
    if found is None:
        raise InputError("the argument", [InputProblem(f"there is no budget '{name}'")])
    _save(found, who=who, why=why, active=False)
    console.print(f"budget {name} limits nothing any more")


def _budget(name: str, cap: str, fields: dict[str, Any]) -> Budget:
    """The budget that the options describe.

    Raises:
        InputError: with one line for each that cannot be.
    """
    from pydantic import ValidationError

    from nightdesk.errors import InputError, InputProblem
    from nightdesk.money import parse_usd
    from nightdesk.spend.budgets import Budget
    from nightdesk.validation import wrong_fields

    try:
        return Budget.model_validate({"name": name, "cap_usd": parse_usd(cap)} | fields)
    except ValidationError as error:
        wrong = [InputProblem(one) for one in wrong_fields(error, name)]
        raise InputError("the options", wrong) from None


def _save(budget: Budget, *, who: str, why: str, active: bool) -> bool:
    from nightdesk.cli.output import account
    from nightdesk.config import load_settings
    from nightdesk.connection import open_database
    from nightdesk.spend.budgets import save

    with open_database(load_settings()) as database, database.transaction() as session:
        return save(session, budget, who=who or account(), why=why, active=active)


def _print(found: list[BudgetStatus]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from nightdesk.cli.output import console
    from nightdesk.money import show_usd

    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for name in ("budget", "of", "window", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("spent", "held", "cap", "room"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("opens again", no_wrap=True)
    for one in found:
        opens = f"{one.reopens_at:%Y-%m-%d %H:%M:%S} UTC" if one.reopens_at else ""
        amounts = (one.spent_usd, one.held_usd, one.cap_usd, one.room_usd)
        table.add_row(one.name, one.scope, one.window, one.state, *map(show_usd, amounts), opens)
    console.print(table)
