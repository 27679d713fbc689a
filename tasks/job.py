"""One claimed job as the tasks see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nightdesk.desk.desk import Desk
    from nightdesk.desk.queue import Claim


class JobAtWork:
    """A claim with its desk. No dataclass: Prefect looks into those for results of other tasks."""

    __slots__ = ("claim", "desk", "name")

    def __init__(self, desk: Desk, claim: Claim, name: str) -> None:
        self.desk = desk
        self.claim = claim
        self.name = name  #: the slug of its article

    def __repr__(self) -> str:
        return f"{self.claim.phase} of {self.name}"
