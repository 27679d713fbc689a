"""What runs of this machine's last life left behind: `nightdesk up` calls it before it starts a worker."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import psutil
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.states import Crashed

from tasks.monitoring import take_back_dead_runs, unfinished_runs


async def recover() -> int:
    """Mark as crashed the runs whose process is gone, and take back what they held; returns how many.

    Certain only while no other machine works for this server: then a process that is not here is gone.
    """
    ended = 0
    async with get_client() as client:
        for run in await unfinished_runs(client):
            if not _lives(run.infrastructure_pid):
                state: State[Any] = Crashed(
                    message="its process ended with the machine or with `nightdesk up`"
                )
                await client.set_flow_run_state(run.id, state, force=True)
                ended += 1
    await take_back_dead_runs.fn()
    return ended


def _lives(pid: str | None) -> bool:
    """True if the process is there and is one of Prefect's: pids are used again."""
    try:
        return pid is not None and any("prefect" in part for part in psutil.Process(int(pid)).cmdline())
    except (ValueError, psutil.Error):
        return False


if __name__ == "__main__":
    ended = asyncio.run(recover())
    sys.stdout.write(f"{ended} runs of the last time ended\n")
