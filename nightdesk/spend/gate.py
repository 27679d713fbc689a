"""The gate: whether new work may begin, by what is spent and what is promised, in one transaction.

    lock all budgets, in one order → measure spent and held in one snapshot → admit what fits → commit

Only who admits, or changes a budget, takes these locks. Locking and measuring in one statement, or
under REPEATABLE READ, measures what was true before the lock was had: then everybody who waited for it
admits by the same room, and twice the cap gets through.

A job is admitted if what is spent, all that is held, and the most that it may itself still spend stay
within the cap of every budget that covers it. The first job that does not fit ends that budget's scope for
this ask: a cheaper one behind it never overtakes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.money import ZERO
from nightdesk.spend.budgets import Policy, in_force, lock
from nightdesk.spend.window import Measure, measure
from nightdesk.states import BudgetState, ScopeKind

#: A state is left only when spend is below its threshold by this part of the cap: alerts do not flap.
HYSTERESIS = Decimal("0.02")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The first job that did not fit into a budget."""

    job_id: int
    hold_usd: Decimal


@dataclass
class _Room:
    """One budget during one ask."""

    found: Measure
    taken_usd: Decimal = ZERO
    admitted: int = 0
    refusal: Refusal | None = None

    def fits(self, hold_usd: Decimal) -> bool:
        return self.found.exposure_usd + self.taken_usd + hold_usd <= self.found.policy.budget.cap_usd


@dataclass
class Ask:
    """One ask for work, under the locks of all budgets."""

    rooms: list[_Room]

    def admits(self, job_id: int, *, site: str, phase: str, hold_usd: Decimal) -> bool:
        """Take room for a job in every budget that covers it, or in none.

        Money that is held stands for nothing if it is zero: such a job always fits.
        """
        if hold_usd <= 0:
            return True
        covering = [room for room in self.rooms if room.found.policy.budget.covers(site=site, phase=phase)]
        refusing = [room for room in covering if room.refusal is not None or not room.fits(hold_usd)]
        for room in refusing:
            room.refusal = room.refusal or Refusal(job_id, hold_usd)
        if refusing:
            return False
        for room in covering:
            room.taken_usd += hold_usd
            room.admitted += 1
        return True

    def stops(self, phase: str) -> bool:
        """True if no job of this phase can fit any more, whatever its site."""
        return any(
            room.refusal is not None
            and room.found.policy.budget.scope is not ScopeKind.SITE
            and room.found.policy.budget.covers(site="", phase=phase)
            for room in self.rooms
        )

    def stopped_sites(self) -> list[str]:
        """The sites whose own budget has refused a job."""
        return sorted(
            room.found.policy.budget.scope_name
            for room in self.rooms
            if room.refusal is not None and room.found.policy.budget.scope is ScopeKind.SITE
        )

    def at_warn(self, *, phase: str) -> list[Policy]:
        """The budgets over their warning that may concern a phase."""
        return [
            room.found.policy
            for room in self.rooms
            if state(room.found) is not BudgetState.NONE
            and room.found.policy.budget.scope is not ScopeKind.SITE
            and room.found.policy.budget.covers(site="", phase=phase)
        ]


def ask(session: Session) -> Ask | None:
    """Lock and measure; None if there is no budget, which costs one look at an empty table."""
    if not lock(session):
        return None
    return Ask([_Room(found) for found in measure(session, in_force(session))])


def state(found: Measure) -> BudgetState:
    """How far a budget is spent; spent to the cap exactly is the cap."""
    budget = found.policy.budget
    if found.spent_usd >= budget.cap_usd:
        return BudgetState.CAP
    if found.spent_usd >= budget.warn_ratio * budget.cap_usd:
        return BudgetState.WARN
    return BudgetState.NONE


# ── what is recorded ─────────────────────────────────────────────────────────────────────────────

_DECIDED = text("""
    INSERT INTO nightdesk.budget_decisions (policy_id, run, phase, admitted, refused_job_id, refused_usd,
        spent_usd, held_usd)
    VALUES (:policy_id, :run, :phase, :admitted, :refused_job_id, :refused_usd, :spent_usd, :held_usd)
""")

_LAST = text("""
    SELECT DISTINCT ON (budget) budget, state, policy_id FROM nightdesk.budget_transitions
    WHERE budget = ANY(:budgets) ORDER BY budget, id DESC
""")

_CHANGED = text("""
    INSERT INTO nightdesk.budget_transitions (budget, policy_id, state, spent_usd)
    VALUES (:budget, :policy_id, :state, :spent_usd)
""")


def record(session: Session, asked: Ask, *, run: str, phase: str) -> None:
    """Write down what each budget decided, and that its state changed. Under the locks of the ask."""
    for room in asked.rooms:
        if room.admitted or room.refusal is not None:
            session.connection().execute(
                _DECIDED,
                {
                    "policy_id": room.found.policy.id,
                    "run": run,
                    "phase": phase,
                    "admitted": room.admitted,
                    "refused_job_id": room.refusal.job_id if room.refusal else None,
                    "refused_usd": room.refusal.hold_usd if room.refusal else None,
                    "spent_usd": room.found.spent_usd,
                    "held_usd": room.found.held_usd,
                },
            )
    record_states(session, [room.found for room in asked.rooms])


def record_states(session: Session, measures: Sequence[Measure]) -> None:
    """Add a transition for each budget whose state is not the one last recorded."""
    budgets = [found.policy.budget.name for found in measures]
    last = {row.budget: row for row in session.connection().execute(_LAST, {"budgets": budgets})}
    for found in measures:
        name = found.policy.budget.name
        before = last.get(name)
        now = settled(
            found,
            BudgetState(before.state) if before else BudgetState.NONE,
            same_policy=before is not None and before.policy_id == found.policy.id,
        )
        if now != (before.state if before else BudgetState.NONE):
            session.connection().execute(
                _CHANGED,
                {
                    "budget": name,
                    "policy_id": found.policy.id,
                    "state": now,
                    "spent_usd": found.spent_usd,
                },
            )


_UNTOLD = text("""
    SELECT t.id, t.budget, t.state, t.spent_usd, p.cap_usd, t.at
    FROM nightdesk.budget_transitions t JOIN nightdesk.budget_policies p ON p.id = t.policy_id
    WHERE t.told_at IS NULL ORDER BY t.id LIMIT :limit
""")

_TOLD = text("""
    UPDATE nightdesk.budget_transitions SET told_at = nightdesk.now() WHERE id = ANY(:ids) AND told_at IS NULL
""")


@dataclass(frozen=True, slots=True)
class Transition:
    """A budget's state changed, and nobody was told yet."""

    id: int
    budget: str
    state: BudgetState
    spent_usd: Decimal
    cap_usd: Decimal
    at: datetime


def untold(session: Session, limit: int = 100) -> list[Transition]:
    """The changes that nobody was told of, in order."""
    rows = session.connection().execute(_UNTOLD, {"limit": limit})
    return [
        Transition(row.id, row.budget, BudgetState(row.state), row.spent_usd, row.cap_usd, row.at)
        for row in rows
    ]


def told(session: Session, ids: Sequence[int]) -> None:
    """These were told; after the telling, so that a death in between tells them again and loses none."""
    session.connection().execute(_TOLD, {"ids": list(ids)})


_RANK = {BudgetState.NONE: 0, BudgetState.WARN: 1, BudgetState.CAP: 2}


def settled(found: Measure, before: BudgetState, *, same_policy: bool) -> BudgetState:
    """The state to alert on: up at once, down only past the hysteresis; a changed budget moves at once."""
    now = state(found)
    if not same_policy or _RANK[now] >= _RANK[before]:
        return now
    margin_usd = HYSTERESIS * found.policy.budget.cap_usd
    lenient = Measure(found.policy, found.spent_usd + margin_usd, found.held_usd)
    return min(before, state(lenient), key=lambda one: _RANK[one])
