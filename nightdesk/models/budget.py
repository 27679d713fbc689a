"""Budgets: what may be spent, what was decided about it, and what is to be told."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlalchemy import BigInteger, CheckConstraint, Index, SmallInteger, text
from sqlmodel import Field

from nightdesk.models.base import TIMESTAMP, USD, Table, created, identity, one_of, reference, timestamp, usd
from nightdesk.states import BudgetState, OnError, ScopeKind, WindowKind


class BudgetRow(Table, table=True):
    """One budget: its row is what admission locks. What it allows is its newest policy."""

    __tablename__ = "budgets"

    name: str = Field(primary_key=True)
    block_version: str | None = None  #: of its Prefect block, when the two were last the same
    block_policy_id: int | None = Field(default=None, sa_type=BigInteger)  #: the policy that both were
    created_at: datetime = created()


class BudgetPolicy(Table, table=True):
    """One version of a budget, never edited: a decision names the one it was made by."""

    __tablename__ = "budget_policies"
    __table_args__ = (
        one_of("window_kind", WindowKind),
        one_of("scope_kind", ScopeKind),
        one_of("on_error", OnError),
        # NaN is greater than every number for Postgres: the upper bound keeps it out.
        CheckConstraint("cap_usd > 0 AND cap_usd < 1e9", name="cap_usd"),
        CheckConstraint("warn_ratio > 0 AND warn_ratio <= 1", name="warn_ratio"),
        CheckConstraint("(window_kind = 'rolling') = (window_s IS NOT NULL)", name="window_s"),
        CheckConstraint("(window_kind = 'day') = (time_zone IS NOT NULL)", name="time_zone"),
        CheckConstraint("(scope_kind = 'all') = (scope_name = '')", name="scope_name"),
        Index("ix_budget_policies_budget_id", "budget", text("id DESC")),
    )

    id: int | None = identity()
    budget: str = Field(foreign_key="nightdesk.budgets.name")
    active: bool = True  #: false: from here on the budget limits nothing
    cap_usd: Decimal = usd(None)
    window_kind: str
    window_s: int | None = None
    time_zone: str | None = None
    warn_ratio: Decimal = Field(sa_type=USD)
    scope_kind: str
    scope_name: str = ""
    cheap_at_warn: bool = False
    priority_at_warn: int | None = None
    on_error: str = OnError.OPEN
    who: str
    why: str = ""
    created_at: datetime = created()


class SpendSum(Table, table=True):
    """Money by scope, a minute or a second at a time, kept by a trigger on the ledger."""

    __tablename__ = "spend_sums"
    __table_args__ = (one_of("scope_kind", ScopeKind),)

    scope_kind: str = Field(primary_key=True)
    scope_name: str = Field(primary_key=True)
    width_s: int = Field(primary_key=True, sa_type=SmallInteger)
    starts: datetime = Field(primary_key=True, sa_type=TIMESTAMP)
    usd: Decimal = usd(None)


class BudgetDecision(Table, table=True):
    """What one ask for work was told by one budget, and by which numbers."""

    __tablename__ = "budget_decisions"
    __table_args__ = (Index("ix_budget_decisions_at", "at"),)

    id: int | None = identity()
    policy_id: int = reference("budget_policies.id")
    at: datetime = created()
    run: str
    phase: str
    admitted: int  #: jobs in its scope
    refused_job_id: int | None = reference("jobs.id", nullable=True)  #: the first that did not fit
    refused_usd: Decimal | None = usd(None, nullable=True)  #: what that job would have held
    spent_usd: Decimal = usd(None)
    held_usd: Decimal = usd(None)  #: before the admitted ones


class BudgetTransition(Table, table=True):
    """A budget's alert state changed; kept until somebody was told."""

    __tablename__ = "budget_transitions"
    __table_args__ = (
        one_of("state", BudgetState),
        Index("ix_budget_transitions_budget_id", "budget", text("id DESC")),
        Index("ix_budget_transitions_untold", "id", postgresql_where=text("told_at IS NULL")),
    )

    id: int | None = identity()
    budget: str = Field(foreign_key="nightdesk.budgets.name")
    policy_id: int = reference("budget_policies.id")
    state: str
    spent_usd: Decimal = usd(None)
    at: datetime = created()
    told_at: datetime | None = timestamp(nullable=True)
