"""Every answer that was paid for becomes a `ModelReply`, whatever the model made of the question."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from nightdesk.db import bind_json
from nightdesk.llm.port import ModelReply, Stop
from nightdesk.spend.pricing import cost
from nightdesk.spend.usage import TokenUsage
from tests.integration.llm.conftest import MODELS, Note, RawBench, SandboxBench, request
from tests.integration.llm.raw_server import says
from tests.integration.llm.test_lost_answers import MESSAGE, RESPONSE, WHOLE

pytestmark = pytest.mark.asyncio(loop_scope="session")

both = pytest.mark.parametrize("provider", ["anthropic", "openai"])


def message(**changes: Any) -> dict[str, Any]:
    return MESSAGE | changes


def response(*content: dict[str, Any], **changes: Any) -> dict[str, Any]:
    output = [{"type": "message", "role": "assistant", "content": list(content)}] if content else []
    return RESPONSE | {"output": output} | changes


def text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


async def test_a_whole_answer_has_text_usage_and_the_providers_request_id(bench: SandboxBench) -> None:
    for provider, model in bench.models.items():
        asked = request(provider)
        reply = await model.ask(asked)
        (entry,) = bench.entries(asked)
        assert Note.model_validate_json(reply.text).text
        assert reply.stop is Stop.END
        assert reply.detail == ""
        assert reply.request_id == entry.request_id
        assert reply.usage is not None
        assert reply.usage.input_tokens > 0 < reply.usage.output_tokens
        assert reply.raw_usage is not None
        assert entry.usage is not None
        for name in ("input_tokens", "output_tokens"):
            assert reply.raw_usage[name] == entry.usage[name]
        bind_json(reply.raw_usage)  # it can be stored


@both
@pytest.mark.parametrize("kind", ["fenced", "bad_json", "wrong_schema", "empty_text", "nul", "surrogate"])
async def test_unusable_text_reaches_the_desk_with_its_bill(
    bench: SandboxBench, provider: str, kind: str
) -> None:
    """As it is: what to make of it is the desk's decision, and the usage is not lost over it."""
    bench.break_with(kind)
    asked = request(provider)
    reply = await bench.models[provider].ask(asked)
    assert reply.stop is Stop.END
    assert reply.usage is not None
    assert len(bench.entries(asked)) == 1
    match kind:
        case "fenced":
            assert reply.text.startswith("```json\n")
            Note.model_validate_json(reply.text[8:-4])
        case "empty_text":
            assert reply.text == ""
        case "wrong_schema":
            assert json.loads(reply.text)["confidence"] == 0.9
        case "bad_json":
            with pytest.raises(ValidationError):
                Note.model_validate_json(reply.text)
        case _:
            assert ("\\u0000" if kind == "nul" else "\\ud83d") in reply.text


@both
async def test_an_answer_without_usage_keeps_its_text_and_says_that_its_cost_is_unknown(
    bench: SandboxBench, provider: str
) -> None:
    bench.break_with("no_usage")
    reply = await bench.ask(provider)
    Note.model_validate_json(reply.text)
    assert (reply.usage, reply.raw_usage) == (None, None)


BAD_USAGES: list[dict[str, Any]] = [
    {},
    {"input_tokens": 0, "output_tokens": 0},
    {"output_tokens": 50},
    {"input_tokens": None, "output_tokens": 50},
    {"input_tokens": "many", "output_tokens": 50},
    {"input_tokens": -3, "output_tokens": 50},
]


@both
@pytest.mark.parametrize("usage", BAD_USAGES, ids=str)
async def test_a_usage_that_cannot_be_priced_does_not_cost_the_answer(
    raw: RawBench, provider: str, usage: dict[str, Any]
) -> None:
    """No prompt has no tokens: such a bill would be too low, so the cost is unknown."""
    reply = await raw.ask(provider, says(WHOLE[provider] | {"usage": usage}))
    assert (reply.text, reply.usage) == ("{}", None)


@pytest.mark.parametrize(
    ("provider", "usage"),
    [
        ("anthropic", {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 3,
                       "cache_creation": {"ephemeral_1h_input_tokens": 4}}),
        ("openai", {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 11}}),
        ("openai", {"input_tokens": 10, "output_tokens": 5,
                    "input_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 5}}),
    ],
)  # fmt: skip
async def test_a_usage_that_contradicts_itself_does_not_cost_the_answer(
    raw: RawBench, provider: str, usage: dict[str, Any]
) -> None:
    reply = await raw.ask(provider, says(WHOLE[provider] | {"usage": usage}))
    assert (reply.text, reply.usage) == ("{}", None)
    assert reply.raw_usage is not None, "the evidence is kept"


@both
async def test_usage_fields_that_nobody_knows_yet_do_no_harm(raw: RawBench, provider: str) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "new_tokens": 7, "new_details": {"a": [1, None]}}
    usage |= {"service_tier": 5, "input_tokens_details": None, "output_tokens_details": "none"}
    reply = await raw.ask(provider, says(WHOLE[provider] | {"usage": usage, "new": {}}))
    assert reply.usage == TokenUsage(input_tokens=10, output_tokens=5)


@pytest.mark.parametrize("kind", ["refusal", "refusal_empty"])
async def test_a_refusal_is_a_reply_with_its_explanation_and_its_bill(bench: SandboxBench, kind: str) -> None:
    bench.break_with(kind)
    reply = await bench.ask("anthropic")
    assert reply.stop is Stop.REFUSED
    assert reply.detail == "The request was declined under the usage policy."
    assert reply.usage is not None
    reply = await bench.ask("openai")
    assert reply.usage is not None
    if kind == "refusal":
        assert (reply.stop, reply.detail, reply.text) == (Stop.REFUSED, "I can't help with that request.", "")
    else:
        # OpenAI says nothing at all then: an empty answer, which the desk does not accept either.
        assert (reply.stop, reply.text) == (Stop.END, "")


@pytest.mark.parametrize(
    ("details", "detail"),
    [
        ({"category": "cyber"}, "cyber"),
        ({"category": "cyber", "explanation": "no"}, "no"),
        ({}, ""),
        (None, ""),
    ],
)
async def test_a_refusals_detail_is_the_best_that_was_said(
    raw: RawBench, details: dict[str, str] | None, detail: str
) -> None:
    refused = message(stop_reason="refusal", content=[], stop_details=details)
    reply = await raw.ask("anthropic", says(refused))
    assert (reply.stop, reply.detail) == (Stop.REFUSED, detail)


async def test_a_refusal_beside_text_is_a_refusal(raw: RawBench) -> None:
    content = (text_part("Here is"), {"type": "refusal", "refusal": ""})
    reply = await raw.ask("openai", says(response(*content)))
    assert (reply.stop, reply.text) == (Stop.REFUSED, "Here is")


async def test_a_content_filter_is_a_reply_of_its_own_kind(bench: SandboxBench) -> None:
    bench.break_with("content_filter")
    reply = await bench.ask("openai")
    assert (reply.stop, reply.text) == (Stop.FILTERED, "")
    assert reply.usage is not None


@both
async def test_a_cut_answer_says_so(bench: SandboxBench, provider: str) -> None:
    bench.break_with("truncate")
    reply = await bench.ask(provider)
    assert reply.stop is Stop.TRUNCATED
    assert reply.text
    with pytest.raises(ValidationError):
        Note.model_validate_json(reply.text)


@both
async def test_an_answer_is_cut_at_the_output_limit_that_was_asked_for(
    bench: SandboxBench, provider: str
) -> None:
    reply = await bench.ask(provider, max_output_tokens=20)
    assert reply.stop is Stop.TRUNCATED
    assert reply.usage is not None
    assert reply.usage.output_tokens <= 20


REASONED = {
    "usage": {"input_tokens": 9, "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 40}}
}


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("anthropic", message(stop_reason="model_context_window_exceeded")),
        ("anthropic", message(stop_reason="max_tokens", content=[{"type": "thinking", "thinking": "h"}])),
        ("openai", response(status="incomplete", incomplete_details=None)),
        ("openai", response(status="incomplete", incomplete_details={"reason": "a new one"})),
        ("openai", RESPONSE | {"status": "incomplete", "output": [{"type": "reasoning", "summary": []}],
                               "incomplete_details": {"reason": "max_output_tokens"}} | REASONED),
    ],
)  # fmt: skip
async def test_room_that_was_full_or_eaten_by_reasoning_is_a_cut_answer(
    raw: RawBench, provider: str, body: dict[str, Any]
) -> None:
    reply = await raw.ask(provider, says(body))
    assert reply.stop is Stop.TRUNCATED
    assert reply.usage is not None


async def test_all_text_blocks_are_one_answer_and_thinking_is_none_of_it(raw: RawBench) -> None:
    halves = [{"type": "text", "text": '{"a": '}, {"type": "text", "text": "1}"}]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    reply = await raw.ask("anthropic", says(message(content=[thought, *halves])))
    assert reply.text == '{"a": 1}'
    body = response(text_part('{"a": '), text_part("1}"))
    body["output"] = [{"type": "reasoning", "summary": []}, *body["output"], {"type": "a new one"}]
    assert (await raw.ask("openai", says(body))).text == '{"a": 1}'


@both
@pytest.mark.parametrize(
    "text", ["a\x00b", "half \ud83d", "  ", "```json\n{}\n```", "రంగు \N{GRINNING FACE}"]
)
async def test_text_is_handed_on_letter_by_letter(raw: RawBench, provider: str, text: str) -> None:
    body = (
        message(content=[{"type": "text", "text": text}])
        if provider == "anthropic"
        else response(text_part(text))
    )
    assert (await raw.ask(provider, says(body))).text == text


async def test_a_tier_without_a_price_of_its_own_is_the_standard_one(raw: RawBench) -> None:
    tiers = {
        "default": None,
        "flex": "flex",
        "priority": "priority",
        "fast": "fast",
        "scale": None,
        "x": None,
    }
    for served, priced in tiers.items():
        reply = await raw.ask("openai", says(RESPONSE | {"service_tier": served}))
        assert reply.usage is not None
        assert reply.usage.tier == priced, served


@both
async def test_the_cost_of_what_the_sandbox_served_is_what_it_billed(
    bench: SandboxBench, provider: str
) -> None:
    """Twice the same system part: the second time it is read from the cache."""
    replies: list[tuple[ModelReply, Decimal]] = []
    for number in range(2):
        asked = request(
            provider,
            system="You are a careful editor. " * 400,
            user=f"topic: knives {number}\nminimum words: 250\n",
        )
        reply = await bench.models[provider].ask(asked)
        replies.append((reply, bench.entries(asked)[0].billed_usd))
    for reply, billed_usd in replies:
        assert cost_usd(provider, reply) == billed_usd
    first, second = (reply.usage for reply, _ in replies)
    assert first is not None
    assert second is not None
    assert first.cache_write_tokens > 0 < second.cache_read_tokens


def cost_usd(provider: str, reply: ModelReply) -> Decimal:
    assert reply.usage is not None
    return cost(provider, MODELS[provider], reply.usage, at=datetime(2026, 12, 1, tzinfo=UTC)).amount_usd
