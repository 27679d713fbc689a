"""The full text of every prompt that was ever used."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field

from nightdesk.models.base import Table, created


class PromptVersion(Table, table=True):
    """`version` is `draft/3@<digest>`; the text is kept as it was at first use."""

    __tablename__ = "prompt_versions"

    version: str = Field(primary_key=True)
    phase: str
    number: int
    digest: str
    text: str
    first_used_at: datetime = created()
