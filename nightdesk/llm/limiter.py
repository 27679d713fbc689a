"""What keeps calls under a provider's limits before it answers 429.

A limiter throttles; it guarantees nothing about money (the job's caps do) and nothing about the
provider's own count, which other processes share.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from nightdesk.errors import ToldToWait
from nightdesk.world import RealWorld, World

#: How long a call waits for its place.
PATIENCE_S = 30.0
#: When a job that got no place comes back. Longer than what is slept through within an attempt: waiting
#: again at once would hold the worker for as long as the crowd lasts.
COME_BACK_S = 60.0
WINDOW_S = 60.0
_SHORTEST_SLEEP_S = 0.001


class Limiter(Protocol):
    """Gives each call a place among those in flight, and its tokens of the provider's minute."""

    def slot(self, provider: str, tokens: int) -> AbstractAsyncContextManager[None]:
        """Hold a place while the block runs; waits for one first.

        Args:
            tokens: what the call may use at most, input and output; more than the limit counts as the limit.

        Raises:
            ToldToWait: without a lane, if it would have to wait too long: the job waits, no attempt is
                counted, and the provider stays open for the others.
        """
        ...


class NoLimit:
    """Lets every call through."""

    def slot(self, provider: str, tokens: int) -> AbstractAsyncContextManager[None]:
        """See `Limiter.slot`."""
        return nullcontext()


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """Limits on the calls of this process to one provider. `tokens_per_minute` None: no limit."""

    max_in_flight: int
    tokens_per_minute: int | None = None

    def __str__(self) -> str:
        minute = "" if self.tokens_per_minute is None else f", {self.tokens_per_minute} tokens per minute"
        return f"{self.max_in_flight} calls at a time{minute}"


class LocalLimiter:
    """Limits for one process and one event loop. A provider that is not in `limits` has none."""

    def __init__(
        self,
        limits: Mapping[str, ProviderLimits],
        world: World | None = None,
        *,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds, and must go on while `world` sleeps."""
        self._patience_s = patience_s
        world = world or RealWorld()
        self._queues = {name: _Queue(given, world, clock) for name, given in limits.items()}

    def slot(self, provider: str, tokens: int) -> AbstractAsyncContextManager[None]:
        """See `Limiter.slot`. Places are given in the order in which they were asked for."""
        queue = self._queues.get(provider)
        return nullcontext() if queue is None else self._held(provider, queue, tokens)

    @asynccontextmanager
    async def _held(self, provider: str, queue: _Queue, tokens: int) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._patience_s):
                await queue.enter(tokens, self._patience_s)
        except TimeoutError:
            raise ToldToWait(
                f"{provider} had no room for a call of {tokens} tokens within {self._patience_s:g} s "
                f"(limits: {queue.limits}); if its own limits allow more, raise {provider}.max_in_flight "
                f"or {provider}.tokens_per_minute",
                retry_after_s=COME_BACK_S,
            ) from None
        try:
            yield
        finally:
            queue.leave()


class _Queue:
    """Who is first waits for a place and for tokens; the others wait behind it, in order.

    Nothing is taken before everything is there, in one step without a suspension: a waiter that is
    cancelled has nothing to give back.
    """

    def __init__(self, limits: ProviderLimits, world: World, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._world = world
        self._clock = clock
        self._in_flight = 0
        self._freed = asyncio.Event()
        self._first = asyncio.Lock()
        self._window = TokenWindow(limits.tokens_per_minute)

    async def enter(self, tokens: int, patience_s: float) -> None:
        """Take a place.

        Raises:
            TimeoutError: at once, if tokens will surely not be there in time.
        """
        deadline = self._clock() + patience_s
        async with self._first:
            while self._in_flight >= self.limits.max_in_flight:
                self._freed.clear()
                await self._freed.wait()
            while (wait_s := self._window.wait_s(tokens, self._clock())) > 0:
                if self._clock() + wait_s > deadline:
                    raise TimeoutError
                await self._world.sleep(max(wait_s, _SHORTEST_SLEEP_S))
            self._in_flight += 1
            self._window.take(tokens, self._clock())

    def leave(self) -> None:
        """Give the place back; the tokens stay taken until their minute is over."""
        self._in_flight -= 1
        self._freed.set()


class TokenWindow:
    """Tokens taken within the last minute, at most `limit`; times are seconds on one clock."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._taken: deque[tuple[float, int]] = deque()
        self._sum = 0

    def wait_s(self, tokens: int, now: float) -> float:
        """How long until `tokens` may be taken, if nobody takes any before; 0 or less: now."""
        if self._limit is None:
            return 0.0
        self._forget(now)
        over = self._sum + min(tokens, self._limit) - self._limit
        for at, taken in self._taken:
            if over <= 0:
                break
            over -= taken
            if over <= 0:
                return at + WINDOW_S - now
        return 0.0

    def take(self, tokens: int, now: float) -> None:
        """Note that tokens are taken; more than the limit counts as the limit."""
        if self._limit is not None:
            occupied = min(tokens, self._limit)
            self._taken.append((now, occupied))
            self._sum += occupied

    def _forget(self, now: float) -> None:
        while self._taken and self._taken[0][0] + WINDOW_S <= now:
            self._sum -= self._taken.popleft()[1]
