"""Ending in good order on Ctrl-C and on SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import typer


def until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run `work`; on SIGINT or SIGTERM cancel it, so that it gives back what it holds, and exit 130."""

    async def guarded() -> bool:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            return False
        return True

    if not asyncio.run(guarded()):
        raise typer.Exit(130)
