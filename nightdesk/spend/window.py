"""What was spent within a budget's window, and when it will be less.

A rolling window is (t − window, t]: money that was spent exactly `window` ago is out. A sum is made of
whole minutes, of whole seconds at its edge, and of the entries of the one second that the edge cuts, so
that it costs the same whatever the ledger holds. All of it in one statement, at one instant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import text
from sqlmodel import Session

from nightdesk.spend.budgets import Policy
from nightdesk.states import WindowKind

_STARTS = """
    CASE WHEN {b}.time_zone IS NULL THEN nightdesk.now() - make_interval(secs => {b}.window_s)
         ELSE date_trunc('day', nightdesk.now() AT TIME ZONE {b}.time_zone) AT TIME ZONE {b}.time_zone
              - interval '1 microsecond' END
"""

_IN_SCOPE = """
    ({b}.scope_kind = 'all' OR ({b}.scope_kind = 'site' AND {row}.site = {b}.scope_name)
     OR ({b}.scope_kind = 'phase' AND {row}.phase = {b}.scope_name))
"""

# What a job may still spend: all of its own limit while it is leased, and what it has in flight in any case.
# A phase that asks no model holds nothing.
_MEASURE = text(f"""
    WITH b AS MATERIALIZED (
        SELECT p.id, p.scope_kind, p.scope_name, {_STARTS.format(b="p")} AS starts
        FROM nightdesk.budget_policies p WHERE p.id = ANY(:policies)
    ), held AS MATERIALIZED (
        SELECT j.site, j.phase, greatest(
            CASE WHEN j.state = 'leased' AND j.provider IS NOT NULL THEN j.max_usd - booked.usd ELSE 0 END,
            open.usd) AS usd
        FROM (SELECT id FROM nightdesk.jobs WHERE state = 'leased'
              UNION SELECT job_id FROM nightdesk.llm_calls WHERE state = 'sent') h
        JOIN nightdesk.jobs j ON j.id = h.id
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(CASE WHEN reverses IS NULL THEN amount ELSE -amount END), 0) AS usd
            FROM nightdesk.ledger_entries WHERE job_id = j.id AND book = 'money') booked
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(worst_case_usd), 0) AS usd
            FROM nightdesk.llm_calls WHERE job_id = j.id AND state = 'sent') open
    )
    SELECT b.id,
        (SELECT coalesce(sum(usd), 0) FROM nightdesk.spend_sums s
         WHERE s.scope_kind = b.scope_kind AND s.scope_name = b.scope_name AND s.width_s = 60
           AND s.starts >= date_trunc('minute', b.starts) + interval '1 minute')
        + (SELECT coalesce(sum(usd), 0) FROM nightdesk.spend_sums s
           WHERE s.scope_kind = b.scope_kind AND s.scope_name = b.scope_name AND s.width_s = 1
             AND s.starts >= date_trunc('second', b.starts) + interval '1 second'
             AND s.starts < date_trunc('minute', b.starts) + interval '1 minute')
        + (SELECT coalesce(sum(CASE WHEN e.reverses IS NULL THEN e.amount ELSE -e.amount END), 0)
           FROM nightdesk.ledger_entries e
           WHERE e.occurred_at > b.starts
             AND e.occurred_at < date_trunc('second', b.starts) + interval '1 second'
             AND e.book = 'money' AND {_IN_SCOPE.format(b="b", row="e")}) AS spent_usd,
        (SELECT coalesce(sum(held.usd), 0) FROM held
         WHERE {_IN_SCOPE.format(b="b", row="held")}) AS held_usd
    FROM b
""")  # noqa: S608  the parts are constants above


@dataclass(frozen=True, slots=True)
class Measure:
    """One budget at one instant."""

    policy: Policy
    spent_usd: Decimal
    held_usd: Decimal

    @property
    def exposure_usd(self) -> Decimal:
        """What is spent if everything that is at work costs the most it may."""
        return self.spent_usd + self.held_usd


def measure(session: Session, policies: Sequence[Policy]) -> list[Measure]:
    """Spent and held of each budget, in one snapshot. To admit anything by it, lock the budgets before."""
    values = {"policies": [policy.id for policy in policies]}
    found = {row.id: row for row in session.connection().execute(_MEASURE, values)}
    return [Measure(one, found[one.id].spent_usd, found[one.id].held_usd) for one in policies]


_EDGE = """
    b AS MATERIALIZED (
        SELECT p.*, nightdesk.now() - make_interval(secs => p.window_s) AS edge
        FROM nightdesk.budget_policies p WHERE p.id = :policy
    )
"""

# First the minute in which enough money rolls out, then the very entry.
_MINUTE = text(f"""
    WITH {_EDGE}, rolled_out AS (
        SELECT coalesce(sum(CASE WHEN e.reverses IS NULL THEN e.amount ELSE -e.amount END), 0) AS usd
        FROM b JOIN nightdesk.ledger_entries e ON {_IN_SCOPE.format(b="b", row="e")}
        WHERE e.book = 'money' AND e.occurred_at >= date_trunc('minute', b.edge) AND e.occurred_at <= b.edge
    ), minutes AS (
        SELECT s.starts, sum(s.usd) OVER (ORDER BY s.starts) AS usd
        FROM b JOIN nightdesk.spend_sums s USING (scope_kind, scope_name)
        WHERE s.width_s = 60 AND s.starts >= date_trunc('minute', b.edge)
    )
    SELECT min(starts) + interval '1 minute' FROM minutes, rolled_out
    WHERE minutes.usd - rolled_out.usd >= :enough
""")  # noqa: S608  the parts are constants above

_ROLLS_OUT = text(f"""
    WITH {_EDGE}, money AS (
        SELECT e.occurred_at AS at, sum(CASE WHEN e.reverses IS NULL THEN e.amount ELSE -e.amount END) AS usd
        FROM b JOIN nightdesk.ledger_entries e ON {_IN_SCOPE.format(b="b", row="e")}
        WHERE e.book = 'money' AND e.occurred_at > b.edge AND e.occurred_at < :until
        GROUP BY e.occurred_at
    ), rolled AS (SELECT at, sum(usd) OVER (ORDER BY at) AS usd FROM money)
    SELECT min(rolled.at) + make_interval(secs => min(b.window_s)) FROM rolled, b WHERE rolled.usd >= :enough
""")  # noqa: S608  the parts are constants above

_MIDNIGHT = text("""
    SELECT (date_trunc('day', nightdesk.now() AT TIME ZONE :time_zone) + interval '1 day')
        AT TIME ZONE :time_zone
""")


def reopens_at(session: Session, found: Measure, task_usd: Decimal) -> datetime | None:
    """When a task that may cost `task_usd` will fit, if nothing is spent until then.

    Exact when nothing is in flight. None: it fits now, or it never will (it is dearer than the cap).
    """
    budget = found.policy.budget
    enough = found.exposure_usd + task_usd - budget.cap_usd
    if enough <= 0 or task_usd + found.held_usd > budget.cap_usd:
        return None
    if budget.window is WindowKind.DAY:
        return _scalar(session, _MIDNIGHT, {"time_zone": budget.time_zone})
    values = {"policy": found.policy.id, "enough": enough}
    until = _scalar(session, _MINUTE, values)
    return None if until is None else _scalar(session, _ROLLS_OUT, values | {"until": until})


def _scalar(session: Session, query: Any, values: dict[str, Any]) -> datetime | None:
    return session.connection().execute(query, values).scalar()
