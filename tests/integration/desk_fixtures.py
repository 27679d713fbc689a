"""Articles, claims and a scripted model for tests of the desk."""

from __future__ import annotations

import random
import uuid
import zlib
from collections.abc import Callable
from decimal import Decimal

from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.desk.queue import Claim, Limits, Pin
from nightdesk.desk.topics import Topic, add_topics
from nightdesk.llm.port import CallFailed, ModelReply, ModelRequest, Stop
from nightdesk.spend.usage import TokenUsage
from nightdesk.states import Phase

LIMITS = Limits(max_tokens=200_000, max_usd=Decimal(2))
PIN = Pin("anthropic", "claude-sonnet-5-5", "draft/1@test")


class SeededWorld:
    """Ids and randomness from a seed; sleeping takes no time and is noted."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self.slept: list[float] = []

    def new_id(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def random(self) -> float:
        return self._random.random()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class ScriptedModel:
    """A model whose answers are given by a function; it notes every request."""

    provider = "anthropic"

    def __init__(self, answer: Callable[[ModelRequest], ModelReply | CallFailed]) -> None:
        self._answer = answer
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        answer = self._answer(request)
        if isinstance(answer, CallFailed):
            raise answer
        return answer

    async def aclose(self) -> None:
        pass


def reply(text: str = "{}", *, tokens: tuple[int, int] = (1_000, 500), stop: Stop = Stop.END) -> ModelReply:
    """An answer with usage."""
    usage = TokenUsage(input_tokens=tokens[0], output_tokens=tokens[1])
    return ModelReply(text, stop, usage, usage.as_json(), "req_test")


def add_articles(database: Database, *topics: str, **fields: object) -> list[uuid.UUID]:
    """Articles with a ready research job each."""
    world = SeededWorld(zlib.crc32("\n".join(topics).encode("utf-8", "surrogatepass")))
    wanted = [Topic(topic=one, keyword="compost", site="garden", **fields) for one in topics]  # type: ignore[arg-type]
    with database.transaction() as session:
        add_topics(session, world, wanted, LIMITS, source="test")
        rows = session.connection().exec_driver_sql(
            "SELECT topic, id FROM nightdesk.articles WHERE topic = ANY(%s)", (list(topics),)
        )
        ids = {row.topic: row.id for row in rows}
    return [ids[topic] for topic in topics]


def claim_one(database: Database, run: str = "run-a", phase: Phase = Phase.RESEARCH) -> Claim:
    """The next ready job of a phase."""
    with database.transaction() as session:
        claims = queue.claim(session, run=run, phase=phase, limit=1, lease_s=900, pin=PIN)
    assert len(claims) == 1
    return claims[0]


def scalar(database: Database, query: str, **values: object) -> object:
    """One value."""
    from sqlalchemy import text

    with database.reading() as session:
        return session.connection().execute(text(query), values).scalar()
