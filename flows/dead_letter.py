"""The deployment `dead-letter`, run by automations when a phase's run has failed or crashed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from tasks.dead_letters import route_run, take_back_run


@flow(name="dead-letter", flow_run_name="dead letters of {flow_run_id}")
def dead_letter(flow_run_id: UUID, layer: str = "hand", crashed: bool = False) -> State[Any]:
    """Bring the failed jobs of a run to the dead letters; take back what a crashed one still holds.

    Args:
        flow_run_id: the run of a phase.
        layer: what asked for it; each dead letter names it.
        crashed: the run's process is gone.
    """
    run = str(flow_run_id)
    taken_back = take_back_run(run) if crashed else 0
    routed = route_run(run, layer)
    return Completed(message=f"dead letters: {routed}, jobs taken back: {taken_back}")
