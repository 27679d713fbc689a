"""Every kind of fault looks to the official SDKs as the real one does."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import ValidationError

from nightdesk.desk.outputs import DraftText, Outline
from tests.integration.sandbox.conftest import Bench, said

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROVIDERS = ["anthropic", "openai"]
both = pytest.mark.parametrize("provider", PROVIDERS)
CONNECTION_ERRORS = (anthropic.APIConnectionError, openai.APIConnectionError)
TIMEOUTS = (anthropic.APITimeoutError, openai.APITimeoutError)


async def broken(bench: Bench, provider: str, action: dict[str, Any], **more: Any) -> Any:
    bench.break_with(action, match={"provider": provider})
    return await bench.ask(provider, Outline, **more)


@pytest.mark.parametrize(
    ("status", "error", "name"),
    [
        (400, {}, "BadRequestError"),
        (403, {}, "PermissionDeniedError"),
        (429, {}, "RateLimitError"),
        (429, {"details": {"error_code": "enforced_spend_limit_reached"}},
         "EnforcedSpendLimitReachedError"),
        (500, {}, "InternalServerError"),
        (503, {}, "ServiceUnavailableError"),
        (529, {}, "OverloadedError"),
    ],
)  # fmt: skip
async def test_anthropic_statuses_raise_their_class(
    bench: Bench, status: int, error: dict[str, Any], name: str
) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        await broken(bench, "anthropic", {"kind": "status", "status": status, "error": error})
    assert type(caught.value).__name__ == name
    assert caught.value.status_code == status
    assert caught.value.request_id == bench.last_entry().request_id
    assert (bench.last_entry().status, bench.last_entry().fault) == (status, "fault")
    assert bench.last_entry().billed_usd == 0


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (429, {}, "rate_limit_exceeded"),
        (429, {"type": "insufficient_quota", "code": "insufficient_quota"}, "insufficient_quota"),
        (503, {}, "server_is_overloaded"),
        (402, {"code": "billing"}, "billing"),
    ],
)
async def test_openai_statuses_carry_their_code(
    bench: Bench, status: int, error: dict[str, Any], code: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        await broken(bench, "openai", {"kind": "status", "status": status, "error": error})
    assert (caught.value.status_code, caught.value.code) == (status, code)
    if "type" in error:
        assert caught.value.type == error["type"]


@both
async def test_being_told_to_wait_says_how_long(bench: Bench, provider: str) -> None:
    with pytest.raises((anthropic.RateLimitError, openai.RateLimitError)) as caught:
        await broken(bench, provider, {"kind": "status", "status": 429, "retry_after": 2})
    error: Any = caught.value
    assert error.response.headers["retry-after"] == "2"


@both
@pytest.mark.parametrize("kind", ["cut_body", "reset"])
async def test_a_lost_connection_is_a_billed_connection_error(bench: Bench, provider: str, kind: str) -> None:
    with pytest.raises(CONNECTION_ERRORS) as caught:
        await broken(bench, provider, {"kind": kind})
    lost = httpx2.RemoteProtocolError if kind == "cut_body" else (
        httpx2.RemoteProtocolError, httpx2.ReadError)  # fmt: skip
    assert isinstance(caught.value.__cause__, lost)
    entry = bench.last_entry()
    assert entry.billed_usd > 0
    assert entry.response["usage"] == entry.usage
    assert entry.status == (200 if kind == "cut_body" else None)


@both
async def test_silence_runs_into_the_read_timeout(bench: Bench, provider: str) -> None:
    bench.break_with({"kind": "stall", "seconds": 30})
    with pytest.raises(TIMEOUTS):
        await bench.say_hi(provider, timeout=0.3)
    entry = bench.journal()[-1]
    assert entry.status is None
    assert entry.billed_usd > 0


@both
async def test_dripping_bytes_outlast_the_read_timeout(bench: Bench, provider: str) -> None:
    bench.break_with({"kind": "trickle", "seconds": 30})
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bench.say_hi(provider, timeout=0.5), 1.0)
    assert time.monotonic() - started >= 1.0
    assert bench.journal()[-1].billed_usd > 0


@both
async def test_a_stall_and_a_trickle_end_without_an_answer(bench: Bench, provider: str) -> None:
    for kind in ("stall", "trickle"):
        with pytest.raises(CONNECTION_ERRORS):
            await broken(bench, provider, {"kind": kind, "seconds": 0.2})


@both
async def test_a_plan_may_say_that_a_lost_answer_is_free(bench: Bench, provider: str) -> None:
    with pytest.raises(CONNECTION_ERRORS):
        await broken(bench, provider, {"kind": "reset", "billed": False})
    assert bench.last_entry().billed_usd == 0


@both
async def test_an_empty_body_is_no_json(bench: Bench, provider: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        await broken(bench, provider, {"kind": "empty"})
    assert bench.last_entry().billed_usd > 0


@both
async def test_a_page_with_status_200_comes_back_as_a_string(bench: Bench, provider: str) -> None:
    answer = await broken(bench, provider, {"kind": "html200"})
    assert isinstance(answer, str)
    assert answer.startswith("<!doctype html>")
    assert bench.last_entry().billed_usd == 0


async def test_an_error_with_status_200_is_an_answer_of_nothing(bench: Bench) -> None:
    message = await broken(bench, "anthropic", {"kind": "error200"})
    assert message.content is None
    assert message.stop_reason is None
    response = await broken(bench, "openai", {"kind": "error200"})
    assert response.status is None
    assert bench.last_entry().billed_usd == 0


@both
async def test_null_with_status_200_is_no_answer(bench: Bench, provider: str) -> None:
    assert await broken(bench, provider, {"kind": "null200"}) is None


async def test_a_refusal_is_said_in_the_providers_way(bench: Bench) -> None:
    message = await broken(bench, "anthropic", {"kind": "refusal"})
    assert message.stop_reason == "refusal"
    assert message.stop_details.category == "general_harms"
    assert said(message).text
    response = await broken(bench, "openai", {"kind": "refusal"})
    assert (response.status, response.output_text) == ("completed", "")
    assert response.output[0].content[0].type == "refusal"
    assert bench.last_entry().billed_usd > 0


async def test_a_refusal_may_have_no_content(bench: Bench) -> None:
    message = await broken(bench, "anthropic", {"kind": "refusal_empty"})
    assert (message.stop_reason, message.content) == ("refusal", [])
    response = await broken(bench, "openai", {"kind": "refusal_empty"})
    assert (response.status, response.output) == ("completed", [])


@both
async def test_a_truncated_answer_says_so(bench: Bench, provider: str) -> None:
    answer = await broken(bench, provider, {"kind": "truncate"})
    assert said(answer).stop in ("max_tokens", "max_output_tokens")
    with pytest.raises(ValidationError):
        Outline.model_validate_json(said(answer).text)


async def test_a_content_filter_leaves_an_incomplete_response(bench: Bench) -> None:
    response = await broken(bench, "openai", {"kind": "content_filter"})
    assert (response.status, response.output) == ("incomplete", [])
    assert response.incomplete_details.reason == "content_filter"


async def test_a_failed_response_has_status_200_and_no_bill(bench: Bench) -> None:
    action = {"kind": "status_failed", "code": "rate_limit_exceeded"}
    response = await broken(bench, "openai", action)
    assert (response.status, response.error.code) == ("failed", "rate_limit_exceeded")
    assert bench.last_entry().billed_usd == 0


@both
async def test_a_fence_is_around_a_whole_valid_answer(bench: Bench, provider: str) -> None:
    text = said(await broken(bench, provider, {"kind": "fenced"})).text
    assert text.startswith("```json\n")
    assert text.endswith("\n```")
    Outline.model_validate_json(text[8:-4])


@both
@pytest.mark.parametrize("kind", ["bad_json", "wrong_schema", "empty_text"])
async def test_an_unusable_answer_is_billed_and_invalid(bench: Bench, provider: str, kind: str) -> None:
    answer = await broken(bench, provider, {"kind": kind})
    text = said(answer).text
    with pytest.raises(ValidationError):
        Outline.model_validate_json(text)
    assert (text == "") == (kind == "empty_text")
    if kind == "wrong_schema":
        json.loads(text)
    assert bench.last_entry().billed_usd > 0


@both
async def test_a_leftover_stands_in_the_middle_of_the_longest_text(bench: Bench, provider: str) -> None:
    bench.break_with({"kind": "leftover", "text": "[TODO: figures]"})
    answer = await bench.ask(provider, DraftText)
    draft = DraftText.model_validate_json(said(answer).text)
    texts = [draft.introduction, *(section.body for section in draft.sections)]
    longest = max(texts, key=len)
    assert "[TODO: figures]" in longest
    assert said(answer).text.count("TODO") == 1
    assert 0.3 < longest.index("[TODO") / len(longest) < 0.8


@both
async def test_words_can_be_replaced(bench: Bench, provider: str) -> None:
    answer = await broken(bench, provider, {"kind": "replace", "find": "the", "with": "<b>"})
    assert "<b>" in said(answer).text
    Outline.model_validate_json(said(answer).text)


@both
async def test_nul_parses_and_reaches_the_text(bench: Bench, provider: str) -> None:
    answer = await broken(bench, provider, {"kind": "nul"})
    assert "\x00" in json.dumps(Outline.model_validate_json(said(answer).text).model_dump(),
                                ensure_ascii=False).replace("\\u0000", "\x00")  # fmt: skip


@both
async def test_a_lone_surrogate_is_escaped_and_invalid(bench: Bench, provider: str) -> None:
    answer = await broken(bench, provider, {"kind": "surrogate"})
    assert "\\ud83d" in said(answer).text
    with pytest.raises(ValidationError):
        Outline.model_validate_json(said(answer).text)


@both
async def test_usage_can_be_missing_although_it_is_billed(bench: Bench, provider: str) -> None:
    answer = await broken(bench, provider, {"kind": "no_usage"})
    assert answer.usage is None
    Outline.model_validate_json(said(answer).text)
    assert bench.last_entry().usage is not None
    assert bench.last_entry().billed_usd > 0


@both
async def test_latency_delays_the_right_answer(bench: Bench, provider: str) -> None:
    started = time.monotonic()
    answer = await broken(bench, provider, {"kind": "latency", "seconds": 0.3})
    assert time.monotonic() - started >= 0.3
    Outline.model_validate_json(said(answer).text)


async def test_faults_strike_by_phase_and_count_and_can_be_read(bench: Bench) -> None:
    bench.break_with({"kind": "status", "status": 529}, times=1, match={"phase": "Outline"})
    await bench.ask_claude(DraftText)
    with pytest.raises(anthropic.OverloadedError):
        await bench.ask_claude(Outline)
    await bench.ask_claude(Outline)
    plan = httpx2.get(f"{bench.process.base_url}/_sandbox/plan").json()
    assert plan["counts"] == {"fault": {"matched": 2, "struck": 1}}


async def test_an_invalid_plan_is_refused_and_the_old_one_stays(bench: Bench) -> None:
    bench.break_with({"kind": "status", "status": 529})
    url = f"{bench.process.base_url}/_sandbox/plan"
    reply = httpx2.post(url, content=b'{"rules": [{"name": "a", "action": {"kind": "burn"}}]}')
    assert reply.status_code == 400
    assert "rules.0.action" in reply.json()["error"]
    with pytest.raises(anthropic.OverloadedError):
        await bench.ask_claude(Outline)
