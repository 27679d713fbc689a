"""Nightdesk's queue as it is shipped: each batch claimed in a transaction, each job finished in one."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from decimal import Decimal

from sqlalchemy import event, text
from sqlalchemy.engine import URL

from benchmarks.queue_peers.system import BATCH, CONCURRENCY, Shares, run_threads
from nightdesk.db import Database
from nightdesk.desk import queue
from nightdesk.desk.queue import Claim, Limits, Pin
from nightdesk.schema import migrate
from nightdesk.states import Phase

LIMITS = Limits(max_tokens=200_000, max_usd=Decimal(2))
PIN = Pin("anthropic", "claude-sonnet-5-5", "research/1@0123456789ab")
LEASE_S = 900.0

_ARTICLES = text("""
    INSERT INTO nightdesk.articles (id, topic, topic_key, site, language, keyword, audience, min_words,
        priority, source_urls)
    SELECT id, 'How to keep bees in a garden, part ' || id, id::text, 'garden', 'en', 'bees', '', 300, 0, '{}'
    FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, :count)) made
    RETURNING id
""")
_JOBS = text("""
    INSERT INTO nightdesk.jobs (article_id, phase, round, state, priority, claim_no, attempts, deaths, site,
        max_attempts, max_tokens, max_usd)
    SELECT a.id, 'research', 1, 'ready', a.priority, 0, 0, 0, a.site, :max_attempts, :max_tokens, :max_usd
    FROM nightdesk.articles a WHERE NOT EXISTS (SELECT 1 FROM nightdesk.jobs j WHERE j.article_id = a.id)
""")
_WAITING = text("SELECT count(*) FROM nightdesk.jobs WHERE state = 'ready'")

#: A statement as the driver gets it, with its parameters.
Sent = tuple[str, dict[str, object]]


class Shipped:
    """`nightdesk.desk.queue` through `Database.transaction()`."""

    def __init__(self, url: URL) -> None:
        self.database = Database(url, pool_size=CONCURRENCY)

    def install(self) -> None:
        migrate(self.database)

    def waiting(self) -> int:
        with self.database.reading() as session:
            return int(session.connection().execute(_WAITING).scalar_one())

    def stock(self, count: int) -> None:
        self.add_articles(count)
        with self.database.transaction() as session:
            session.connection().execute(text("SET LOCAL statement_timeout = '5min'"))
            values = {
                "max_attempts": LIMITS.max_attempts,
                "max_tokens": LIMITS.max_tokens,
                "max_usd": LIMITS.max_usd,
            }
            session.connection().execute(_JOBS, values)

    def add_articles(self, count: int) -> list[uuid.UUID]:
        """Articles without a job."""
        with self.database.transaction() as session:
            session.connection().execute(text("SET LOCAL statement_timeout = '5min'"))
            return list(session.connection().execute(_ARTICLES, {"count": count}).scalars())

    def enqueue(self, jobs: int) -> float:
        articles, shares = iter(self.add_articles(jobs)), Shares(jobs)

        def work(ready: Callable[[], object]) -> None:
            with self.database.reading():
                ready()
            while size := shares.take():
                with self.database.transaction() as session:
                    for _ in range(size):
                        queue.add_job(session, next(articles), Phase.RESEARCH, 1, LIMITS)

        return run_threads(work)

    def drain(self, jobs: int) -> float:
        shares = Shares(jobs)

        def work(ready: Callable[[], object]) -> None:
            with self.database.reading():
                ready()
            while size := shares.take():
                claims = self.claim(size)
                if len(claims) < size:
                    raise RuntimeError(
                        f"{len(claims)} jobs claimed, {size} asked for: the backlog is too small"
                    )
                for one in claims:
                    with self.database.transaction() as session:
                        queue.finish(session, one)

        return run_threads(work)

    def claim(self, limit: int) -> list[Claim]:
        """A batch, in a transaction of its own."""
        with self.database.transaction() as session:
            return queue.claim(
                session, run="benchmark", phase=Phase.RESEARCH, limit=limit, lease_s=LEASE_S, pin=PIN
            )

    def close(self) -> None:
        self.database.dispose()

    def sent_by(self) -> tuple[list[Sent], list[Sent], list[Sent]]:
        """What the driver is given by `add_job`, `claim` and `finish`; nothing of it stays."""
        sent: list[Sent] = []

        def note(_c: object, _k: object, statement: str, values: dict[str, object], *_: object) -> None:
            sent.append((statement, dict(values)))

        def taken() -> list[Sent]:
            found = sent[:]
            sent.clear()
            return found

        with self.database.transaction() as session:
            article = session.connection().execute(_ARTICLES, {"count": 1}).scalar_one()
            event.listen(self.database.engine, "before_cursor_execute", note)
            try:
                queue.add_job(session, article, Phase.RESEARCH, 1, LIMITS)
                adding = taken()
                claims = queue.claim(
                    session, run="benchmark", phase=Phase.RESEARCH, limit=1, lease_s=LEASE_S, pin=PIN
                )
                claiming = taken()
                queue.finish(session, claims[0])
                return adding, claiming, taken()
            finally:
                event.remove(self.database.engine, "before_cursor_execute", note)
                session.rollback()

    def claim_buffers(self) -> int:
        """Pages that the claim of a batch touches, by EXPLAIN (ANALYZE, BUFFERS); rolled back."""
        _, [(statement, values)], _ = self.sent_by()
        with self.database.transaction() as session:
            found = session.connection().exec_driver_sql(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values | {"limit": BATCH}
            )
            answer = found.scalar_one()
            session.rollback()
        plan = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
        return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
