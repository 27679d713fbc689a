"""Providers and sites that are closed for everybody."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, text

from nightdesk.errors import LaneKind
from nightdesk.models.base import Table, created, identity, one_of, timestamp


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
