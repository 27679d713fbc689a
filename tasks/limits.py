"""Prefect's global concurrency limits as the limiter of calls to providers.

`nightdesk-<provider>` holds calls in flight, `nightdesk-<provider>-tokens` tokens per minute. They
throttle, they guarantee nothing: a limit that is missing or inactive, or a server that cannot be
reached, lets a call through with a warning. What stops is the budget's gate.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from prefect.client.orchestration import get_client
from prefect.client.schemas.responses import GlobalConcurrencyLimitResponse
from prefect.concurrency.asyncio import (
    AcquireConcurrencySlotTimeoutError,
    concurrency,
    rate_limit,
)
from prefect.exceptions import ObjectNotFound

from nightdesk.errors import ToldToWait
from nightdesk.llm.limiter import COME_BACK_S, PATIENCE_S

log = logging.getLogger(__name__)

#: A killed holder's slot is free again after this and the server's next look.
LEASE_S = 90.0


def in_flight_limit(provider: str) -> str:
    """The name of the limit on calls at a time."""
    return f"nightdesk-{provider}"


def token_limit(provider: str) -> str:
    """The name of the limit on tokens per minute."""
    return f"nightdesk-{provider}-tokens"


class PrefectLimiter:
    """Implements `nightdesk.llm.limiter.Limiter` for flow runs."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s

    @asynccontextmanager
    async def slot(self, provider: str, tokens: int) -> AsyncIterator[None]:
        """Hold a place for one call while the block runs.

        Raises:
            ToldToWait: if no place was free in time; the job waits, no attempt is counted.
        """
        slots = AsyncExitStack()
        await self._take_tokens(provider, tokens)
        await self._take_place(slots, provider)
        try:
            yield
        finally:
            try:
                await slots.aclose()
            except Exception as error:
                # The answer is there and paid for; the slot's lease ends by itself.
                log.warning("the slot of %s was not given back: %s", provider, error)

    async def _take_place(self, slots: AsyncExitStack, provider: str) -> None:
        name = in_flight_limit(provider)
        try:
            await slots.enter_async_context(
                concurrency(
                    name,
                    occupy=1,
                    timeout_seconds=self._patience_s,
                    lease_duration=LEASE_S,
                    raise_on_lease_renewal_failure=False,
                )
            )
        except AcquireConcurrencySlotTimeoutError:
            raise self._busy(name) from None
        except Exception as error:
            log.warning("limit %s is not applied: %s", name, error)

    async def _take_tokens(self, provider: str, tokens: int) -> None:
        name = token_limit(provider)
        try:
            limit = await _read(name)
            if limit is not None and limit.active and limit.limit > 0:
                # A call larger than the limit takes all of it: else it would be refused for ever.
                await rate_limit(name, occupy=min(tokens, limit.limit), timeout_seconds=self._patience_s)
        except AcquireConcurrencySlotTimeoutError:
            raise self._busy(name) from None
        except Exception as error:
            log.warning("limit %s is not applied: %s", name, error)

    def _busy(self, name: str) -> ToldToWait:
        return ToldToWait(f"limit {name} had no room for {self._patience_s:g} s", retry_after_s=COME_BACK_S)


async def _read(name: str) -> GlobalConcurrencyLimitResponse | None:
    async with get_client() as client:
        try:
            return await client.read_global_concurrency_limit_by_name(name)
        except ObjectNotFound:
            return None
