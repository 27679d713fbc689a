"""The port to models.

Adapters turn one `ModelRequest` into one HTTP request (no retries), and whatever comes back into a
`ModelReply` or a `CallFailed` that says whether the call may have been billed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from pydantic import BaseModel

from nightdesk.errors import JobError
from nightdesk.spend.usage import TokenUsage


class Stop(StrEnum):
    """Why the model stopped."""

    END = "end"
    TRUNCATED = "truncated"  #: the output limit or the context window was reached
    REFUSED = "refused"
    FILTERED = "filtered"


class Billing(StrEnum):
    """What is known about the bill of a call that gave no answer."""

    NOTHING = "nothing"  #: never reached the provider, or refused by it before any work
    UNKNOWN = "unknown"  #: work may have been done: assume the worst


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model. `system` is the stable part, the same for every article of a phase."""

    call_id: uuid.UUID  #: sent along as the client's request id
    model: str
    system: str
    user: str
    schema: type[BaseModel]
    max_output_tokens: int
    cache_key: str  #: names the stable part, for providers that route by it
    deadline_s: float


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One answer. `usage` is None if the provider forgot it: then the call's cost is unknown."""

    text: str
    stop: Stop
    usage: TokenUsage | None
    raw_usage: dict[str, Any] | None
    request_id: str | None
    detail: str = ""  #: the category or explanation of a refusal


class CallFailed(Exception):
    """A call that gave no answer: why, for the failure policy, and what is known about its bill."""

    def __init__(self, error: JobError, billing: Billing) -> None:
        super().__init__(str(error))
        self.error = error
        self.billing = billing


class ModelPort(Protocol):
    """One provider."""

    provider: str

    async def ask(self, request: ModelRequest) -> ModelReply:
        """One request, one reply.

        Raises:
            CallFailed: in every other case but cancellation.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
