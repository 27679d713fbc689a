"""A claim costs the same at 5,000 and at 200,000 waiting jobs, and after 200,000 finished ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import TextClause, text
from sqlalchemy.engine import URL

from nightdesk.db import Database
from nightdesk.desk import dead_letters, queue
from tests.integration.conftest import _execute

pytestmark = pytest.mark.timeout(240)

#: Finished, waiting and failed jobs lie among the ready ones, as they do after weeks.
FILL = """
    INSERT INTO nightdesk.articles (id, topic, topic_key, site, language, keyword, audience, min_words, priority,
        source_urls)
    SELECT gen_random_uuid(), 'topic ' || n, :kind || n, 'garden', 'en', 'k', '', 300, n % 10, '{}'
    FROM generate_series(1, :count) n
"""
JOBS = """
    INSERT INTO nightdesk.jobs (article_id, phase, round, state, priority, claim_no, attempts, deaths, site,
        max_attempts, max_tokens, max_usd, due_at, locked_until)
    SELECT id, 'research', 1, :state, priority, 0, 0, 0, site, 3, 100000, 2,
           CASE WHEN :state = 'waiting' THEN nightdesk.now() + interval '1 hour' END,
           CASE WHEN :state = 'leased' THEN nightdesk.now() + interval '1 hour' END
    FROM nightdesk.articles WHERE topic_key LIKE :kind || '%'
"""
CLAIM = {
    "run": "r", "phase": "research", "limit": 10, "lease_s": 900.0, "provider": "p", "model": "m",
    "prompt_version": "v", "closed_sites": ["kitchen"],
}  # fmt: skip
STATEMENTS: dict[str, tuple[TextClause, dict[str, object]]] = {
    "claim": (queue._CLAIMS[False, False], CLAIM),
    "claim suspects": (queue._CLAIMS[True, False], CLAIM | {"limit": 1}),
    "is there work": (queue._IS_THERE_WORK, {"phase": "research"}),
    "wake": (queue._WAKE, {"limit": 500, "phase": "research"}),
    "rescue": (queue._RESCUE_EXPIRED, {"limit": 500, "phase": "research"}),
    "rescue a run": (queue._RESCUE_RUN, {"run": "r", "most_deaths": 4}),
    "sweep": (dead_letters._FAILED_BEFORE, {"grace_s": 120.0, "limit": 100}),
    "renew": (queue._RENEW, {"job_ids": [1, 2, 3], "claim_nos": [1, 1, 1], "lease_s": 900.0}),
    "hand back": (queue._HAND_BACK, {"run": "r", "at_work": []}),
}
#: Pages touched: an index descent and the rows themselves, with their indexes.
MOST_BUFFERS = {"claim": 400, "claim suspects": 30}


def fill(database: Database, kind: str, state: str, count: int) -> None:
    with database.transaction() as session:
        session.connection().execute(text("SET LOCAL statement_timeout = '120s'"))
        session.connection().execute(text(FILL), {"kind": kind, "count": count})
        session.connection().execute(text(JOBS), {"kind": kind, "state": state})


def analyze(database: Database) -> None:
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE nightdesk.jobs"))
        connection.execute(text("VACUUM ANALYZE nightdesk.articles"))


@pytest.fixture(scope="module")
def big(server: URL, template: str) -> Iterator[dict[str, dict[str, Any]]]:
    """Each statement's plan at 5,000 ready jobs, at 200,000, and with 200,000 finished ones more."""
    name = f"nd_plans_{template}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    database = Database(server.set(database=name))
    plans: dict[str, dict[str, Any]] = {}
    try:
        fill(database, "ready", "ready", 5_000)
        fill(database, "waiting", "waiting", 1_000)
        fill(database, "leased", "leased", 20)
        analyze(database)
        plans["5,000"] = {name: explain(database, *one) for name, one in STATEMENTS.items()}
        fill(database, "more", "ready", 195_000)
        analyze(database)
        plans["200,000"] = {name: explain(database, *one) for name, one in STATEMENTS.items()}
        fill(database, "done", "done", 200_000)
        analyze(database)
        plans["finished"] = {name: explain(database, *one) for name, one in STATEMENTS.items()}
        yield plans
    finally:
        database.dispose()
        _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def explain(database: Database, statement: TextClause, values: dict[str, object]) -> dict[str, Any]:
    """The plan that was run; the transaction is rolled back."""
    with database.engine.connect() as connection:
        connection.execute(text("SELECT set_config('nightdesk.now', '', true)"))
        query = text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}")
        found = connection.execute(query, values).scalar_one()
        connection.rollback()
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def buffers(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


@pytest.mark.parametrize("size", ["200,000", "finished"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_reads_the_whole_queue(big: dict[str, dict[str, Any]], size: str, name: str) -> None:
    for node in nodes(big[size][name]):
        assert not (node["Node Type"] == "Seq Scan" and node.get("Relation Name") == "jobs"), node
        if node["Node Type"] == "Sort":
            assert node["Actual Rows"] <= 500, "a sort of many rows"


def test_a_claim_touches_as_many_pages_at_200_000_as_at_5_000(big: dict[str, dict[str, Any]]) -> None:
    small, large, old = (buffers(big[size]["claim"]) for size in ("5,000", "200,000", "finished"))
    assert large <= small * 1.3 + 30, (small, large, old)
    assert old <= small * 1.3 + 30, (small, large, old)


@pytest.mark.parametrize("name", ["claim suspects", "is there work", "wake", "rescue", "sweep"])
def test_looking_in_vain_costs_a_handful_of_pages(big: dict[str, dict[str, Any]], name: str) -> None:
    for size, plans in big.items():
        assert buffers(plans[name]) <= 60, (size, buffers(plans[name]))
