"""The request left, and what came back is no answer: it may have been billed, and it is sent once."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import pytest
import pytest_asyncio

from nightdesk.errors import Lane, LaneKind, NeedsPerson, Permanent, ToldToWait, Transient
from nightdesk.llm.failures import DEFAULT_WAIT_S
from nightdesk.llm.port import Billing, CallFailed, ModelPort
from nightdesk.llm.sdk import CONNECT_S
from tests.integration.llm.conftest import RawBench, SandboxBench, adapters, failure, request
from tests.integration.llm.raw_server import Behaviour, drips, http, resets, says, sends, stalls

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEADLINE_S = 0.4
both = pytest.mark.parametrize("provider", ["anthropic", "openai"])
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [{"type": "text", "text": "{}"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "gpt-6.1-sol",
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "{}", "annotations": []}]}],
    "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
}
WHOLE = {"anthropic": MESSAGE, "openai": RESPONSE}


def whole(provider: str) -> bytes:
    return http(200, json.dumps(WHOLE[provider]).encode())


def is_lost(failed: CallFailed, provider: str) -> None:
    assert type(failed.error) is Transient
    assert failed.error.lane == Lane(LaneKind.PROVIDER, provider)
    assert failed.billing is Billing.UNKNOWN
    assert str(failed.error).startswith(f"{provider} gave no answer: ")


@both
@pytest.mark.parametrize("kind", ["cut_body", "reset", "empty", "html200", "error200", "null200"])
async def test_a_lost_answer_may_have_been_billed(bench: SandboxBench, provider: str, kind: str) -> None:
    bench.break_with(kind)
    asked = request(provider)
    is_lost(await failure(bench.models[provider], asked), provider)
    assert len(bench.entries(asked)) == 1


NO_OBJECTS: list[Any] = [None, [], {}, "text", 7, True, [1], {"error": {}}]
CUT = [
    pytest.param(sends(b""), id="hangs up"),
    pytest.param(resets, id="reset"),
    pytest.param(sends(b"HTTP/1.1 200 OK\r\nContent-Le"), id="half a head"),
    pytest.param(sends(b"this is not HTTP\r\n\r\n"), id="not HTTP"),
    pytest.param(sends(http(200, b"")), id="empty"),
    pytest.param(sends(http(200, b'{"id": "msg_1", "content": [')), id="cut JSON"),
    pytest.param(sends(http(200, b"\xff\xfe{}")), id="not UTF-8"),
    pytest.param(sends(http(200, b"<html></html>", "text/html")), id="page"),
    pytest.param(sends(http(200, b"<html></html>")), id="page that says it is JSON"),
    pytest.param(sends(http(200, b"{}", Content_Encoding="gzip")), id="not gzip"),
    *(pytest.param(says(body), id=f"{body!r}") for body in NO_OBJECTS),
]


@both
@pytest.mark.parametrize("behaviour", CUT)
async def test_bytes_that_are_no_answer_are_a_lost_answer(
    raw: RawBench, provider: str, behaviour: Behaviour
) -> None:
    is_lost(await raw.fail(provider, behaviour), provider)


ODD: list[dict[str, Any]] = [
    {"content": None, "output": None},
    {"content": "text", "output": [{"type": "message", "content": "text"}]},
    {"content": [None], "output": [{"type": "message", "content": [None]}]},
    {"content": [{"type": "text", "text": None}],
     "output": [{"type": "message", "content": [{"type": "output_text", "text": None}]}]},
    {"stop_reason": None, "status": None},
    {"stop_reason": ["end_turn"], "status": ["completed"]},
    {"stop_reason": "a new one", "status": "a new one"},
]  # fmt: skip


@both
@pytest.mark.parametrize("change", ODD, ids=str)
async def test_an_answer_of_another_shape_than_promised_is_a_lost_answer(
    raw: RawBench, provider: str, change: dict[str, Any]
) -> None:
    is_lost(await raw.fail(provider, says(WHOLE[provider] | change)), provider)


@pytest.mark.parametrize(
    ("provider", "change"),
    [
        ("anthropic", {"stop_reason": "pause_turn"}),
        ("anthropic", {"stop_reason": "tool_use"}),
        ("openai", {"status": "queued"}),
        ("openai", {"status": "in_progress"}),
        ("openai", {"status": "cancelled"}),
    ],
)
async def test_an_answer_that_is_not_finished_is_no_answer(
    raw: RawBench, provider: str, change: dict[str, Any]
) -> None:
    failed = await raw.fail(provider, says(WHOLE[provider] | change))
    is_lost(failed, provider)
    assert next(iter(change.values())) in str(failed.error)


@pytest.mark.parametrize(
    ("code", "error", "billing"),
    [
        ("server_error", Transient, Billing.UNKNOWN),
        ("rate_limit_exceeded", ToldToWait, Billing.NOTHING),
        ("invalid_prompt", NeedsPerson, Billing.UNKNOWN),
        ("bio_policy", NeedsPerson, Billing.UNKNOWN),
        ("misalignment_policy_violation", NeedsPerson, Billing.UNKNOWN),
        ("a code that is not known yet", Transient, Billing.UNKNOWN),
    ],
)
async def test_a_response_that_failed_with_status_200_is_told_by_its_code(
    bench: SandboxBench, code: str, error: type[Exception], billing: Billing
) -> None:
    bench.break_with("status_failed", code=code)
    asked = request("openai")
    failed = await failure(bench.models["openai"], asked)
    assert (type(failed.error), failed.billing) == (error, billing)
    assert code in str(failed.error)
    if isinstance(failed.error, ToldToWait):
        assert failed.error.retry_after_s == DEFAULT_WAIT_S
        assert failed.error.lane == Lane(LaneKind.PROVIDER, "openai")
    assert len(bench.entries(asked)) == 1


async def test_a_response_that_failed_without_saying_why_is_a_lost_answer(raw: RawBench) -> None:
    is_lost(await raw.fail("openai", says(RESPONSE | {"status": "failed", "error": None})), "openai")


async def timed(failing: Any) -> tuple[CallFailed, float]:
    started = time.monotonic()
    failed = await failing
    return failed, time.monotonic() - started


@both
async def test_silence_ends_at_the_deadline(raw: RawBench, provider: str) -> None:
    failed, took_s = await timed(raw.fail(provider, stalls, deadline_s=DEADLINE_S))
    is_lost(failed, provider)
    assert DEADLINE_S * 0.9 <= took_s < DEADLINE_S + 1


@both
async def test_dripping_bytes_do_not_outlast_the_deadline(raw: RawBench, provider: str) -> None:
    """The SDKs' own timeout is per chunk: these bytes would satisfy it for ever."""
    failed, took_s = await timed(raw.fail(provider, drips(whole(provider)), deadline_s=DEADLINE_S))
    is_lost(failed, provider)
    assert f"nothing complete within {DEADLINE_S:g} s" in str(failed.error)
    assert DEADLINE_S * 0.9 <= took_s < DEADLINE_S + 1


@both
async def test_the_same_bytes_in_time_are_an_answer(raw: RawBench, provider: str) -> None:
    """So that the two tests above fail for the reason they name."""
    reply = await raw.ask(provider, sends(whole(provider)), deadline_s=DEADLINE_S)
    assert reply.text == "{}"


@both
@pytest.mark.parametrize("kind", ["stall", "trickle"])
async def test_a_slow_provider_is_left_at_the_deadline_with_one_request_sent(
    bench: SandboxBench, provider: str, kind: str
) -> None:
    bench.break_with(kind, seconds=5)
    asked = request(provider, deadline_s=DEADLINE_S)
    failed, took_s = await timed(failure(bench.models[provider], asked))
    is_lost(failed, provider)
    assert took_s < DEADLINE_S + 1
    (entry,) = bench.entries(asked)
    assert entry.billed_usd > 0, "the sandbox billed it: UNKNOWN is the right verdict"


@both
async def test_being_cancelled_is_not_translated(raw: RawBench, provider: str) -> None:
    arrived = asyncio.Event()

    async def stall(writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await stalls(writer)

    raw.answer_with(stall)
    task = asyncio.create_task(raw.models[provider].ask(request(provider)))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def costs_nothing(failed: CallFailed, provider: str) -> None:
    assert type(failed.error) is Transient
    assert failed.error.lane == Lane(LaneKind.PROVIDER, provider)
    assert failed.billing is Billing.NOTHING
    assert str(failed.error).startswith(f"{provider} cannot be reached: ")


@pytest_asyncio.fixture(loop_scope="session")
async def nobody() -> AsyncIterator[dict[str, ModelPort]]:
    """The adapters in front of a port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nobody else can take it meanwhile
        models = adapters(f"http://127.0.0.1:{taken.getsockname()[1]}")
        yield models
        for model in models.values():
            await model.aclose()


@both
async def test_a_refused_connection_costs_nothing(nobody: dict[str, ModelPort], provider: str) -> None:
    costs_nothing(await failure(nobody[provider], request(provider)), provider)


@both
async def test_a_connection_that_is_not_accepted_in_time_costs_nothing(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that drops packets: its queue of connections is full here."""
    monkeypatch.setattr("nightdesk.llm.sdk.CONNECT_S", 0.2)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        model = adapters(f"http://127.0.0.1:{listener.getsockname()[1]}")[provider]
        failed, took_s = await timed(failure(model, request(provider, deadline_s=5)))
        await model.aclose()
    costs_nothing(failed, provider)
    assert took_s < 2
    assert CONNECT_S < 60


@both
async def test_an_address_that_is_no_address_costs_nothing(provider: str) -> None:
    model = adapters("ftp://127.0.0.1")[provider]
    costs_nothing(await failure(model, request(provider)), provider)
    await model.aclose()


@both
async def test_a_prompt_that_cannot_be_encoded_is_never_sent_and_never_will_be(
    raw: RawBench, provider: str
) -> None:
    raw.answer_with(sends(whole(provider)))
    failed = await failure(raw.models[provider], request(provider, user="half a smile: \ud83d"))
    assert type(failed.error) is Permanent
    assert failed.billing is Billing.NOTHING
    assert raw.server.requests == []
