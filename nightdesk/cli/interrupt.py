"""Ending in good order on Ctrl-C and on SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
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


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the block, and with it the command, with exit code 130.

    Further ones are not heard: what is cleaned up then must not be cut short.
    """

    def end(_number: int, _frame: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
