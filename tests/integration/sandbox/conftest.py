"""One sandbox and one client per provider for the whole folder; plans are set by each test."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import openai
import pytest
import pytest_asyncio
from openai.lib._pydantic import to_strict_json_schema
from pydantic import BaseModel

from nightdesk.sandbox import JournalEntry, SandboxOptions, SandboxProcess, read_journal

PROMPT = """\
topic: Keeping knives sharp at home
primary keyword: sharp knives
language: English (en)
audience: cooks
minimum words: 250
"""


class Bench:
    """A running sandbox with both official clients, their own retries off."""

    def __init__(self, process: SandboxProcess) -> None:
        self.process = process
        self.claude = anthropic.AsyncAnthropic(api_key="key", base_url=process.base_url, max_retries=0)
        self.gpt = openai.AsyncOpenAI(api_key="key", base_url=f"{process.base_url}/v1", max_retries=0)
        self.last_id = ""

    def break_with(self, action: dict[str, Any], **rule: Any) -> None:
        """Let every matching request meet one fault from now on."""
        self.set_plan({"rules": [{"name": "fault", "action": action, **rule}]})

    def set_plan(self, plan: dict[str, Any]) -> None:
        reply = httpx2.post(f"{self.process.base_url}/_sandbox/plan", content=json.dumps(plan))
        assert reply.status_code == 200, reply.text

    async def ask_claude(self, form: type[BaseModel], prompt: str = PROMPT, **more: Any) -> Any:
        """`messages.create` with a structured answer."""
        schema: Any = anthropic.transform_schema(form)
        asked: dict[str, Any] = {
            "model": "claude-sonnet-5-5",
            "max_tokens": 16_000,
            "messages": [{"role": "user", "content": prompt}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
        }
        return await self.claude.messages.create(**asked | more, extra_headers=self._client_id(), timeout=20)

    async def ask_gpt(self, form: type[BaseModel], prompt: str = PROMPT, **more: Any) -> Any:
        """`responses.create` with a structured answer."""
        wanted = {
            "type": "json_schema",
            "name": "answer",
            "schema": to_strict_json_schema(form),
            "strict": True,
        }
        asked: dict[str, Any] = {
            "model": "gpt-6.1-sol",
            "input": prompt,
            "max_output_tokens": 16_000,
            "text": {"format": wanted},
        }
        return await self.gpt.responses.create(**asked | more, extra_headers=self._client_id(), timeout=20)

    async def ask(self, provider: str, form: type[BaseModel], **more: Any) -> Any:
        """Either of them."""
        asking = self.ask_claude if provider == "anthropic" else self.ask_gpt
        return await asking(form, **more)

    async def say_hi(self, provider: str, **more: Any) -> Any:
        """The shortest request, for plain text."""
        if provider == "anthropic":
            hi: Any = [{"role": "user", "content": "Hi"}]
            return await self.claude.messages.create(
                model="claude-sonnet-5-5", max_tokens=50, messages=hi, **more
            )
        return await self.gpt.responses.create(model="gpt-6.1-sol", input="Hi", **more)

    def journal(self) -> list[JournalEntry]:
        return read_journal(self.process.options.journal)

    def last_entry(self) -> JournalEntry:
        """The journal entry of the latest request."""
        entry = self.journal()[-1]
        assert entry.client_request_id == self.last_id
        return entry

    def _client_id(self) -> dict[str, str]:
        self.last_id = str(uuid.uuid4())
        return {"X-Client-Request-Id": self.last_id}


@dataclass(frozen=True)
class Said:
    """What both providers' answers have in common."""

    text: str
    stop: str


def said(answer: Any) -> Said:
    """Text and reason to stop, whichever client returned it."""
    if isinstance(answer, anthropic.types.Message):
        texts = [block.text for block in answer.content if block.type == "text"]
        return Said("".join(texts), str(answer.stop_reason))
    reason = getattr(answer.incomplete_details, "reason", None)
    return Said(answer.output_text, reason or answer.status)


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    journal = tmp_path_factory.mktemp("sandbox") / "journal.jsonl"
    with SandboxProcess(SandboxOptions(port=0, journal=journal)) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_bench(process: SandboxProcess) -> AsyncIterator[Bench]:
    bench = Bench(process)
    yield bench
    await bench.claude.close()
    await bench.gpt.close()


@pytest.fixture
def bench(shared_bench: Bench) -> Bench:
    """The bench with nothing going wrong."""
    shared_bench.set_plan({"rules": []})
    return shared_bench
