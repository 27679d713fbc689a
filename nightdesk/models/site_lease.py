"""Two workers never publish to one site at the same time."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field

from nightdesk.models.base import Table, timestamp


class SiteLease(Table, table=True):
    """Held until `locked_until`; `claim_no` only grows."""

    __tablename__ = "site_leases"

    site: str = Field(primary_key=True)
    locked_by: str | None = None
    locked_until: datetime | None = timestamp(nullable=True)
    claim_no: int = 0
