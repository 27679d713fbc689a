"""Both official SDKs get whole, valid, truthfully billed answers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from nightdesk.desk.outputs import Brief, DraftText, Outline, Output, RevisedText
from nightdesk.languages import LANGUAGES
from nightdesk.sandbox import billed_usd
from tests.integration.sandbox.conftest import PROMPT, Bench, said

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOPICS = {
    "en": "Storing potatoes",
    "sr-Latn": "Domaći ajvar",
    "sr-Cyrl": "Босиљак у саксији",
    "te": "తులసి మొక్క",
}
PROVIDERS = ["anthropic", "openai"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("tag", TOPICS)
@pytest.mark.parametrize("model", [Brief, Outline, DraftText, RevisedText])
async def test_structured_answers_are_valid_in_every_language(
    bench: Bench, provider: str, tag: str, model: type[Output]
) -> None:
    prompt = (
        f"topic: {TOPICS[tag]}\nprimary keyword: {TOPICS[tag]}\n"
        f"language: {LANGUAGES[tag].name} ({tag})\nminimum words: 250"
    )
    answer = await bench.ask(provider, model, prompt=prompt)
    assert said(answer).stop in ("end_turn", "completed")
    model.model_validate_json(said(answer).text)
    assert bench.last_entry().phase == model.__name__


async def test_anthropic_answers_carry_what_the_sdk_documents(bench: Bench) -> None:
    raw = await bench.claude.messages.with_raw_response.create(
        model="claude-haiku-4-5", max_tokens=500, messages=[{"role": "user", "content": "Hi"}]
    )
    message = await raw.parse()
    assert message.id.startswith("msg_")
    assert (message.type, message.role) == ("message", "assistant")
    assert raw.request_id == message._request_id == bench.journal()[-1].request_id
    usage = message.usage
    assert usage.input_tokens == 1
    assert usage.cache_creation is not None
    assert usage.cache_creation.ephemeral_1h_input_tokens == 0
    assert usage.output_tokens_details is not None
    assert usage.service_tier == "standard"
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        for what in ("limit", "remaining", "reset"):
            assert raw.headers[f"anthropic-ratelimit-{kind}-{what}"]


async def test_openai_answers_carry_what_the_sdk_documents(bench: Bench) -> None:
    raw = await bench.gpt.responses.with_raw_response.create(model="gpt-6-luna", input="Hi")
    response = raw.parse()
    assert response.id.startswith("resp_")
    assert response.output_text
    assert response._request_id == bench.journal()[-1].request_id
    assert response.usage is not None
    assert response.usage.input_tokens == 1
    assert response.usage.input_tokens_details.cached_tokens == 0
    assert response.usage.output_tokens_details.reasoning_tokens == 0
    assert response.usage.total_tokens == 1 + response.usage.output_tokens
    assert response.service_tier == "default"
    for kind in ("requests", "tokens"):
        for what in ("limit", "remaining", "reset"):
            assert raw.headers[f"x-ratelimit-{what}-{kind}"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_known_prefix_is_read_from_the_cache(bench: Bench, provider: str) -> None:
    stable = "You are an editor. " * 300  # 1425 tokens
    more: dict[str, Any] = {"instructions": stable, "prompt_cache_key": provider}
    if provider == "anthropic":
        mark = {"type": "ephemeral"}
        more = {"system": [{"type": "text", "text": stable, "cache_control": mark}]}
    usages = [(await bench.ask(provider, Outline, **more)).usage for _ in range(2)]
    if provider == "anthropic":
        assert [usage.cache_creation_input_tokens for usage in usages] == [1425, 0]
        assert [usage.cache_read_input_tokens for usage in usages] == [0, 1425]
    else:
        details = [usage.input_tokens_details for usage in usages]
        assert [part.cache_write_tokens for part in details] == [1408, 0]
        assert [part.cached_tokens for part in details] == [0, 1408]
        assert usages[0].input_tokens == usages[1].input_tokens > 1425
    dear, cheap = bench.journal()[-2:]
    assert dear.billed_usd > cheap.billed_usd > 0


async def test_the_journal_is_what_was_asked_and_bills_by_the_price_list(bench: Bench) -> None:
    before = len(bench.journal())
    mine = []
    for provider in PROVIDERS:
        answer = await bench.ask(provider, Outline)
        mine.append((bench.last_id, answer))
    entries = bench.journal()[before:]
    assert [entry.client_request_id for entry in entries] == [name for name, _ in mine]
    assert [entry.seq for entry in entries] == [before + 1, before + 2]
    assert [entry.path for entry in entries] == ["/v1/messages", "/v1/responses"]
    for entry, (_, answer) in zip(entries, mine, strict=True):
        assert entry.status == 200
        assert entry.response["id"] == answer.id
        assert entry.usage == entry.response["usage"]
        # Both models cost 2 USD per million tokens in and 10 out; nothing was long enough to cache.
        tokens_in, tokens_out = answer.usage.input_tokens, answer.usage.output_tokens
        assert entry.billed_usd == Decimal(tokens_in * 2 + tokens_out * 10) / 1_000_000
    assert entries[0].request["messages"] == [{"role": "user", "content": PROMPT}]
    assert billed_usd(entries) == entries[0].billed_usd + entries[1].billed_usd


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_limit_on_output_is_honoured(bench: Bench, provider: str) -> None:
    limit = {"max_tokens": 50} if provider == "anthropic" else {"max_output_tokens": 50}
    answer = await bench.ask(provider, DraftText, **limit)
    assert said(answer).stop in ("max_tokens", "max_output_tokens")
    assert answer.usage.output_tokens == 50
    assert len(said(answer).text) == 200
    if provider == "openai":
        assert answer.status == "incomplete"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_wrong_key_is_refused_in_the_providers_shape(bench: Bench, provider: str) -> None:
    before = len(bench.journal())
    headers = {"x-api-key": "wrong", "Authorization": "Bearer wrong"}
    with pytest.raises((anthropic.AuthenticationError, openai.AuthenticationError)) as caught:
        await bench.say_hi(provider, extra_headers=headers)
    error: Any = caught.value
    assert error.request_id
    if provider == "openai":
        assert error.code == "invalid_api_key"
    else:
        assert error.type == "authentication_error"
    (entry,) = bench.journal()[before:]
    assert entry.status == 401
    assert entry.billed_usd == 0


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_no_key_is_refused_too(bench: Bench, provider: str) -> None:
    path = {"anthropic": "/v1/messages", "openai": "/v1/responses"}[provider]
    reply = httpx2.post(bench.process.base_url + path, json={})
    assert reply.status_code == 401
    assert bench.journal()[-1].request is None


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_unknown_model_is_not_found(bench: Bench, provider: str) -> None:
    other = {"anthropic": "gpt-6-luna", "openai": "claude-sonnet-5-5"}[provider]
    with pytest.raises((anthropic.NotFoundError, openai.NotFoundError)) as caught:
        await bench.ask(provider, Outline, model=other)
    error: Any = caught.value
    if provider == "openai":
        assert error.code == "model_not_found"
    else:
        assert error.type == "not_found_error"
    assert bench.last_entry().billed_usd == 0


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_forbidden_schema_is_a_bad_request(bench: Bench, provider: str) -> None:
    schema = {
        "type": "object", "title": "T", "required": ["n"], "additionalProperties": False,
        "properties": {"n": {"type": "integer", "minimum": 1}},
    }  # fmt: skip
    form = {"type": "json_schema", "name": "T", "schema": schema, "strict": True}
    more: dict[str, Any] = {"text": {"format": form}}
    if provider == "anthropic":
        more = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)) as caught:
        await bench.ask(provider, Outline, **more)
    assert "minimum" in str(caught.value)
    if isinstance(caught.value, openai.BadRequestError):
        assert caught.value.code == "invalid_json_schema"
    else:
        assert "output_config.format.schema" in str(caught.value)


async def test_sampling_parameters_are_refused_by_anthropic(bench: Bench) -> None:
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        await bench.ask_claude(Outline, extra_body={"temperature": 0.2})


async def test_a_prompt_past_the_context_window_is_refused(bench: Bench) -> None:
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        await bench.ask_claude(Outline, "word " * 170_000, model="claude-haiku-4-5")
    assert bench.last_entry().billed_usd == 0


async def test_both_clients_can_list_the_models(bench: Bench) -> None:
    claude = [model.id async for model in bench.claude.models.list()]
    gpt = [model.id async for model in bench.gpt.models.list()]
    assert "claude-sonnet-5-5" in claude
    assert "gpt-6.1-sol" in gpt
    assert not set(claude) & set(gpt)
