"""A call is a row before it is a request; nothing stored is bought twice; what was spent is booked."""

from __future__ import annotations

import asyncio
import dataclasses
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import text

from nightdesk.db import Database, now
from nightdesk.desk import queue
from nightdesk.desk.outputs import Outline
from nightdesk.errors import Fenced, OverJobCap, Permanent, ToldToWait, Transient
from nightdesk.insights import money_usd
from nightdesk.llm import calls
from nightdesk.llm.limiter import LocalLimiter, ProviderLimits
from nightdesk.llm.metered import Ask, MeteredClient
from nightdesk.llm.port import Billing, CallFailed, ModelReply, ModelRequest
from tests.integration.desk_fixtures import (
    ScriptedModel,
    SeededWorld,
    add_articles,
    claim_one,
    reply,
    scalar,
)

# 1,000 tokens in at $2 and 500 out at $10 per million.
ONE_REPLY_USD = Decimal("0.007")


def an_ask(database: Database, **changes: object) -> Ask:
    (article,) = add_articles(database, f"topic {uuid.uuid4()}")
    claim = claim_one(database)
    ask = Ask(
        job_id=claim.job_id,
        claim_no=claim.claim_no,
        article_id=article,
        site="garden",
        phase="research",
        round=1,
        provider="anthropic",
        model="claude-sonnet-5-5",
        prompt_version="research/1@test",
        input_digest="digest",
        system="You are an editor.",
        user="topic: compost",
        schema=Outline,
        max_output_tokens=4_000,
        min_output_tokens=200,
        deadline_s=30,
    )
    return dataclasses.replace(ask, **changes)  # type: ignore[arg-type]


def client(database: Database, model: ScriptedModel, seed: int = 7) -> MeteredClient:
    return MeteredClient(database, {"anthropic": model}, SeededWorld(seed))


def call_states(database: Database) -> list[str]:
    with database.reading() as session:
        rows = session.connection().execute(
            text("SELECT state FROM nightdesk.llm_calls ORDER BY sent_at, id")
        )
        return [row.state for row in rows]


def money(database: Database) -> Decimal:
    with database.reading() as session:
        return money_usd(session)


async def test_the_row_is_committed_before_the_request_goes_out(database: Database) -> None:
    seen: list[list[str]] = []

    def answer(_request: ModelRequest) -> ModelReply:
        seen.append(call_states(database))
        return reply()

    await client(database, ScriptedModel(answer)).ask(an_ask(database))
    assert seen == [["sent"]]
    assert call_states(database) == ["answered"]
    assert money(database) == ONE_REPLY_USD


async def test_an_answer_that_was_stored_is_not_bought_twice(database: Database) -> None:
    model = ScriptedModel(lambda _: reply("the answer"))
    ask = an_ask(database)
    first = await client(database, model).ask(ask)
    second = await client(database, model, seed=8).ask(ask)
    assert (first.text, first.stored) == ("the answer", False)
    assert (second.text, second.stored, second.call_id) == ("the answer", True, first.call_id)
    assert len(model.requests) == 1
    assert money(database) == ONE_REPLY_USD


async def test_another_input_prompt_model_or_round_is_another_purchase(database: Database) -> None:
    model = ScriptedModel(lambda _: reply())
    ask = an_ask(database)
    metered = client(database, model)
    await metered.ask(ask)
    for change in (
        {"input_digest": "other"},
        {"prompt_version": "research/2@x"},
        {"model": "claude-haiku-5-5"},
        {"round": 2},
    ):
        await metered.ask(dataclasses.replace(ask, **change))  # type: ignore[arg-type]
    assert len(model.requests) == 5


async def test_a_rejected_answer_is_paid_for_and_the_next_ask_is_a_new_purchase(database: Database) -> None:
    model = ScriptedModel(lambda _: reply("useless"))
    metered, ask = client(database, model), an_ask(database)
    await metered.reject(await metered.ask(ask), "it does not fit the schema")
    again = await metered.ask(ask)
    assert not again.stored
    assert call_states(database) == ["rejected", "answered"]
    assert money(database) == 2 * ONE_REPLY_USD


async def test_a_call_that_was_not_sent_books_and_holds_nothing(database: Database) -> None:
    failed = CallFailed(Transient("connection refused"), Billing.NOTHING)
    ask = an_ask(database)
    with pytest.raises(Transient, match="refused"):
        await client(database, ScriptedModel(lambda _: failed)).ask(ask)
    assert call_states(database) == ["not_sent"]
    assert money(database) == 0
    with database.reading() as session:
        assert calls.job_use(session, ask.job_id).tokens == 0


async def test_a_call_whose_answer_was_lost_is_booked_at_its_worst_case(database: Database) -> None:
    failed = CallFailed(Transient("read timeout"), Billing.UNKNOWN)
    with pytest.raises(Transient):
        await client(database, ScriptedModel(lambda _: failed)).ask(an_ask(database))
    assert call_states(database) == ["unknown"]
    worst = scalar(database, "SELECT worst_case_usd FROM nightdesk.llm_calls")
    assert money(database) == worst
    assert money(database) >= Decimal("0.04")  # 4,000 tokens of output at $10 per million


async def test_a_call_without_an_answer_is_written_off_past_its_deadline_and_a_late_answer_reverses_it(
    database: Database,
) -> None:
    model = ScriptedModel(lambda _: reply())
    metered, ask = client(database, model), an_ask(database)
    opened = await asyncio.to_thread(metered._open, ask)
    call_id = opened.call_id
    with database.transaction() as session:
        assert calls.write_off_overdue(session) == 0
        moment = now(session)
    database.simulated_now = moment + timedelta(seconds=61)
    with database.transaction() as session:
        assert calls.write_off_overdue(session) == 1
    assert money(database) > ONE_REPLY_USD
    database.simulated_now = moment + timedelta(hours=6)
    with database.transaction() as session:
        calls.answer(session, call_id, reply())
        calls.answer(session, call_id, reply())
    assert money(database) == ONE_REPLY_USD
    reversal = "SELECT {} FROM nightdesk.ledger_entries WHERE reverses IS NOT NULL"
    assert scalar(database, reversal.format("count(*)")) == 1
    assert scalar(database, reversal.format("occurred_at")) == moment + timedelta(seconds=61)


async def test_a_zombies_money_is_booked_although_its_claim_has_ended(database: Database) -> None:
    ask = an_ask(database)

    def answer(_request: ModelRequest) -> ModelReply:
        with database.transaction() as session:
            session.connection().execute(
                text("UPDATE nightdesk.jobs SET locked_until = nightdesk.now() - interval '1 s'")
            )
        with database.transaction() as session:
            queue.rescue_expired(session)
        return reply()

    await client(database, ScriptedModel(answer)).ask(ask)
    assert money(database) == ONE_REPLY_USD


async def test_a_worker_whose_claim_has_ended_may_not_ask(database: Database) -> None:
    model = ScriptedModel(lambda _: reply())
    ask = dataclasses.replace(an_ask(database), claim_no=99)
    with pytest.raises(Fenced):
        await client(database, model).ask(ask)
    assert model.requests == []


async def test_an_answer_without_usage_is_kept_and_booked_at_the_worst_case(database: Database) -> None:
    bare = dataclasses.replace(reply("kept"), usage=None, raw_usage=None)
    answer = await client(database, ScriptedModel(lambda _: bare)).ask(an_ask(database))
    assert answer.text == "kept"
    assert money(database) == scalar(database, "SELECT worst_case_usd FROM nightdesk.llm_calls")


async def test_text_that_postgres_refuses_does_not_break_the_save(database: Database) -> None:
    await client(database, ScriptedModel(lambda _: reply("a\x00b\ud83dc"))).ask(an_ask(database))
    assert scalar(database, "SELECT answer FROM nightdesk.llm_calls") == "ab�c"


async def test_the_output_limit_is_cut_to_what_the_jobs_usd_cap_leaves(database: Database) -> None:
    model = ScriptedModel(lambda _: reply())
    ask = an_ask(database)
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_usd = 0.03"))
    await client(database, model).ask(ask)
    worst = scalar(database, "SELECT worst_case_usd FROM nightdesk.llm_calls")
    assert isinstance(worst, Decimal)
    assert Decimal("0.0299") < worst <= Decimal("0.03")
    assert 200 < model.requests[0].max_output_tokens < 4_000


async def test_the_output_limit_is_cut_to_what_the_jobs_token_cap_leaves(database: Database) -> None:
    model = ScriptedModel(lambda _: reply())
    ask = an_ask(database)
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_tokens = 4000"))
    await client(database, model).ask(ask)
    assert model.requests[0].max_output_tokens < 4_000
    assert scalar(database, "SELECT worst_case_tokens FROM nightdesk.llm_calls") == 4_000


async def test_below_a_useful_minimum_the_call_is_refused_before_it_is_sent(database: Database) -> None:
    model = ScriptedModel(lambda _: reply())
    ask = an_ask(database)
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_usd = 0.001"))
    with pytest.raises(OverJobCap) as caught:
        await client(database, model).ask(ask)
    assert not caught.value.only_unknown
    assert model.requests == []
    assert scalar(database, "SELECT count(*) FROM nightdesk.llm_calls") == 0


async def test_a_job_that_only_unknown_bookings_brought_to_its_cap_is_told_apart(database: Database) -> None:
    failed = CallFailed(Transient("read timeout"), Billing.UNKNOWN)
    metered, ask = client(database, ScriptedModel(lambda _: failed)), an_ask(database)
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_usd = 0.05"))
    with pytest.raises(Transient):
        await metered.ask(ask)
    with pytest.raises(OverJobCap) as caught:
        await metered.ask(ask)
    assert caught.value.only_unknown


async def test_a_job_cannot_spend_more_than_its_cap_over_all_its_attempts(database: Database) -> None:
    """However many answers are rejected, and in however many claims."""
    model = ScriptedModel(lambda request: reply(tokens=(1_000, request.max_output_tokens)))
    metered, ask = client(database, model), an_ask(database)
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_usd = 0.2"))
    with pytest.raises(OverJobCap):
        for _ in range(50):
            await metered.reject(await metered.ask(ask), "again")
    assert Decimal("0.15") < money(database) <= Decimal("0.2")


async def test_a_call_that_is_cancelled_in_flight_is_booked_at_its_worst_case(database: Database) -> None:
    started = asyncio.Event()

    class Hanging(ScriptedModel):
        async def ask(self, request: ModelRequest) -> ModelReply:
            started.set()
            await asyncio.sleep(60)
            raise AssertionError

    task = asyncio.create_task(client(database, Hanging(lambda _: reply())).ask(an_ask(database)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert call_states(database) == ["unknown"]
    assert money(database) == scalar(database, "SELECT worst_case_usd FROM nightdesk.llm_calls")


async def test_a_permanent_refusal_by_the_provider_costs_nothing(database: Database) -> None:
    failed = CallFailed(Permanent("400 prompt is too long"), Billing.NOTHING)
    with pytest.raises(Permanent):
        await client(database, ScriptedModel(lambda _: failed)).ask(an_ask(database))
    assert money(database) == 0


async def test_what_a_dead_run_had_in_flight_is_written_off_at_once(database: Database) -> None:
    metered, ask = client(database, ScriptedModel(lambda _: reply())), an_ask(database)
    await asyncio.to_thread(metered._open, ask)
    with database.transaction() as session:
        assert calls.write_off_run(session, "run-of-somebody-else") == 0
        assert calls.write_off_run(session, "run-a") == 1
    assert call_states(database) == ["unknown"]


async def test_a_cancellation_waits_until_a_paid_answer_is_stored(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the job is handed to somebody who does not see the answer and buys it again."""
    storing = asyncio.Event()
    loop = asyncio.get_running_loop()
    original = calls.answer

    def slowly(*args: object) -> None:
        loop.call_soon_threadsafe(storing.set)
        time.sleep(0.3)
        original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(calls, "answer", slowly)
    task = asyncio.create_task(client(database, ScriptedModel(lambda _: reply())).ask(an_ask(database)))
    await storing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert call_states(database) == ["answered"]
    assert money(database) == ONE_REPLY_USD


class WatchedLimiter:
    """Notes who asked for a slot; lets a call through when `open` is set."""

    def __init__(self, database: Database) -> None:
        self.open = asyncio.Event()
        self.asked: list[int] = []
        self.waiting = asyncio.Event()
        self.held = 0
        self.states_at_release: list[str] = []
        self._database = database

    @asynccontextmanager
    async def slot(self, provider: str, tokens: int) -> AsyncIterator[None]:
        assert provider == "anthropic"
        self.asked.append(tokens)
        self.waiting.set()
        await self.open.wait()
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1
            self.states_at_release += call_states(self._database)


def limited(database: Database, model: ScriptedModel) -> tuple[MeteredClient, WatchedLimiter]:
    slots = WatchedLimiter(database)
    return MeteredClient(database, {"anthropic": model}, SeededWorld(7), slots), slots


async def test_while_a_call_waits_for_its_slot_no_row_is_sent_and_no_transaction_is_open(
    database: Database,
) -> None:
    model = ScriptedModel(lambda _: reply())
    metered, slots = limited(database, model)
    task = asyncio.create_task(metered.ask(an_ask(database)))
    await slots.waiting.wait()
    assert call_states(database) == []
    assert model.requests == []
    in_transaction = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {}"
    mine = "state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()"
    assert scalar(database, in_transaction.format(mine)) == 0
    slots.open.set()
    assert not (await task).stored
    assert call_states(database) == ["answered"]


async def test_a_slot_is_asked_for_with_the_worst_case_of_its_tokens(database: Database) -> None:
    metered, slots = limited(database, ScriptedModel(lambda _: reply()))
    slots.open.set()
    await metered.ask(an_ask(database))
    assert slots.asked == [scalar(database, "SELECT worst_case_tokens FROM nightdesk.llm_calls")]


async def test_a_stored_answer_and_a_job_over_its_cap_and_an_ended_claim_take_no_slot(
    database: Database,
) -> None:
    metered, slots = limited(database, ScriptedModel(lambda _: reply()))
    ask = an_ask(database)
    await client(database, ScriptedModel(lambda _: reply("bought"))).ask(ask)
    assert (await metered.ask(ask)).text == "bought"
    with pytest.raises(Fenced):
        await metered.ask(dataclasses.replace(ask, claim_no=99))
    with database.transaction() as session:
        session.connection().execute(text("UPDATE nightdesk.jobs SET max_usd = 0.001"))
    with pytest.raises(OverJobCap):
        await metered.ask(dataclasses.replace(ask, input_digest="other"))
    assert slots.asked == []


async def test_a_claim_that_ends_while_it_waits_for_a_slot_asks_nothing(database: Database) -> None:
    model = ScriptedModel(lambda _: reply())
    metered, slots = limited(database, model)
    task = asyncio.create_task(metered.ask(an_ask(database)))
    await slots.waiting.wait()
    with database.transaction() as session:
        queue.hand_back_run(session, "run-a")
    slots.open.set()
    with pytest.raises(Fenced):
        await task
    assert (model.requests, call_states(database), slots.held) == ([], [], 0)


async def test_the_slot_is_given_back_when_the_answer_is_settled_and_after_every_failure(
    database: Database,
) -> None:
    ends = iter(
        [
            reply(),
            CallFailed(Transient("503"), Billing.NOTHING),
            CallFailed(Transient("read timeout"), Billing.UNKNOWN),
        ]
    )
    metered, slots = limited(database, ScriptedModel(lambda _: next(ends)))
    slots.open.set()
    await metered.ask(an_ask(database))
    for said in ("503", "read timeout"):
        with pytest.raises(Transient, match=said):
            await metered.ask(an_ask(database))
    assert slots.held == 0
    assert slots.states_at_release == [
        *["answered"],
        *["answered", "not_sent"],
        *["answered", "not_sent", "unknown"],
    ]


async def test_a_call_that_gets_no_slot_in_time_books_nothing_and_pauses_no_lane(database: Database) -> None:
    asked, answering = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def ask(self, request: ModelRequest) -> ModelReply:
            asked.set()
            await answering.wait()
            return await super().ask(request)

    model = Slow(lambda _: reply())
    limits = LocalLimiter({"anthropic": ProviderLimits(1)}, patience_s=0.05)
    metered = MeteredClient(database, {"anthropic": model}, SeededWorld(7), limits)
    first = asyncio.create_task(metered.ask(an_ask(database)))
    await asked.wait()
    with pytest.raises(ToldToWait) as caught:
        await metered.ask(an_ask(database))
    assert caught.value.lane is None
    assert call_states(database) == ["sent"]
    answering.set()
    await first
    assert call_states(database) == ["answered"]
