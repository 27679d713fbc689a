"""A phase's question, through the real SDKs and a real database, until it is clear what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import Row, text

from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.desk.desk import Desk
from nightdesk.desk.generation import ASKS, Question, generate, prepare
from nightdesk.desk.outputs import Brief, Output
from nightdesk.desk.policy import RETRY_DELAYS_S, RETRY_JITTER
from nightdesk.desk.prompting import load_prompt
from nightdesk.desk.queue import Claim, Pin
from nightdesk.desk.work import finish_writing, retrying
from nightdesk.errors import NeedsPerson, Permanent, ToldToWait, Transient
from nightdesk.insights import money_usd
from nightdesk.llm.metered import MeteredClient
from nightdesk.llm.providers import ModelChoice
from nightdesk.research import FetchPolicy, SourceReader
from nightdesk.sandbox import JournalEntry, billed_usd
from nightdesk.states import Phase
from nightdesk.text import storable_json
from tests.integration.desk_fixtures import LIMITS, SeededWorld, add_articles, scalar
from tests.integration.llm.conftest import MODELS, SandboxBench

pytestmark = pytest.mark.asyncio(loop_scope="session")

both = pytest.mark.parametrize("provider", ["anthropic", "openai"])
PROMPT = load_prompt(Phase.RESEARCH)
TOPIC = "Keeping knives sharp at home"


class Scene:
    """A desk in front of the sandbox, with one claimed research job for a topic."""

    def __init__(self, database: Database, bench: SandboxBench, reader: SourceReader) -> None:
        self.database, self.bench, self.world = database, bench, SeededWorld(11)
        self.desk = Desk(
            database=database,
            world=self.world,
            client=MeteredClient(database, bench.models, self.world),
            reader=reader,
            sites={},
            models=ModelChoice("anthropic", MODELS["anthropic"], MODELS["anthropic"]),
            limits=LIMITS,
            lease_s=900,
            deadline_s=20,
        )

    def question(self, provider: str = "anthropic") -> Question:
        add_articles(self.database, TOPIC)
        return prepare(self.database, self.claim(provider), self.desk.deadline_s)

    def claim(self, provider: str = "anthropic") -> Claim:
        pin = Pin(provider, MODELS[provider], PROMPT.version)
        with self.database.transaction() as session:
            (claim,) = queue.claim(session, run="run-a", phase=Phase.RESEARCH, limit=1, lease_s=900, pin=pin)
        return claim

    async def generate(self, question: Question) -> Output:
        return await generate(self.database, self.desk.client, self.world, question)

    async def work(self, question: Question) -> Output:
        """As the runner does: tried again by the failure policy."""
        return await retrying(self.desk, lambda: self.generate(question))

    def requests(self) -> list[JournalEntry]:
        """What the provider saw."""
        return self.bench.journal()

    def prompts(self) -> list[str]:
        """The users' turns of these requests."""
        bodies = [entry.request for entry in self.requests()]
        return [body["input"] if "input" in body else body["messages"][0]["content"] for body in bodies]

    def room(self) -> list[int]:
        """The output limits of these requests."""
        bodies = [entry.request for entry in self.requests()]
        return [body.get("max_tokens") or body["max_output_tokens"] for body in bodies]

    def calls(self) -> list[Row[Any]]:
        with self.database.reading() as session:
            query = text("SELECT * FROM nightdesk.llm_calls ORDER BY sent_at, id")
            return list(session.connection().execute(query))

    def states(self) -> list[str]:
        return [call.state for call in self.calls()]

    def money_usd(self) -> Decimal:
        with self.database.reading() as session:
            return money_usd(session)

    def all_is_paid(self) -> bool:
        """What is booked is what the provider billed, to the last digit."""
        billed = billed_usd(self.requests())
        return self.money_usd() == billed > 0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader() -> AsyncIterator[SourceReader]:
    reader = SourceReader(FetchPolicy(user_agent="Nightdesk/test (+https://example.org)"))
    yield reader
    await reader.aclose()


@pytest.fixture
def scene(database: Database, bench: SandboxBench, reader: SourceReader) -> Scene:
    return Scene(database, bench, reader)


def once(kind: str, **fields: Any) -> dict[str, Any]:
    return {"times": 1, "action": {"kind": kind, **fields}}


def always(kind: str, **fields: Any) -> dict[str, Any]:
    return {"action": {"kind": kind, **fields}}


@both
async def test_a_fenced_answer_costs_one_call(scene: Scene, provider: str) -> None:
    scene.bench.plan(always("fenced"))
    output = await scene.generate(scene.question(provider))
    assert isinstance(output, Brief)
    assert output.angle
    assert len(scene.requests()) == 1
    assert scene.states() == ["answered"]
    assert scene.all_is_paid()


@both
@pytest.mark.parametrize("kind", ["bad_json", "wrong_schema", "empty_text", "surrogate"])
async def test_an_unusable_answer_is_paid_for_and_asked_again_with_the_reason_quoted(
    scene: Scene, provider: str, kind: str
) -> None:
    scene.bench.plan(once(kind))
    assert isinstance(await scene.generate(scene.question(provider)), Brief)
    first, second = scene.calls()
    assert (first.state, second.state) == ("rejected", "answered")
    assert (first.ask_no, second.ask_no) == (1, 2)
    assert first.error
    plain, again = scene.prompts()
    assert first.error not in plain
    assert again.startswith(plain)
    assert f"Your previous answer could not be used: {first.error}" in again
    assert scene.all_is_paid()
    assert len(scene.requests()) == 2


@both
@pytest.mark.parametrize("kind", ["bad_json", "wrong_schema", "empty_text"])
async def test_twice_unusable_is_permanent_and_the_raw_text_is_kept(
    scene: Scene, provider: str, kind: str
) -> None:
    scene.bench.plan(always(kind))
    with pytest.raises(Permanent) as caught:
        await scene.generate(scene.question(provider))
    assert MODELS[provider] in str(caught.value)
    assert "unusable research twice" in str(caught.value)
    assert len(scene.requests()) == ASKS
    assert scene.states() == ["rejected", "rejected"]
    kept = [call.answer for call in scene.calls()]
    assert kept == [said(entry.response) for entry in scene.requests()]
    assert scene.all_is_paid()


def said(response: dict[str, Any]) -> str:
    """The text of a provider's answer as it left the provider."""
    content = response["content"] if "content" in response else response["output"][0]["content"]
    return "".join(part["text"] for part in content)


@both
async def test_an_answer_that_was_cut_off_is_asked_again_with_double_room(
    scene: Scene, provider: str
) -> None:
    scene.bench.plan(once("truncate"))
    assert isinstance(await scene.generate(scene.question(provider)), Brief)
    assert scene.room() == [PROMPT.front.max_output_tokens, 2 * PROMPT.front.max_output_tokens]
    plain, again = scene.prompts()
    assert plain == again, "the model did nothing wrong: nothing is held against it"
    assert scene.states() == ["rejected", "answered"]
    assert scene.all_is_paid()


@both
async def test_an_answer_that_is_cut_off_twice_needs_a_person(scene: Scene, provider: str) -> None:
    scene.bench.plan(always("truncate"))
    with pytest.raises(NeedsPerson) as caught:
        await scene.generate(scene.question(provider))
    assert [reason.rule for reason in caught.value.reasons] == ["truncated"]
    assert len(scene.requests()) == 2
    assert scene.all_is_paid()


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        ("anthropic", "refusal"),
        ("anthropic", "refusal_empty"),
        ("openai", "refusal"),
        ("openai", "content_filter"),
    ],
)
async def test_a_refusal_needs_a_person_after_exactly_one_call(
    scene: Scene, provider: str, kind: str
) -> None:
    scene.bench.plan(always(kind))
    with pytest.raises(NeedsPerson) as caught:
        await scene.work(scene.question(provider))
    assert [reason.rule for reason in caught.value.reasons] == ["refusal"]
    assert len(scene.requests()) == 1
    assert scene.states() == ["rejected"]
    assert scene.world.slept == []
    assert scene.all_is_paid()


async def test_prose_that_sounds_like_a_refusal_is_none(scene: Scene) -> None:
    scene.bench.plan(always("leftover", text='"I cannot help with that," the guard said.'))
    assert isinstance(await scene.generate(scene.question()), Brief)
    assert len(scene.requests()) == 1


@both
async def test_nul_in_an_answer_is_stored_clean(scene: Scene, provider: str) -> None:
    scene.bench.plan(always("nul"))
    question = scene.question(provider)
    output = await scene.generate(question)
    assert "\\u0000" in scene.calls()[0].answer, "the raw text is kept as it came"
    assert output.model_dump() == storable_json(output.model_dump())
    with scene.database.transaction() as session:
        finish_writing(session, scene.desk, question.claim, question.inputs, output)
    assert scalar(scene.database, "SELECT count(*) FROM nightdesk.briefs") == 1
    assert scalar(scene.database, "SELECT state FROM nightdesk.jobs WHERE phase = 'research'") == "done"
    assert len(scene.requests()) == 1


async def test_an_answer_without_usage_is_used_and_booked_at_its_worst_case(scene: Scene) -> None:
    scene.bench.plan(always("no_usage"))
    assert isinstance(await scene.generate(scene.question()), Brief)
    (call,) = scene.calls()
    assert (call.state, call.usage) == ("answered", None)
    assert scene.money_usd() == call.worst_case_usd >= billed_usd(scene.requests())


@both
async def test_a_transient_fault_is_retried_and_what_was_answered_before_is_not_bought_again(
    scene: Scene, provider: str
) -> None:
    scene.bench.plan(once("bad_json"), once("status", status=529))
    assert isinstance(await scene.work(scene.question(provider)), Brief)
    assert [entry.status for entry in scene.requests()] == [200, 529, 200]
    assert scene.states() == ["rejected", "not_sent", "answered"]
    assert [call.ask_no for call in scene.calls()] == [1, 2, 2]
    _, failed, again = scene.prompts()
    assert failed == again
    (slept_s,) = scene.world.slept
    assert RETRY_DELAYS_S[0] <= slept_s <= RETRY_DELAYS_S[0] * (1 + RETRY_JITTER)
    assert scene.all_is_paid()


@pytest.mark.parametrize("kind", ["reset", "cut_body", "empty", "html200", "error200", "null200"])
async def test_a_lost_answer_is_booked_at_its_worst_case_and_asked_again(scene: Scene, kind: str) -> None:
    scene.bench.plan(once(kind))
    assert isinstance(await scene.work(scene.question()), Brief)
    lost, answered = scene.calls()
    assert (lost.state, answered.state) == ("unknown", "answered")
    assert len(scene.requests()) == 2
    assert scene.money_usd() == lost.worst_case_usd + scene.requests()[1].billed_usd
    assert lost.worst_case_usd >= scene.requests()[0].billed_usd


async def test_being_told_to_wait_is_obeyed_to_the_second(scene: Scene) -> None:
    scene.bench.plan(once("status", status=429, retry_after=7))
    assert isinstance(await scene.work(scene.question()), Brief)
    assert scene.world.slept == [7]
    assert scene.states() == ["not_sent", "answered"]
    assert scene.all_is_paid()


async def test_a_wait_of_hours_gives_the_place_back_at_once(scene: Scene) -> None:
    scene.bench.plan(always("status", status=429, retry_after=86_400))
    with pytest.raises(ToldToWait) as caught:
        await scene.work(scene.question())
    assert caught.value.retry_after_s == 86_400
    assert scene.world.slept == []
    assert len(scene.requests()) == 1
    assert scene.money_usd() == 0


async def test_a_provider_that_stays_down_is_asked_as_often_as_the_policy_says_and_no_more(
    scene: Scene,
) -> None:
    scene.bench.plan(always("status", status=503))
    with pytest.raises(Transient):
        await scene.work(scene.question())
    assert len(scene.requests()) == 1 + len(RETRY_DELAYS_S)
    assert set(scene.states()) == {"not_sent"}
    assert scene.money_usd() == 0


async def test_an_answer_is_not_bought_again_by_the_next_claim(scene: Scene) -> None:
    """A worker died between the answer and the output's save."""
    question = scene.question()
    first = await scene.generate(question)
    next_claim = await take_over(scene)
    again = prepare(scene.database, next_claim, 20)
    assert await scene.generate(again) == first
    assert len(scene.requests()) == 1
    assert scene.all_is_paid()


async def test_the_next_claim_continues_where_a_dead_one_stood(scene: Scene) -> None:
    """It died after its first answer was refused: the second ask has the reason in it, and a full turn."""
    scene.bench.plan(once("bad_json"), once("status", status=400))
    with pytest.raises(Permanent):
        await scene.generate(scene.question())
    scene.bench.plan(once("bad_json"))
    question = prepare(scene.database, await take_over(scene), 20)
    assert isinstance(await scene.generate(question), Brief)
    assert scene.states() == ["rejected", "not_sent", "rejected", "answered"]
    assert "could not be used" in scene.prompts()[2]
    assert scene.all_is_paid()


_EXPIRE = """
    UPDATE nightdesk.jobs SET locked_until = nightdesk.now() - interval '1 s' WHERE state = 'leased'
"""


async def take_over(scene: Scene) -> Claim:
    """Let the lease run out and claim the job anew."""

    def expire() -> None:
        with scene.database.transaction() as session:
            session.connection().execute(text(_EXPIRE))
            queue.rescue_expired(session)

    await asyncio.to_thread(expire)
    claim = scene.claim()
    assert claim.claim_no > 1
    return claim


async def test_two_articles_of_a_phase_share_the_part_that_is_cached(scene: Scene) -> None:
    add_articles(scene.database, "Sharpening axes", "Storing potatoes over winter")
    for _ in range(2):
        await scene.generate(prepare(scene.database, scene.claim(), 20))
    first, second = scene.requests()
    assert first.request["system"] == second.request["system"]
    assert first.request["messages"] != second.request["messages"]
    assert scene.all_is_paid()
