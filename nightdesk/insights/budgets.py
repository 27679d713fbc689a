"""Budgets as a person sees them: how far they are spent, and when a closed one opens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlmodel import Session

from nightdesk.spend import budgets
from nightdesk.spend.gate import state
from nightdesk.spend.window import Measure, measure, reopens_at
from nightdesk.states import BudgetState


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """One budget now."""

    name: str
    scope: str  #: `all`, `site garden`, `phase draft`
    window: str  #: `5 h`, `day in Europe/Berlin`
    state: BudgetState
    spent_usd: Decimal
    held_usd: Decimal  #: the most that what is at work may still spend
    cap_usd: Decimal
    room_usd: Decimal  #: for new work
    is_full: bool  #: a job of the given size does not fit
    reopens_at: datetime | None  #: when it will, if nothing is spent until then


def budget_statuses(session: Session, task_usd: Decimal) -> list[BudgetStatus]:
    """All budgets in force; `is_full` and `reopens_at` are asked for a job that may cost `task_usd`."""
    return [_status(session, found, task_usd) for found in measure(session, budgets.in_force(session))]


def _status(session: Session, found: Measure, task_usd: Decimal) -> BudgetStatus:
    budget = found.policy.budget
    return BudgetStatus(
        name=budget.name,
        scope=f"{budget.scope} {budget.scope_name}".strip(),
        window=f"day in {budget.time_zone}" if budget.window_s is None else _length(budget.window_s),
        state=state(found),
        spent_usd=found.spent_usd,
        held_usd=found.held_usd,
        cap_usd=budget.cap_usd,
        room_usd=max(budget.cap_usd - found.exposure_usd, Decimal(0)),
        is_full=found.exposure_usd + task_usd > budget.cap_usd,
        reopens_at=reopens_at(session, found, task_usd),
    )


def _length(seconds: int) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
