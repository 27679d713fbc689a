"""One child process: how it is started, and how it is ended with all that it has started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil


class Service(Protocol):
    """Something that is no child of ours and has to be watched too."""

    name: str

    def is_alive(self) -> bool:
        """Cheap: it is asked every second."""
        ...

    def restart(self) -> None:
        """Bring it up again; may raise, and is then tried later."""
        ...


@dataclass(frozen=True)
class ChildSpec:
    """A child process.

    Args:
        ready: asked until it says yes before the next child is started.
        before_restart: called before it is started again after a death; may take a while, may raise.
        before_stop: called with the process before it is asked to end.
        stop_timeout_s: how long it may take to end after SIGTERM; then it is killed.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    ready: Callable[[], bool] | None = None
    ready_timeout_s: float = 60.0
    before_restart: Callable[[], None] | None = None
    before_stop: Callable[[psutil.Process], None] | None = None
    stop_timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Identity:
    """A process for certain: pids are used again, pid and start time together are not."""

    name: str
    pid: int
    create_time: float

    def process(self) -> psutil.Process | None:
        """The process, if it is still that one; a dead one that nobody has reaped counts as gone."""
        try:
            found = psutil.Process(self.pid)
            same = abs(found.create_time() - self.create_time) < 0.01
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None


def launch(spec: ChildSpec, log: Path) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own; its output is added to the log."""
    wrapper = [sys.executable, "-m", "nightdesk.supervisor.child", str(os.getpid())]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*wrapper, *spec.command],
            env=dict(spec.env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def identity(name: str, process: subprocess.Popen[bytes]) -> Identity | None:
    """Who a child is; None if it has ended already."""
    try:
        return Identity(name, process.pid, psutil.Process(process.pid).create_time())
    except psutil.Error:
        return None


def end_tree(process: psutil.Process, timeout_s: float) -> None:
    """Ask a process to end; after the timeout kill it. What it has started is killed with it."""
    family = descendants(process)
    with suppress(psutil.Error):
        process.terminate()
    psutil.wait_procs([process], timeout=timeout_s)
    family = {one.pid: one for one in [*family, *descendants(process)]}.values()  # type: ignore[assignment]
    for one in (process, *family):
        with suppress(psutil.Error):
            one.kill()
    psutil.wait_procs([process, *family], timeout=5)


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """All that a process has started and that still runs."""
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []
