"""Starts children in order, starts them again when they die, and ends them in reverse order."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from nightdesk.errors import ConfigError
from nightdesk.supervisor.children import (
    ChildSpec,
    Identity,
    Service,
    end_tree,
    identity,
    launch,
)
from nightdesk.supervisor.logs import rotate, tail

POLL_S = 1.0
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
#: Who has lived so long had no trouble starting: the next death begins with a short wait again.
STEADY_S = 60.0


@dataclass
class BackOff:
    """When to try again: after 1, 2, 4 … 60 s."""

    wait_s: float = FIRST_WAIT_S
    due: float | None = None  #: monotonic; None: nothing to try

    def plan(self, lived_s: float, now: float) -> float:
        """Plan the next try; returns how long from now."""
        wait_s = FIRST_WAIT_S if lived_s >= STEADY_S else self.wait_s
        self.wait_s = min(wait_s * 2, LONGEST_WAIT_S)
        self.due = now + wait_s
        return wait_s


@dataclass
class _Child:
    spec: ChildSpec
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    back_off: BackOff = field(default_factory=BackOff)


@dataclass
class _Watched:
    service: Service
    since: float
    back_off: BackOff = field(default_factory=BackOff)


class Supervisor:
    """Keeps children and services alive.

    All children are started by the thread that calls `start` and `serve`: they die with it.

    Args:
        log_dir: one log per child.
        state_dir: remembers who was started, so that what a killed supervisor leaves is found.
        tell: gets a line for each death and each start.
    """

    def __init__(self, *, log_dir: Path, state_dir: Path, tell: Callable[[str], None]) -> None:
        log_dir.mkdir(parents=True, exist_ok=True)
        state_dir.mkdir(parents=True, exist_ok=True)
        self._log_dir = log_dir
        self._known = state_dir / "children.json"
        self._tell = tell
        self._children: list[_Child] = []
        self._watched: list[_Watched] = []

    def end_leftovers(self) -> int:
        """End what a supervisor of this folder started that was killed itself; returns how many."""
        ended = 0
        for one in self._remembered():
            if (process := one.process()) is not None:
                self._tell(f"{one.name} (pid {one.pid}) was left over from the last time: ended")
                end_tree(process, 5.0)
                ended += 1
        self._known.unlink(missing_ok=True)
        return ended

    def watch(self, service: Service) -> None:
        """Keep a service alive too."""
        self._watched.append(_Watched(service, time.monotonic()))

    def start(self, spec: ChildSpec) -> None:
        """Start a child and wait until it is ready; from now on it is kept alive.

        Raises:
            ConfigError: if it is not ready in time, with its last words.
        """
        child = _Child(spec, self._log_dir / f"{spec.name}.log")
        self._children.append(child)
        self._launch(child)
        deadline = time.monotonic() + spec.ready_timeout_s
        while spec.ready is not None and not spec.ready():
            assert child.process is not None
            if child.process.poll() is not None or time.monotonic() > deadline:
                raise ConfigError(f"{spec.name} did not start: {tail(child.log)} (log: {child.log})")
            time.sleep(0.2)

    def serve(self, for_s: float | None = None) -> None:
        """Keep everything alive for so many seconds; without a number until an exception ends it (Ctrl-C)."""
        deadline = None if for_s is None else time.monotonic() + for_s
        while True:
            self.poll()
            left = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
            if left <= 0:
                return
            time.sleep(left)

    def poll(self) -> None:
        """One look at everybody."""
        now = time.monotonic()
        for watched in self._watched:
            self._look_at_service(watched, now)
        for child in self._children:
            self._look_at(child, now)
            rotate(child.log)

    def stop(self) -> None:
        """End the children in reverse order, each with all that it has started."""
        for child in reversed(self._children):
            if child.process is None:
                continue
            with suppress(psutil.Error):
                process = psutil.Process(child.process.pid)
                if child.spec.before_stop is not None and child.process.poll() is None:
                    child.spec.before_stop(process)
                end_tree(process, child.spec.stop_timeout_s)
            child.process.wait()
            child.process = None
        self._children.clear()
        self._known.unlink(missing_ok=True)

    # ── children ──────────────────────────────────────────────────────────────────────────────

    def _launch(self, child: _Child) -> None:
        child.process = launch(child.spec, child.log)
        child.started = time.monotonic()
        child.back_off.due = None
        self._remember()

    def _launch_again(self, child: _Child, now: float) -> None:
        try:
            if child.spec.before_restart is not None:
                child.spec.before_restart()
            self._launch(child)
        except Exception as error:
            wait_s = child.back_off.plan(0.0, now)
            self._tell(f"{child.spec.name} cannot be started yet ({error}), again in {wait_s:g} s")

    def _look_at(self, child: _Child, now: float) -> None:
        if child.back_off.due is not None:
            if now >= child.back_off.due:
                self._launch_again(child, now)
            return
        if child.process is None or child.process.poll() is None:
            return
        wait_s = child.back_off.plan(now - child.started, now)
        self._tell(
            f"{child.spec.name} ended ({_how(child.process.returncode)}), starts again in {wait_s:g} s: "
            f"{tail(child.log, 1) or 'it said nothing'} (log: {child.log})"
        )

    def _look_at_service(self, watched: _Watched, now: float) -> None:
        due = watched.back_off.due
        if due is None:
            if watched.service.is_alive():
                return
            wait_s = watched.back_off.plan(now - watched.since, now)
            self._tell(f"{watched.service.name} is gone, starts again in {wait_s:g} s")
        elif now >= due:
            try:
                watched.service.restart()
                watched.since, watched.back_off.due = time.monotonic(), None
                self._tell(f"{watched.service.name} is back")
            except Exception as error:
                # It must be back some time: nothing that goes wrong meanwhile may end the supervisor.
                wait_s = watched.back_off.plan(0.0, now)
                self._tell(f"{watched.service.name} did not start ({error}), again in {wait_s:g} s")

    # ── what a killed supervisor leaves ───────────────────────────────────────────────────────

    def _remember(self) -> None:
        running = [child for child in self._children if child.process is not None]
        known = [identity(child.spec.name, child.process) for child in running if child.process]
        unfinished = self._known.with_suffix(".new")
        unfinished.write_text(json.dumps([asdict(one) for one in known if one is not None]))
        unfinished.replace(self._known)

    def _remembered(self) -> list[Identity]:
        try:
            return [Identity(**one) for one in json.loads(self._known.read_text())]
        except (OSError, ValueError, TypeError):
            return []


def _how(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    with suppress(ValueError):
        return signal.Signals(-returncode).name
    return f"signal {-returncode}"
