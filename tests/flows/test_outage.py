"""The Prefect server is away while a run is at work.

NIGHTDESK_TEST_OUTAGE_S says for how long: 10 s, or three minutes by `make test-kills`.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from nightdesk.db import Database
from nightdesk.sandbox import SandboxProcess, read_journal
from tests.flows.conftest import PrefectServer
from tests.flows.scenes import ended, eventually, start
from tests.integration.desk_fixtures import add_articles, scalar

OUTAGE_S = float(os.environ.get("NIGHTDESK_TEST_OUTAGE_S", "10"))


@pytest.mark.timeout(300 + 3 * OUTAGE_S)
async def test_a_run_lives_through_it_and_nothing_is_paid_or_done_twice(
    desk: Database, prefect_server: PrefectServer, provider: SandboxProcess
) -> None:
    add_articles(desk, "Unhurried herbs", "Unhurried tomatoes")
    run = await start("research/research")

    async def asked() -> bool:
        return scalar(desk, "SELECT count(*) FROM nightdesk.llm_calls WHERE state = 'sent'") == 2

    await eventually(asked, within_s=60)
    prefect_server.kill()
    await asyncio.sleep(OUTAGE_S)
    await asyncio.to_thread(prefect_server.start)
    state = await ended(run, within_s=120 + OUTAGE_S)
    assert state.type.value in ("COMPLETED", "CRASHED")
    if state.is_crashed():
        assert (await ended(await start("monitor/monitor"))).is_completed()
        assert (await ended(await start("research/research"))).is_completed()
    assert (
        scalar(desk, "SELECT count(*) FROM nightdesk.jobs WHERE phase = 'research' AND state = 'done'") == 2
    )
    paid = [one for one in read_journal(provider.options.journal) if one.billed_usd > 0]
    ours = {str(one) for one in call_ids(desk)}
    assert len([one for one in paid if one.client_request_id in ours]) == 2


def call_ids(database: Database) -> list[object]:
    from sqlalchemy import text

    with database.reading() as session:
        return list(session.connection().execute(text("SELECT id FROM nightdesk.llm_calls")).scalars())
