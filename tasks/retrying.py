"""The failure policy as Prefect's task options."""

from __future__ import annotations

from typing import Any

from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from nightdesk.desk.policy import RETRY_DELAYS_S, RETRY_JITTER, retry_after_s


def worth_retrying(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """True for an error that the policy's table retries within the attempt."""
    error = state.data
    return isinstance(error, BaseException) and retry_after_s(error, 0, 0, 0.0) is not None


#: Retries after 1, 4 and 12 s for transient errors only. Waits that a provider asks for are slept
#: through inside a task: Prefect's delays are fixed when the task is defined.
RETRIES: dict[str, Any] = {
    "retries": len(RETRY_DELAYS_S),
    "retry_delay_seconds": list(RETRY_DELAYS_S),
    "retry_jitter_factor": RETRY_JITTER,
    "retry_condition_fn": worth_retrying,
}
