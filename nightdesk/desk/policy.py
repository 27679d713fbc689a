"""The failure policy: what each class of failure leads to. One table, applied by every runner.

class          within the attempt            then
transient      again after 1, 4, 12 s        wait 30 min; after 3 attempts failed
  … lane down  again after 1, 4, 12 s        the lane's breaker opens, wait for it, not counted
told to wait   sleep up to 30 s              the lane pauses for everybody, wait, not counted
blocked        -                             the lane pauses for everybody, wait, not counted
permanent      -                             failed at once
needs person   -                             needs review, with the reasons
over job cap   -                             failed at once; if only unknown cost did it, as transient
configuration  -                             wait, not counted: it works elsewhere or later

A lane is down when several tries failed in passing, over at least two jobs, without a success between.
"Told to wait" without a lane is our own limiter's word: only the job waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightdesk.errors import FailureClass, JobError, Lane, OperatorError, OverJobCap, ToldToWait, Transient
from nightdesk.states import JobState

#: Waits before the retries within one attempt, and how much longer each may randomly get.
RETRY_DELAYS_S = (1.0, 4.0, 12.0)
RETRY_JITTER = 0.3
#: A wait that a provider asks for is slept through up to this; beyond it the job gives its place back.
SLEEP_AT_MOST_S = 30.0
#: How often within one attempt.
SLEEPS_AT_MOST = 5
ATTEMPTS = 3
#: How many runs may die over a job before it is given up as the likely cause: the first and three more.
MOST_DEATHS = 4
NEXT_ATTEMPT_S = 1_800.0
NEXT_ATTEMPT_JITTER = 0.1
PAUSE_S = 900.0
#: A provider that asks for more is asked again after this; one mistaken header must not close it for days.
LONGEST_PAUSE_S = 21_600.0
#: The breaker of a lane opens after so many failed tries, of so many jobs, within the window.
BREAKER_FAILURES = 4
BREAKER_JOBS = 2
BREAKER_WINDOW_S = 600.0
#: An attempt that ends in a transient error has made these tries.
TRIES = 1 + len(RETRY_DELAYS_S)
#: Its first pause, which doubles up to the longest while the jobs that try the lane fail.
BREAKER_PAUSE_S = 120.0
BREAKER_LONGEST_PAUSE_S = 1_800.0
#: How long the others are held off at a time while one job tries the lane.
PROBE_S = 30.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a job whose attempt ended in an error."""

    state: JobState
    wait_s: float | None = None  #: for `waiting`: until it is due
    counted: bool = True  #: false: the attempt is given back
    pause: Lane | None = None  #: the lane to close for everybody, for `wait_s`


def retry_after_s(
    error: BaseException,
    retries: int,
    sleeps: int,
    chance: float,
    delays_s: Sequence[float] = RETRY_DELAYS_S,
) -> float | None:
    """How long to wait before trying again within the attempt; None if it has ended.

    Args:
        retries: retries made so far for transient errors.
        sleeps: waits made so far that a provider asked for.
        chance: a number in [0, 1) for the jitter.
        delays_s: the waits before the retries for transient errors.
    """
    error = _known(error)
    if not isinstance(error, JobError):
        return None
    match error.failure_class:
        case FailureClass.TRANSIENT if retries < len(delays_s):
            return delays_s[retries] * (1 + RETRY_JITTER * chance)
        case FailureClass.TOLD_TO_WAIT if sleeps < SLEEPS_AT_MOST:
            assert isinstance(error, ToldToWait)
            return error.retry_after_s if error.retry_after_s <= SLEEP_AT_MOST_S else None
        case _:
            return None


def is_down(attempts: int, jobs: int) -> bool:
    """Whether a lane is down on which so many attempts of so many jobs failed in passing in a row."""
    return attempts * TRIES >= BREAKER_FAILURES and jobs >= BREAKER_JOBS


def breaker_pause_s(last_s: float | None) -> float:
    """How long a lane's breaker stays open, `last_s` being its pause before; None: it opens."""
    return min(max(2 * (last_s or 0.0), BREAKER_PAUSE_S), BREAKER_LONGEST_PAUSE_S)


def _known(error: BaseException) -> BaseException:
    """A fault of the database that passes is a transient one, wherever it comes up."""
    # Imported here: the constants above are wanted where nothing else of a database is.
    from nightdesk.db import passes

    return Transient(str(error)) if passes(error) else error


def decide(error: BaseException, *, attempts: int, max_attempts: int, chance: float) -> Verdict:
    """What becomes of the job. `attempts` counts the one that just ended.

    An error that nobody planned for is a bug: the job fails at once, with its stack.
    """
    if isinstance(error, OperatorError):
        return Verdict(JobState.WAITING, wait_s=PAUSE_S, counted=False)
    error = _known(error)
    if not isinstance(error, JobError):
        return Verdict(JobState.FAILED)
    later_s = NEXT_ATTEMPT_S * (1 + NEXT_ATTEMPT_JITTER * (2 * chance - 1))
    match error.failure_class:
        case FailureClass.TRANSIENT:
            if attempts >= max_attempts:
                return Verdict(JobState.FAILED)
            return Verdict(JobState.WAITING, wait_s=later_s)
        case FailureClass.TOLD_TO_WAIT:
            assert isinstance(error, ToldToWait)
            wait_s = min(max(error.retry_after_s, 1.0), LONGEST_PAUSE_S)
            return Verdict(JobState.WAITING, wait_s=wait_s, counted=False, pause=error.lane)
        case FailureClass.BLOCKED:
            return Verdict(JobState.WAITING, wait_s=PAUSE_S, counted=False, pause=error.lane)
        case FailureClass.NEEDS_PERSON:
            return Verdict(JobState.NEEDS_REVIEW)
        case FailureClass.OVER_JOB_CAP if isinstance(error, OverJobCap) and error.only_unknown:
            # A late answer may free it, but it must not wait for one for ever.
            if attempts >= max_attempts:
                return Verdict(JobState.FAILED)
            return Verdict(JobState.WAITING, wait_s=later_s)
        case FailureClass.PERMANENT | FailureClass.OVER_JOB_CAP:
            return Verdict(JobState.FAILED)
