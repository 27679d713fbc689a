"""Admission: jobs are claimed as far as the budgets have room for the most that they may still spend."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session

from nightdesk.desk import queue
from nightdesk.desk.queue import Candidate, Claim, Pin
from nightdesk.money import ZERO
from nightdesk.spend import gate
from nightdesk.states import Phase


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


def admit(session: Session, order: Order) -> list[Claim]:
    """Claim what fits into all budgets, in the queue's order.

    Who holds the budgets waits for nobody: what others have locked is skipped. So the transaction may hold
    jobs of its own before.
    """
    asked = gate.ask(session)
    if asked is None:
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
