"""The phases of an article and the states of a job: one enum each, one table of transitions.

`docs/states.md` draws the same table; a test holds the two against each other.
"""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The five steps of an article, in order."""

    RESEARCH = "research"
    OUTLINE = "outline"
    DRAFT = "draft"
    OPTIMIZE = "optimize"
    PUBLISH = "publish"

    @property
    def following(self) -> Phase | None:
        """The phase after this one, None after the last."""
        order = list(Phase)
        index = order.index(self) + 1
        return order[index] if index < len(order) else None


class JobState(StrEnum):
    """Where a job stands."""

    READY = "ready"  #: may be claimed now
    LEASED = "leased"  #: a worker holds it until `locked_until`
    WAITING = "waiting"  #: not due yet, or its provider, site or budget is closed
    FAILED = "failed"  #: will not be tried again, not yet routed to the dead letters
    DEAD = "dead"  #: has a dead letter with the full context
    NEEDS_REVIEW = "needs_review"  #: a person decides
    DONE = "done"  #: its output is stored
    CANCELLED = "cancelled"  #: a person decided against it


#: Every allowed move; a move that is not here is a bug.
TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.READY: frozenset({JobState.LEASED}),
    JobState.LEASED: frozenset(
        {JobState.DONE, JobState.WAITING, JobState.READY, JobState.FAILED, JobState.NEEDS_REVIEW}
    ),
    JobState.WAITING: frozenset({JobState.READY}),
    JobState.FAILED: frozenset({JobState.DEAD}),
    JobState.DEAD: frozenset({JobState.READY, JobState.CANCELLED}),
    JobState.NEEDS_REVIEW: frozenset({JobState.READY, JobState.DONE, JobState.CANCELLED}),
    JobState.DONE: frozenset(),
    JobState.CANCELLED: frozenset(),
}


class ArticleState(StrEnum):
    """What became of an article; follows from the job that was added last, and is stored nowhere."""

    PUBLISHED = "published"  #: its live page was verified
    NEEDS_REVIEW = "needs_review"  #: a person decides
    DEAD = "dead"  #: given up, with a dead letter
    CANCELLED = "cancelled"  #: a person decided against it
    FAILED = "failed"  #: given up, not yet among the dead letters
    WAITING = "waiting"  #: goes on later by itself
    WORKING = "working"  #: a worker is at it
    QUEUED = "queued"  #: will be claimed

    @property
    def is_final(self) -> bool:
        """Nothing more happens to it by itself."""
        return self in (self.PUBLISHED, self.NEEDS_REVIEW, self.DEAD, self.CANCELLED)


class CallState(StrEnum):
    """Where a call to a model stands; it is a row before it is a request."""

    SENT = "sent"  #: committed before the request went out; holds its worst case
    ANSWERED = "answered"  #: answer, usage and Money are stored
    REJECTED = "rejected"  #: answered and paid for, but not usable; the next ask has another key
    UNKNOWN = "unknown"  #: may have been billed; booked at its worst case
    NOT_SENT = "not_sent"  #: refused before any work was done: nothing was billed, nothing is held


class WindowKind(StrEnum):
    """What time a budget counts."""

    ROLLING = "rolling"  #: the last `window_s` seconds: (t − window, t]
    DAY = "day"  #: since midnight in a time zone; 23 or 25 hours when the clocks change


class ScopeKind(StrEnum):
    """Whose money a budget counts."""

    ALL = "all"
    SITE = "site"
    PHASE = "phase"


class OnError(StrEnum):
    """What happens to new work when the gate itself is out of order."""

    OPEN = "open"
    CLOSED = "closed"


class BudgetState(StrEnum):
    """How far a budget is spent. It comes from what is spent alone, not from what is held."""

    NONE = "none"
    WARN = "warn"
    CAP = "cap"
