"""The deployment `monitor`: the layer below events, which depends on none of them."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from tasks.budgets import watch_budgets
from tasks.monitoring import (
    end_zombie_runs,
    report_failed_actions,
    rescue_leases,
    sweep_dead_letters,
    take_back_dead_runs,
)


@flow(name="monitor")
async def monitor(grace_s: float = 120.0, pending_s: float = 180.0) -> State[Any]:
    """End what died without a word, take back what it held, and route what no event brought.

    Args:
        grace_s: how long a failed job waits for the automations before it is swept.
        pending_s: how long a run may be pending before its worker counts as gone.
    """
    zombies = await end_zombie_runs(pending_s)
    taken_back = await take_back_dead_runs()
    rescued = rescue_leases()
    swept = sweep_dead_letters(grace_s)
    actions = await report_failed_actions()
    changed = await watch_budgets()
    return Completed(
        message=f"zombies ended: {len(zombies)}, jobs taken back: {taken_back + rescued}, "
        f"dead letters swept: {swept}, failed actions: {actions}, "
        f"changes of budgets: {changed}"
    )
