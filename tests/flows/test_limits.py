"""Prefect's concurrency limits throttle calls; nothing that is wrong with them stops one or loses its answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.exceptions import ObjectNotFound

from nightdesk.errors import ToldToWait
from tasks.limits import PrefectLimiter, in_flight_limit, token_limit
from tests.flows.conftest import PrefectServer

pytestmark = pytest.mark.timeout(240)
PROVIDER = "limited"


@pytest.fixture
async def one_place(prefect_server: PrefectServer) -> None:
    """A limit of one call at a time, and none on tokens."""
    async with get_client() as client:
        for name in (in_flight_limit(PROVIDER), token_limit(PROVIDER)):
            with contextlib.suppress(ObjectNotFound):
                await client.delete_global_concurrency_limit_by_name(name)
        await client.upsert_global_concurrency_limit_by_name(in_flight_limit(PROVIDER), 1)


async def active_slots() -> int:
    async with get_client() as client:
        return (await client.read_global_concurrency_limit_by_name(in_flight_limit(PROVIDER))).active_slots


async def test_a_second_call_waits_for_the_first_and_goes_away_if_it_waits_too_long(one_place: None) -> None:
    limiter = PrefectLimiter(patience_s=1)
    async with limiter.slot(PROVIDER, 1_000):
        with pytest.raises(ToldToWait) as told:
            async with limiter.slot(PROVIDER, 1_000):
                pass
    assert told.value.lane is None, "nothing is closed for the others"
    async with limiter.slot(PROVIDER, 1_000):
        assert await active_slots() == 1
    assert await active_slots() == 0


async def test_a_limit_that_is_missing_or_switched_off_lets_calls_through(one_place: None) -> None:
    async with get_client() as client:
        await client.update_global_concurrency_limit(
            in_flight_limit(PROVIDER), GlobalConcurrencyLimitUpdate(active=False)
        )
    limiter = PrefectLimiter(patience_s=1)
    async with limiter.slot(PROVIDER, 1_000), limiter.slot(PROVIDER, 1_000):
        pass
    async with limiter.slot("unheard-of", 1_000), limiter.slot("unheard-of", 1_000):
        pass


async def test_a_call_larger_than_the_minutes_tokens_takes_them_all(one_place: None) -> None:
    async with get_client() as client:
        await client.upsert_global_concurrency_limit_by_name(token_limit(PROVIDER), 10_000, 10_000 / 60)
    limiter = PrefectLimiter(patience_s=2)
    async with limiter.slot(PROVIDER, 50_000):
        pass
    with pytest.raises(ToldToWait):
        async with limiter.slot(PROVIDER, 50_000):
            pass


async def test_a_server_that_starts_again_keeps_the_slot_and_the_call(
    one_place: None, prefect_server: PrefectServer
) -> None:
    async with PrefectLimiter(patience_s=5).slot(PROVIDER, 1_000):
        prefect_server.kill()
        await asyncio.to_thread(prefect_server.start)
        assert await active_slots() == 1
    deadline = time.monotonic() + 30
    while await active_slots():
        assert time.monotonic() < deadline, "the slot is held for ever"
        await asyncio.sleep(0.5)


async def test_an_error_of_prefects_lets_the_call_through_with_a_warning(
    one_place: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ConnectionError("no server")

    monkeypatch.setattr("tasks.limits.concurrency", broken)
    monkeypatch.setattr("tasks.limits.get_client", broken)
    with caplog.at_level(logging.WARNING):
        async with PrefectLimiter(patience_s=1).slot(PROVIDER, 1_000):
            pass
    assert caplog.text.count("is not applied: no server") == 2
