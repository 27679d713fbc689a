"""What is kept of a failure. Recording one must never fail itself."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field

from nightdesk.errors import JobError, NeedsPerson
from nightdesk.text import shorten, storable

MAX_MESSAGE = 4_000
MAX_STACK = 60_000


@dataclass(frozen=True, slots=True)
class FailureRecord:
    """An error as it is stored: clean text of bounded size."""

    message: str
    error_class: str | None = None
    stack: str = ""
    reasons: tuple[dict[str, str], ...] = field(default=())


def record_failure(error: BaseException) -> FailureRecord:
    """An error as a record, whatever its message holds and whatever its `__str__` does."""
    try:
        name = error.failure_class.value if isinstance(error, JobError) else type(error).__name__
        message = shorten(storable(str(error)) or type(error).__name__, MAX_MESSAGE)
        return FailureRecord(message, name, _stack(error), _reasons(error))
    except Exception as second:
        return FailureRecord(
            f"{type(error).__name__} (its text cannot be shown: {type(second).__name__})",
            type(error).__name__,
        )


def _stack(error: BaseException) -> str:
    stack = storable("".join(traceback.format_exception(error)))
    # The end of a long stack names what failed; the beginning names who called.
    if len(stack) <= MAX_STACK:
        return stack
    half = MAX_STACK // 2 - 10
    return f"{stack[:half]}\n…\n{stack[-half:]}"


def _reasons(error: BaseException) -> tuple[dict[str, str], ...]:
    if not isinstance(error, NeedsPerson):
        return ()
    return tuple(
        {
            "rule": reason.rule,
            "message": storable(reason.message),
            "passage": storable(shorten(reason.passage, 500)),
        }
        for reason in error.reasons
    )
