"""Admission: jobs are claimed as far as the budgets have room for the most that they may still spend.

    the gate answers         what fits is claimed
    it is busy               the fault passes: the transaction is tried again, nothing is opened meanwhile
    it is out of order       work goes on without it and says so, but for budgets with `on_error = closed`

The jobs' own limits hold in any case.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session

from nightdesk.db import passes
from nightdesk.desk import queue
from nightdesk.desk.queue import Candidate, Claim, Pin
from nightdesk.money import ZERO
from nightdesk.spend import gate
from nightdesk.spend.budgets import Budget, in_force
from nightdesk.states import OnError, Phase, ScopeKind

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants to work on; see `queue.claim`.

    `cheap_model` is what draft is begun with while a budget that says so is over its warning.
    """

    run: str
    phase: Phase
    limit: int
    lease_s: float
    pin: Pin
    articles: Sequence[uuid.UUID] | None = None
    closed_sites: Sequence[str] = ()
    suspects: bool = False
    cheap_model: str | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What was claimed; `gate_error` says why it was settled without the gate."""

    claims: list[Claim]
    gate_error: str | None = None


def admit(session: Session, order: Order) -> Admission:
    """Claim what fits into all budgets, in the queue's order.

    Who holds the budgets waits for nobody: what others have locked is skipped. So the transaction may hold
    jobs of its own before.

    Raises:
        sqlalchemy.exc.OperationalError: for faults that pass, a lock that was not had among them.
    """
    try:
        with session.begin_nested():
            return Admission(_gated(session, order))
    except Exception as error:
        if passes(error):
            raise
        return _without_gate(session, order, error)


def _gated(session: Session, order: Order) -> list[Claim]:
    asked = gate.ask(session)
    if asked is None:
        return _ungated(session, order)
    fitting = _fitting(session, asked, order)
    gate.record(session, asked, run=order.run, phase=order.phase)
    return queue.claim_these(
        session,
        fitting,
        run=order.run,
        phase=order.phase,
        lease_s=order.lease_s,
        pin=_pin(asked, order),
    )


def _ungated(session: Session, order: Order) -> list[Claim]:
    return queue.claim(
        session,
        run=order.run,
        phase=order.phase,
        limit=order.limit,
        lease_s=order.lease_s,
        pin=order.pin,
        articles=order.articles,
        closed_sites=order.closed_sites,
        suspects=order.suspects,
    )


def _without_gate(session: Session, order: Order, error: Exception) -> Admission:
    why = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    closed = [one for one in _known(session) if one.on_error is OnError.CLOSED]
    if any(one.scope is not ScopeKind.SITE and one.covers(site="", phase=order.phase) for one in closed):
        log.error("the gate is out of order, and a budget says that nothing begins without it (%s)", why)
        return Admission([], why)
    log.error("the gate is out of order: jobs begin without it (%s)", why)
    sites = [one.scope_name for one in closed if one.scope is ScopeKind.SITE]
    return Admission(_ungated(session, replace(order, closed_sites=[*order.closed_sites, *sites])), why)


def _known(session: Session) -> list[Budget]:
    """The budgets, if at least they can be read."""
    try:
        with session.begin_nested():
            return [policy.budget for policy in in_force(session)]
    except Exception as error:
        if passes(error):
            raise
        return []


def _fitting(session: Session, asked: gate.Ask, order: Order) -> list[int]:
    """The ids of the jobs that fit. The jobs of a site whose own budget is full do not hide the others'."""
    fitting: list[int] = []
    floors = [one.budget.priority_at_warn for one in asked.at_warn(phase=order.phase)]
    while len(fitting) < order.limit and not asked.stops(order.phase):
        found = queue.candidates(
            session,
            phase=order.phase,
            limit=order.limit - len(fitting),
            articles=order.articles,
            closed_sites=[*order.closed_sites, *asked.stopped_sites()],
            suspects=order.suspects,
            taken=fitting,
            least_priority=max((floor for floor in floors if floor is not None), default=None),
        )
        before = len(fitting), asked.stopped_sites()
        for job in found:
            if asked.stops(order.phase):
                break
            if _admitted(asked, job, order):
                fitting.append(job.job_id)
        if (len(fitting), asked.stopped_sites()) == before:
            break
    return fitting


def _admitted(asked: gate.Ask, job: Candidate, order: Order) -> bool:
    # A phase that asks no model spends nothing.
    hold_usd = job.left_usd if order.pin.provider is not None else ZERO
    return asked.admits(job.job_id, site=job.site, phase=order.phase, hold_usd=hold_usd)


def _pin(asked: gate.Ask, order: Order) -> Pin:
    cheap = any(one.budget.cheap_at_warn for one in asked.at_warn(phase=order.phase))
    if cheap and order.phase is Phase.DRAFT and order.cheap_model is not None:
        return replace(order.pin, model=order.cheap_model)
    return order.pin
