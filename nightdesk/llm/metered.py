"""The metered client: the only way to reach a model.

A call is a row before it is a request: its row is committed as `sent`, with its worst case and its
deadline, and only then does the request go out. Answer, usage and Money are written in one
transaction right after the reply. Nothing stored is bought twice: an answered call key returns its
row. The job's own limits are applied before each call, by cutting its output limit to what is left.

The order of one ask: fence, stored answer and job's limits → a slot of the provider's → the same checks
again and the `sent` row, in one transaction → request → settling → the slot is given back. While it waits
for a slot nothing is `sent` and no transaction is open; a stored answer and a job over its cap need no
slot. The slot is held until the answer is settled: giving it back may suspend (it is a request of its own
where limits are shared), and nothing may come between a paid answer and its row.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from pydantic import BaseModel
from sqlalchemy import TextClause, text
from sqlmodel import Session

from nightdesk.db import Database, transact
from nightdesk.errors import ConfigError, Fenced, OverJobCap
from nightdesk.llm import calls
from nightdesk.llm.limiter import Limiter, NoLimit
from nightdesk.llm.port import Billing, CallFailed, ModelPort, ModelRequest, Stop
from nightdesk.spend.estimate import input_bound_tokens, input_estimate_tokens, worst_case_usd
from nightdesk.spend.ledger import job_money_usd
from nightdesk.world import World

#: A call past its deadline by this much has surely ended: the rescue may write it off.
DEADLINE_MARGIN_S = 30.0
_SETTLE_RETRIES_S = (0.2, 1.0, 3.0, 10.0, 30.0, 30.0)


@dataclass(frozen=True, slots=True)
class Ask:
    """One question of a job to a model."""

    job_id: int
    claim_no: int
    article_id: uuid.UUID
    site: str
    phase: str
    round: int
    provider: str
    model: str
    prompt_version: str
    input_digest: str  #: of the typed inputs, not of the rendered text
    system: str
    user: str
    schema: type[BaseModel]
    max_output_tokens: int
    min_output_tokens: int  #: below this an answer would be of no use
    deadline_s: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said. `call_id` names its row; `stored` is true if it had been bought before."""

    call_id: uuid.UUID
    text: str
    stop: Stop
    detail: str
    stored: bool


class MeteredClient:
    """Asks models on behalf of jobs. `limiter` None: calls are not throttled."""

    def __init__(
        self,
        database: Database,
        models: Mapping[str, ModelPort],
        world: World,
        limiter: Limiter | None = None,
    ) -> None:
        self._database = database
        self._models = models
        self._world = world
        self._limiter = limiter or NoLimit()

    async def ask(self, ask: Ask) -> Answer:
        """The answer, from its row if it was bought before.

        Raises:
            Fenced: if the claim has ended.
            OverJobCap: if the job's limits leave no room for a useful answer.
            ConfigError: if this process has no access to the provider that the job is pinned to.
            ToldToWait: without a lane, if the limiter had no slot in time; nothing was sent.
            JobError: whatever the provider's failure means.
        """
        model = self._model(ask)
        due = await self._looked(ask)
        if isinstance(due, Answer):
            return due
        async with self._limiter.slot(ask.provider, due.room.worst_case_tokens):
            return await self._buy(model, ask)

    async def _buy(self, model: ModelPort, ask: Ask) -> Answer:
        opened = await self._opened(ask)
        if isinstance(opened, Answer):
            return opened
        request = ModelRequest(
            call_id=opened.call_id,
            model=ask.model,
            system=ask.system,
            user=ask.user,
            schema=ask.schema,
            max_output_tokens=opened.max_output_tokens,
            cache_key=ask.prompt_version,
            deadline_s=ask.deadline_s,
        )
        try:
            reply = await model.ask(request)
        except CallFailed as failed:
            billing, error = failed.billing, failed.error
            await self._settle(lambda session: calls.fail(session, opened.call_id, billing, str(error)))
            raise error from failed
        except (asyncio.CancelledError, Exception) as error:
            # Nobody will read the answer, but somebody may bill it.
            why = f"ended while it was in flight ({type(error).__name__})"
            await self._settle(lambda session: calls.write_off(session, opened.call_id, why))
            raise
        await self._settle(lambda session: calls.answer(session, opened.call_id, reply))
        return Answer(opened.call_id, reply.text, reply.stop, reply.detail, stored=False)

    def _model(self, ask: Ask) -> ModelPort:
        if ask.provider not in self._models:
            raise ConfigError(
                f"the job was begun with {ask.provider}, which is not in use here: "
                f"run it where {ask.provider} is configured"
            )
        return self._models[ask.provider]

    async def _looked(self, ask: Ask) -> Answer | _Due:
        looking = asyncio.ensure_future(asyncio.to_thread(self._look, ask))
        try:
            return await asyncio.shield(looking)
        except asyncio.CancelledError:
            # The thread cannot be stopped, and whoever cancels may be about to close the database.
            await asyncio.wait([looking])
            raise

    async def _opened(self, ask: Ask) -> Answer | _Opened:
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, ask))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opened = await opening
            if isinstance(opened, _Opened):
                with self._database.transaction() as session:
                    calls.fail(session, opened.call_id, Billing.NOTHING, "cancelled before it was sent")
            raise

    async def reject(self, answer: Answer, why: str) -> None:
        """An answer that was paid for cannot be used: the next ask has another key."""
        await self._settle(lambda session: calls.reject(session, answer.call_id, why))

    async def _settle(self, write: Callable[[Session], object]) -> None:
        """Write what is known of a call; what was paid for is worth waiting for the database.

        A cancellation is held back until it is written: else the job would be handed to somebody who
        does not see the answer yet.
        """
        settling = asyncio.ensure_future(transact(self._database, self._world, write, _SETTLE_RETRIES_S))
        try:
            await asyncio.shield(settling)
        except asyncio.CancelledError:
            await settling
            raise

    def _look(self, ask: Ask) -> Answer | _Due:
        with self._database.reading() as session:
            return self._due(session, ask, _JOB)

    def _open(self, ask: Ask) -> Answer | _Opened:
        with self._database.transaction() as session:
            due = self._due(session, ask, _LOCK_JOB)
            if isinstance(due, Answer):
                return due
            call_id = self._world.new_id()
            calls.open_call(
                session,
                calls.NewCall(
                    id=call_id,
                    call_key=due.call_key,
                    ask_no=due.ask_no,
                    job_id=ask.job_id,
                    claim_no=ask.claim_no,
                    article_id=ask.article_id,
                    phase=ask.phase,
                    provider=ask.provider,
                    model=ask.model,
                    prompt_version=ask.prompt_version,
                    worst_case_usd=due.room.worst_case_usd,
                    max_output_tokens=due.room.max_output_tokens,
                    worst_case_tokens=due.room.worst_case_tokens,
                    open_for_s=ask.deadline_s + DEADLINE_MARGIN_S,
                ),
            )
        return _Opened(call_id, due.room.max_output_tokens)

    def _due(self, session: Session, ask: Ask, job_query: TextClause) -> Answer | _Due:
        """The stored answer, or what a call for one would be.

        Raises:
            Fenced: if the claim has ended.
            OverJobCap: if the job's limits leave no room for a useful answer.
        """
        key = call_key(ask)
        job = session.connection().execute(job_query, {"job_id": ask.job_id}).one()
        if job.state != "leased" or job.claim_no != ask.claim_no:
            raise Fenced(ask.job_id, ask.claim_no)
        ask_no = 1 + len({row.ask_no for row in calls.rejections(session, key)})
        stored = calls.answered(session, key, ask_no)
        if stored is not None:
            return Answer(stored.id, stored.answer, Stop(stored.stop), "", stored=True)
        return _Due(key, ask_no, self._room(session, ask, job))

    def _room(self, session: Session, ask: Ask, job: Any) -> _Room:
        """What the job's limits leave for this call.

        Raises:
            OverJobCap: if that is less than a useful answer.
        """
        used = calls.job_use(session, ask.job_id)
        texts = (ask.system, ask.user, _schema_text(ask.schema))
        input_tokens, input_estimate = input_bound_tokens(*texts), input_estimate_tokens(*texts)

        def output_room(tokens: int, usd: Decimal) -> int:
            allowed = min(ask.max_output_tokens, job.max_tokens - tokens - input_estimate)
            return _affordable(ask, input_tokens, allowed, job.max_usd - usd, job.now)

        booked = job_money_usd(session, ask.job_id)
        allowed = output_room(used.tokens, booked + used.open_usd)
        if allowed < ask.min_output_tokens:
            sure = output_room(used.tokens - used.unknown_tokens, booked - used.unknown_usd)
            raise OverJobCap(
                f"the job's limits ({job.max_tokens} tokens, ${job.max_usd}) leave room for "
                f"{max(allowed, 0)} tokens of output, a useful answer needs {ask.min_output_tokens}",
                only_unknown=sure >= ask.min_output_tokens,
            )
        return _Room(
            max_output_tokens=allowed,
            worst_case_tokens=input_estimate + allowed,
            worst_case_usd=worst_case_usd(
                ask.provider, ask.model, input_tokens=input_tokens, output_tokens=allowed, at=job.now
            ),
        )


@dataclass(frozen=True, slots=True)
class _Opened:
    call_id: uuid.UUID
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class _Room:
    max_output_tokens: int
    worst_case_tokens: int
    worst_case_usd: Decimal


@dataclass(frozen=True, slots=True)
class _Due:
    call_key: str
    ask_no: int
    room: _Room


_JOB = text("""
    SELECT state, claim_no, max_tokens, max_usd, nightdesk.now() AS now
    FROM nightdesk.jobs WHERE id = :job_id
""")
_LOCK_JOB = text(f"{_JOB.text} FOR UPDATE")


@cache
def _schema_text(schema: type[BaseModel]) -> str:
    return json.dumps(schema.model_json_schema())


def call_key(ask: Ask) -> str:
    """The same question has the same key; together with the ask number it names what was bought."""
    parts = (
        str(ask.article_id),
        ask.phase,
        str(ask.round),
        ask.input_digest,
        ask.prompt_version,
        ask.provider,
        ask.model,
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _affordable(ask: Ask, input_tokens: int, most: int, usd: Decimal, at: Any) -> int:
    """The largest output limit up to `most` whose worst case costs at most `usd`; 0 if none does."""

    def fits(output_tokens: int) -> bool:
        worst = worst_case_usd(
            ask.provider, ask.model, input_tokens=input_tokens, output_tokens=output_tokens, at=at
        )
        return worst <= usd

    if most <= 0 or not fits(1):
        return 0
    if fits(most):
        return most
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
