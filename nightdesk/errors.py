"""Every error Nightdesk raises on purpose.

    NightdeskError
    ├── OperatorError            a person gave something that cannot be used: one line, no traceback
    │   ├── ConfigError          a setting, a key, a price, a site
    │   ├── InputError           a file or an argument, with line and column where there is one
    │   └── DatabaseError        the database cannot be reached, started or used
    ├── Fenced                   the claim belongs to somebody else now: drop the result
    └── JobError                 a job did not succeed; its `failure_class` decides what happens next
        ├── Transient            may work if tried again
        ├── ToldToWait           a provider or site said when to come back
        ├── Permanent            will fail the same way every time
        ├── Blocked              not this job's fault: a whole lane (provider or site) is closed
        ├── NeedsPerson          only a person can settle it; carries the reasons
        └── OverJobCap           the job's own limit on tokens or USD is reached

What each class leads to is in `nightdesk.desk.policy`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FailureClass(StrEnum):
    """Why a job did not succeed; the key of the failure policy table."""

    TRANSIENT = "transient"
    TOLD_TO_WAIT = "told_to_wait"
    PERMANENT = "permanent"
    BLOCKED = "blocked"
    NEEDS_PERSON = "needs_person"
    OVER_JOB_CAP = "over_job_cap"


class LaneKind(StrEnum):
    """What can be closed for everybody at once."""

    PROVIDER = "provider"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Lane:
    """A provider or a site: work on it can be paused as a whole."""

    kind: LaneKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a person has to look, as the review desk and the reports show it."""

    rule: str
    message: str
    passage: str = ""


class NightdeskError(Exception):
    """Base of all errors raised on purpose."""


class OperatorError(NightdeskError):
    """A person gave something that cannot be used; the message is shown as it is."""


class ConfigError(OperatorError):
    """A setting is missing, malformed or contradicts another."""


@dataclass(frozen=True, slots=True)
class InputProblem:
    """One thing wrong with an input file; `line` counts from 1, `column` is a header's name."""

    message: str
    line: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        place = [f"line {self.line}"] if self.line is not None else []
        place += [f"column '{self.column}'"] if self.column is not None else []
        return f"{', '.join(place)}: {self.message}" if place else self.message


class InputError(OperatorError):
    """An input is wrong; lists every problem found, so that one correction is enough."""

    def __init__(self, source: str, problems: list[InputProblem]) -> None:
        self.source = source
        self.problems = problems
        lines = "\n".join(f"  {problem}" for problem in problems[:20])
        more = f"\n  … and {len(problems) - 20} more" if len(problems) > 20 else ""
        super().__init__(f"{source} cannot be used\n{lines}{more}")


class DatabaseError(OperatorError):
    """The database cannot be reached, started or used."""


class Fenced(NightdeskError):
    """The caller's claim on a job has ended; whatever it holds must be dropped."""

    def __init__(self, job_id: int, claim_no: int) -> None:
        self.job_id = job_id
        self.claim_no = claim_no
        super().__init__(f"claim {claim_no} on job {job_id} has ended: its result is dropped")


@dataclass(eq=False)
class JobError(NightdeskError):
    """A job did not succeed. Subclasses fix the failure class."""

    message: str
    lane: Lane | None = None
    failure_class: FailureClass = field(default=FailureClass.PERMANENT, init=False)

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


@dataclass(eq=False)
class Transient(JobError):
    """May work if tried again."""

    failure_class: FailureClass = field(default=FailureClass.TRANSIENT, init=False)


@dataclass(eq=False)
class ToldToWait(JobError):
    """A provider or site said to come back after `retry_after_s` seconds."""

    retry_after_s: float = 1.0
    failure_class: FailureClass = field(default=FailureClass.TOLD_TO_WAIT, init=False)


@dataclass(eq=False)
class Permanent(JobError):
    """Will fail the same way every time it is tried."""

    failure_class: FailureClass = field(default=FailureClass.PERMANENT, init=False)


@dataclass(eq=False)
class Blocked(JobError):
    """Not this job's fault: the lane (`lane` is always set) is closed for everybody."""

    failure_class: FailureClass = field(default=FailureClass.BLOCKED, init=False)


@dataclass(eq=False)
class NeedsPerson(JobError):
    """Only a person can settle it."""

    reasons: tuple[Reason, ...] = ()
    failure_class: FailureClass = field(default=FailureClass.NEEDS_PERSON, init=False)


@dataclass(eq=False)
class OverJobCap(JobError):
    """The job's own limit on tokens or USD leaves no room for a useful call.

    `only_unknown` is true if bookings of unknown outcome alone brought it there: such a job waits for
    a late answer, for as many attempts as it has.
    """

    only_unknown: bool = False
    failure_class: FailureClass = field(default=FailureClass.OVER_JOB_CAP, init=False)
