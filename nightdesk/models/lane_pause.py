"""Lanes (providers and sites): when they are closed, whether they work, and what is to be told of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Index, false, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field

from nightdesk.errors import LaneKind
from nightdesk.models.base import TIMESTAMP, Table, created, identity, one_of, timestamp


class LanePause(Table, table=True):
    """A lane is closed until `until`; `closed_at` is when the pause itself was over."""

    __tablename__ = "lane_pauses"
    __table_args__ = (
        one_of("kind", LaneKind),
        Index(
            "uq_lane_pauses_open",
            "kind",
            "name",
            unique=True,
            postgresql_where=text("closed_at IS NULL"),
        ),
    )

    id: int | None = identity()
    kind: str
    name: str
    reason: str
    opened_at: datetime = created()
    until: datetime = timestamp()
    closed_at: datetime | None = timestamp(nullable=True)
    #: nothing is wrong that is known of: the others wait while one job tries the lane
    probe: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class LaneHealth(Table, table=True):
    """What speaks against a lane. It has a row only while something does; a success deletes it."""

    __tablename__ = "lane_health"
    __table_args__ = (one_of("kind", LaneKind),)

    kind: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    #: the attempts that failed in passing since the last success: whose, and when (same length)
    failed_jobs: list[int] = Field(sa_type=ARRAY(BigInteger))
    failed_at: list[datetime] = Field(sa_type=ARRAY(TIMESTAMP))
    unproven: bool = False  #: it was closed for a fault: one job at a time until one succeeds
    pause_s: float | None = None  #: the breaker's last pause
    probe_job_id: int | None = Field(default=None, sa_type=BigInteger)
    probe_claim_no: int | None = None  #: with the job's id: the claim that tries the lane


class LaneChange(StrEnum):
    """What an operator is told of a lane."""

    OPENED = "opened"  #: its breaker opened: the lane is closed, no job gets through
    CLOSED = "closed"  #: its breaker closed: the lane works again


class LaneTransition(Table, table=True):
    """One change of a lane, kept until somebody was told: `told_at` is set after the telling."""

    __tablename__ = "lane_transitions"
    __table_args__ = (
        one_of("kind", LaneKind),
        one_of("change", LaneChange),
        Index("ix_lane_transitions_untold", "id", postgresql_where=text("told_at IS NULL")),
    )

    id: int | None = identity()
    kind: str
    name: str
    change: str
    reason: str
    at: datetime = created()
    told_at: datetime | None = timestamp(nullable=True)
