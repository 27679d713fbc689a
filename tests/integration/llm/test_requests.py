"""What is sent: nothing that providers refuse, and the same bytes first, so that caches apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nightdesk.desk.prompting import load_prompt
from nightdesk.states import Phase
from tests.integration.llm.conftest import MODELS, Note, RawBench, adapters, request
from tests.integration.llm.raw_server import Received, says
from tests.integration.llm.test_lost_answers import WHOLE

pytestmark = pytest.mark.asyncio(loop_scope="session")

both = pytest.mark.parametrize("provider", ["anthropic", "openai"])
WRITING_PHASES = [phase for phase in Phase if phase is not Phase.PUBLISH]


async def sent(raw: RawBench, provider: str, **changes: Any) -> Received:
    """The one request that a question becomes."""
    await raw.ask(provider, says(WHOLE[provider]), **changes)
    (received,) = raw.server.requests
    return received


@both
async def test_a_request_has_no_sampling_parameters_and_no_stream(raw: RawBench, provider: str) -> None:
    body = (await sent(raw, provider)).json
    assert not {"temperature", "top_p", "top_k", "stream"} & set(body)


async def test_anthropics_request_is_what_was_asked(raw: RawBench) -> None:
    received = await sent(raw, "anthropic", system="Be brief.", user="topic: knives")
    assert received.path == "/v1/messages"
    schema = received.json["output_config"]["format"]["schema"]
    assert received.json == {
        "model": MODELS["anthropic"],
        "max_tokens": 4_000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "topic: knives"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
        "service_tier": "standard_only",
    }
    assert set(schema["properties"]) == set(Note.model_fields)
    assert received.headers["authorization"] == "Bearer key"


async def test_openais_request_is_what_was_asked(raw: RawBench) -> None:
    """The standard tier by name: left out, the project's settings could choose one at twice the price."""
    received = await sent(raw, "openai", system="Be brief.", user="topic: knives")
    assert received.path == "/v1/responses"
    schema = received.json["text"]["format"]["schema"]
    assert received.json == {
        "model": MODELS["openai"],
        "instructions": "Be brief.",
        "input": "topic: knives",
        "max_output_tokens": 4_000,
        "text": {"format": {"type": "json_schema", "name": "Note", "schema": schema, "strict": True}},
        "prompt_cache_key": "draft/1@test",
        "service_tier": "default",
        "store": False,
    }
    assert schema["required"] == list(Note.model_fields)
    assert received.headers["authorization"] == "Bearer key"


@both
async def test_a_request_names_its_call_and_that_it_is_no_retry(raw: RawBench, provider: str) -> None:
    asked = request(provider)
    raw.answer_with(says(WHOLE[provider]))
    await raw.models[provider].ask(asked)
    (received,) = raw.server.requests
    assert received.headers["x-client-request-id"] == str(asked.call_id)
    assert received.headers["x-stainless-retry-count"] == "0"


@both
async def test_an_answer_longer_than_ten_minutes_of_writing_may_be_asked_for(
    raw: RawBench, provider: str
) -> None:
    """The SDK refuses 21,334 tokens and more without a timeout."""
    received = await sent(raw, provider, max_output_tokens=64_000)
    assert 64_000 in received.json.values()


@both
@pytest.mark.parametrize("phase", WRITING_PHASES)
async def test_two_requests_of_a_phase_share_a_byte_identical_prefix(
    raw: RawBench, provider: str, phase: Phase
) -> None:
    """Whatever comes before the article's own words is the same, or no cache is ever hit."""
    prompt = load_prompt(phase)
    bodies = []
    for topic in ("knives", "compost"):
        filled = prompt.render(dict.fromkeys(prompt.front.inputs, topic))
        received = await sent(
            raw, provider, system=prompt.system, user=filled, schema=prompt.schema, cache_key=prompt.version
        )
        bodies.append(received.json)
    for body in bodies:
        body.pop("messages" if provider == "anthropic" else "input")
    assert json.dumps(bodies[0]) == json.dumps(bodies[1]), "order of keys included"
    stable = bodies[0]["system"][0]["text"] if provider == "anthropic" else bodies[0]["instructions"]
    assert stable == prompt.system


@both
async def test_a_variable_in_the_environment_redirects_nothing(
    raw: RawBench, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{name}_BASE_URL", "http://127.0.0.1:9/stray")
        monkeypatch.setenv(f"{name}_API_KEY", "stray")
    raw.answer_with(says(WHOLE[provider]))
    model = adapters(raw.server.base_url)[provider]
    await model.ask(request(provider))
    await model.aclose()
    (received,) = raw.server.requests
    assert "stray" not in " ".join(received.headers.values())
