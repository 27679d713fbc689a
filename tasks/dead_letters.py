"""Tasks of the dead-letter deployment."""

from __future__ import annotations

from prefect import task
from prefect.utilities.urls import url_for

from nightdesk.config import load_settings
from nightdesk.connection import open_database
from tasks.retrying import RETRIES


@task(name="route", task_run_name="route {run}", persist_result=False, **RETRIES)
def route_run(run: str, layer: str) -> int:
    """Give each failed job of a run its dead letter; returns how many there were."""
    from nightdesk.desk.dead_letters import route_run

    with open_database(load_settings(), upgrade=False) as database, database.transaction() as session:
        return route_run(session, run, layer, run_url=run_url(run))


@task(name="take back", task_run_name="take back {run}", persist_result=False, **RETRIES)
def take_back_run(run: str) -> int:
    """Make ready again what a dead run still holds, under a new claim; returns how many jobs."""
    from nightdesk.desk.dead_runs import take_back_run

    with open_database(load_settings(), upgrade=False) as database, database.transaction() as session:
        return len(take_back_run(session, run))


def run_url(run: str) -> str | None:
    """The page of a flow run; None if the UI's address is not known."""
    return url_for("flow-run", obj_id=run)
