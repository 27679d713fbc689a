"""Calls are kept under a provider's limits, in order, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightdesk.config import ProviderSettings
from nightdesk.desk.policy import ATTEMPTS, decide, retry_after_s
from nightdesk.errors import ToldToWait
from nightdesk.llm.limiter import (
    COME_BACK_S,
    WINDOW_S,
    LocalLimiter,
    NoLimit,
    ProviderLimits,
    TokenWindow,
)
from nightdesk.states import JobState
from tests.integration.desk_fixtures import SeededWorld


class FastWorld(SeededWorld):
    """Sleeping takes no real time; `clock` shows what it would have taken."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed_s = 0.0

    def clock(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds
        await asyncio.sleep(0)


def limiter(
    max_in_flight: int = 100, tokens_per_minute: int | None = None, patience_s: float = 30.0
) -> tuple[LocalLimiter, FastWorld]:
    world = FastWorld()
    limits = {"anthropic": ProviderLimits(max_in_flight, tokens_per_minute)}
    return LocalLimiter(limits, world, patience_s=patience_s, clock=world.clock), world


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_never_more_calls_at_a_time_than_the_limit_and_all_of_them_get_through() -> None:
    calls, _ = limiter(max_in_flight=3)
    now = most = done = 0

    async def call() -> None:
        nonlocal now, most, done
        async with calls.slot("anthropic", 10):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1
            done += 1

    await asyncio.gather(*(call() for _ in range(20)))
    assert (most, done) == (3, 20)


async def test_places_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    calls, _ = limiter(max_in_flight=1, tokens_per_minute=100_000, patience_s=600)
    order: list[int] = []

    async def call(number: int) -> None:
        async with calls.slot("anthropic", 90_000 if number == 2 else 1):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(call(number) for number in range(6)))
    assert order == [0, 1, 2, 3, 4, 5]


async def test_a_call_that_waits_longer_than_its_patience_is_told_to_come_back() -> None:
    calls, _ = limiter(max_in_flight=1, patience_s=0.05)
    async with calls.slot("anthropic", 1):
        started = time.monotonic()
        with pytest.raises(ToldToWait, match=r"anthropic\.max_in_flight"):
            async with calls.slot("anthropic", 1):
                raise AssertionError
        assert time.monotonic() - started < 5
    async with calls.slot("anthropic", 1):
        pass


async def test_a_call_that_surely_gets_no_tokens_in_time_is_told_so_at_once() -> None:
    calls, world = limiter(tokens_per_minute=1_000, patience_s=30)
    async with calls.slot("anthropic", 1_000):
        pass
    with pytest.raises(ToldToWait):
        async with calls.slot("anthropic", 1):
            raise AssertionError
    assert world.elapsed_s == 0


async def test_being_told_to_come_back_costs_the_job_nothing_and_pauses_no_lane_and_does_not_loop() -> None:
    calls, _ = limiter(max_in_flight=1, patience_s=0.01)
    async with calls.slot("anthropic", 1):
        with pytest.raises(ToldToWait) as caught:
            async with calls.slot("anthropic", 1):
                raise AssertionError
    assert caught.value.lane is None
    assert retry_after_s(caught.value, 0, 0, 0.5) is None
    verdict = decide(caught.value, attempts=ATTEMPTS, max_attempts=ATTEMPTS, chance=0.5)
    assert verdict.state is JobState.WAITING
    assert (verdict.counted, verdict.pause, verdict.wait_s) == (False, None, COME_BACK_S)


async def test_a_call_larger_than_the_limit_gets_through_when_the_minute_is_empty() -> None:
    calls, world = limiter(tokens_per_minute=1_000, patience_s=90)
    async with calls.slot("anthropic", 600):
        pass
    async with calls.slot("anthropic", 50_000):
        assert world.elapsed_s >= WINDOW_S
    async with calls.slot("anthropic", 1):
        assert world.elapsed_s >= 2 * WINDOW_S


async def test_a_large_call_is_not_starved_by_small_ones_that_keep_coming() -> None:
    calls, world = limiter(tokens_per_minute=1_000, patience_s=90)
    through: list[str] = []

    async def call(name: str, tokens: int) -> None:
        async with calls.slot("anthropic", tokens):
            through.append(name)

    for _ in range(9):
        await call("small", 100)
    large = asyncio.create_task(call("large", 1_000))
    await asyncio.sleep(0)
    later = [asyncio.create_task(call("later", 100)) for _ in range(5)]
    await asyncio.gather(large, *later)
    assert through == ["small"] * 9 + ["large"] + ["later"] * 5
    assert world.elapsed_s >= WINDOW_S


async def test_a_waiter_that_is_cancelled_takes_no_place_with_it() -> None:
    calls, _ = limiter(max_in_flight=2)
    release = asyncio.Event()

    async def call() -> None:
        async with calls.slot("anthropic", 1):
            await release.wait()

    holders = [asyncio.create_task(call()) for _ in range(2)]
    await settle()
    waiters = [asyncio.create_task(call()) for _ in range(5)]
    await settle()
    for waiter in waiters:
        waiter.cancel()
    holders[0].cancel()
    release.set()
    await asyncio.gather(*holders, *waiters, return_exceptions=True)
    assert await at_a_time(calls, 10) == 2


async def test_a_cancelled_wait_for_tokens_leaves_them_to_the_next() -> None:
    calls = LocalLimiter({"anthropic": ProviderLimits(5, 1_000)}, patience_s=70)
    async with calls.slot("anthropic", 1_000):
        pass
    waiting = asyncio.create_task(enter(calls, 500))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    queue = calls._queues["anthropic"]
    assert (queue._in_flight, queue._first.locked(), queue._window._sum) == (0, False, 1_000)


@given(st.integers(0, 2**32), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_whoever_is_cancelled_and_whenever_no_place_is_lost(seed: int, places: int) -> None:
    chance = random.Random(seed)

    async def history() -> int:
        calls, _ = limiter(max_in_flight=places)

        async def call(steps: int) -> None:
            async with calls.slot("anthropic", 1):
                for _ in range(steps):
                    await asyncio.sleep(0)

        tasks = [asyncio.create_task(call(chance.randrange(4))) for _ in range(12)]
        while not all(task.done() for task in tasks):
            if chance.random() < 0.5:
                chance.choice(tasks).cancel()
            await asyncio.sleep(0)
        return await at_a_time(calls, places + 5)

    assert asyncio.run(history()) == places


@given(
    limit=st.integers(1, 1_000),
    asks=st.lists(st.tuples(st.floats(0, 40), st.integers(0, 1_500)), max_size=40),
)
def test_no_minute_ever_holds_more_tokens_than_the_limit_and_nobody_waits_in_vain(
    limit: int, asks: list[tuple[float, int]]
) -> None:
    window, now = TokenWindow(limit), 0.0
    taken: list[tuple[float, int]] = []
    for pause_s, tokens in asks:
        now += pause_s
        occupied = min(tokens, limit)
        while (wait_s := window.wait_s(tokens, now)) > 0:
            assert wait_s <= WINDOW_S + 1e-6
            assert within(taken, now) + occupied > limit, "it waits although there is room"
            now += max(wait_s, 0.001)
        window.take(tokens, now)
        taken.append((now, occupied))
        assert within(taken, now) <= limit


async def test_no_limit_and_a_provider_without_limits_let_every_call_through() -> None:
    calls, _ = limiter(max_in_flight=1)
    async with calls.slot("openai", 10**9), calls.slot("openai", 10**9):
        pass
    none = NoLimit()
    async with none.slot("anthropic", 10**9), none.slot("anthropic", 10**9):
        pass


@pytest.mark.parametrize(
    "wrong", [{"max_in_flight": 0}, {"max_in_flight": 1_001}, {"tokens_per_minute": 999}]
)
def test_settings_that_would_let_no_call_through_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        ProviderSettings(**wrong)  # type: ignore[arg-type]
    assert ProviderSettings().max_in_flight == 8
    assert ProviderSettings().tokens_per_minute is None


async def enter(calls: LocalLimiter, tokens: int) -> None:
    async with calls.slot("anthropic", tokens):
        pass


async def at_a_time(calls: LocalLimiter, attempts: int) -> int:
    """How many of `attempts` calls are in flight together."""
    inside = 0

    async def call() -> None:
        nonlocal inside
        async with calls.slot("anthropic", 1):
            inside += 1
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(call()) for _ in range(attempts)]
    await settle()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return inside


def within(taken: Iterable[tuple[float, int]], now: float) -> int:
    return sum(tokens for at, tokens in taken if at + WINDOW_S > now)
