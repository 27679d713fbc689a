"""The real adapters, once against the sandbox and once against a server of raw bytes.

Building an SDK's client costs a third of a second: each is built once for the folder, in one loop.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from nightdesk.desk.outputs import Output
from nightdesk.llm.anthropic import AnthropicModel
from nightdesk.llm.openai import OpenAIModel
from nightdesk.llm.port import CallFailed, ModelPort, ModelReply, ModelRequest
from nightdesk.sandbox import JournalEntry, SandboxOptions, SandboxProcess, read_journal
from tests.integration.llm.raw_server import Behaviour, RawServer, sends

MODELS = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-6.1-sol"}
PROMPT = (
    "topic: Keeping knives sharp\nprimary keyword: sharp knives\nlanguage: English (en)\nminimum words: 250\n"
)


class Note(Output):
    """A small structured answer."""

    title: str
    text: str


def request(provider: str, *, deadline_s: float = 10.0, **changes: Any) -> ModelRequest:
    """A question with an id of its own."""
    asked: dict[str, Any] = {
        "call_id": uuid.uuid4(),
        "model": MODELS[provider],
        "system": "You are an editor.",
        "user": PROMPT,
        "schema": Note,
        "max_output_tokens": 4_000,
        "cache_key": "draft/1@test",
        "deadline_s": deadline_s,
    }
    return ModelRequest(**asked | changes)


def adapters(base_url: str, key: str = "key") -> dict[str, ModelPort]:
    """One adapter per provider."""
    return {"anthropic": AnthropicModel(key, base_url), "openai": OpenAIModel(key, f"{base_url}/v1")}


async def failure(model: ModelPort, asked: ModelRequest) -> CallFailed:
    """How a question fails."""
    with pytest.raises(CallFailed) as caught:
        await model.ask(asked)
    return caught.value


class SandboxBench:
    """The adapters in front of the sandbox."""

    def __init__(self, process: SandboxProcess) -> None:
        self.process = process
        self.models = adapters(process.base_url)
        self.control = httpx2.Client(
            base_url=process.base_url, trust_env=False, headers={"Connection": "close"}
        )

    def plan(self, *rules: dict[str, Any]) -> None:
        """Set the faults that requests meet from now on; rules without a name get one."""
        named = [{"name": f"fault {number}", **rule} for number, rule in enumerate(rules)]
        reply = self.control.post("/_sandbox/plan", content=json.dumps({"rules": named}))
        assert reply.status_code == 200, reply.text

    def break_with(self, kind: str, **fields: Any) -> None:
        self.plan({"action": {"kind": kind, **fields}})

    def journal(self) -> list[JournalEntry]:
        return read_journal(self.process.options.journal)

    def entries(self, asked: ModelRequest) -> list[JournalEntry]:
        """What reached the server of one question: a retry would be a second entry."""
        return [entry for entry in self.journal() if entry.client_request_id == str(asked.call_id)]

    async def ask(self, provider: str, **changes: Any) -> ModelReply:
        return await self.models[provider].ask(request(provider, **changes))


class RawBench:
    """The adapters in front of raw bytes."""

    def __init__(self, server: RawServer) -> None:
        self.server = server
        self.models = adapters(server.base_url)

    def answer_with(self, behaviour: Behaviour) -> None:
        self.server.behaviour = behaviour
        self.server.requests.clear()

    async def ask(self, provider: str, behaviour: Behaviour, **changes: Any) -> ModelReply:
        self.answer_with(behaviour)
        return await self.models[provider].ask(request(provider, **changes))

    async def fail(self, provider: str, behaviour: Behaviour, **changes: Any) -> CallFailed:
        """How a question fails; whatever happens, one request was all that was sent."""
        self.answer_with(behaviour)
        failed = await failure(self.models[provider], request(provider, **changes))
        assert len(self.server.requests) == 1
        return failed


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    journal = tmp_path_factory.mktemp("llm") / "journal.jsonl"
    with SandboxProcess(SandboxOptions(port=0, journal=journal)) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _sandbox_bench(sandbox: SandboxProcess) -> AsyncIterator[SandboxBench]:
    bench = SandboxBench(sandbox)
    yield bench
    bench.control.close()
    for model in bench.models.values():
        await model.aclose()


@pytest.fixture
def bench(_sandbox_bench: SandboxBench) -> SandboxBench:
    """The sandbox with nothing going wrong and an empty journal."""
    _sandbox_bench.plan()
    os.truncate(_sandbox_bench.process.options.journal, 0)  # it is appended to: the next entry is the first
    return _sandbox_bench


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def raw() -> AsyncIterator[RawBench]:
    server = RawServer(sends(b""))
    await server.start()
    bench = RawBench(server)
    yield bench
    for model in bench.models.values():
        await model.aclose()
    server.stop()
