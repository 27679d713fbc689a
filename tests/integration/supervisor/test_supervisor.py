"""Real children that come up in order, come back when they die, and end with all that they have started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from nightdesk.errors import ConfigError
from nightdesk.supervisor import ChildSpec, DataFolderLock, Supervisor
from nightdesk.supervisor.supervisor import FIRST_WAIT_S, LONGEST_WAIT_S, STEADY_S, BackOff

SLEEPER = "import time; time.sleep(600)"


class Scene:
    """A supervisor on a folder of its own, and what it has said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.supervisor = Supervisor(
            log_dir=folder / "logs", state_dir=folder / "runs", tell=self.told.append
        )

    def child(
        self,
        name: str,
        code: str = SLEEPER,
        *,
        ready_timeout_s: float = 20.0,
        stop_timeout_s: float = 5.0,
        ready: Callable[[], bool] | None = None,
        before_restart: Callable[[], None] | None = None,
        before_stop: Callable[[psutil.Process], None] | None = None,
    ) -> ChildSpec:
        return ChildSpec(
            name=name,
            command=[sys.executable, "-c", code, str(self.folder)],
            env=dict(os.environ),
            ready=ready,
            ready_timeout_s=ready_timeout_s,
            before_restart=before_restart,
            before_stop=before_stop,
            stop_timeout_s=stop_timeout_s,
        )

    def exists(self, name: str) -> Callable[[], bool]:
        return (self.folder / name).exists

    def pids(self) -> dict[str, int]:
        known = json.loads((self.folder / "runs" / "children.json").read_text())
        return {one["name"]: one["pid"] for one in known}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.supervisor.stop()


def touch(name: str, then: str = SLEEPER) -> str:
    return f"import sys, pathlib; pathlib.Path(sys.argv[1], {name!r}).touch(); {then}"


def lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def wait_until(holds: Callable[[], bool], within_s: float = 20.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_next_child_is_started_when_the_one_before_is_ready(scene: Scene) -> None:
    slow = f"import time; time.sleep(0.5); {touch('first')}"
    scene.supervisor.start(scene.child("first", slow, ready=scene.exists("first")))
    assert (scene.folder / "first").exists()
    scene.supervisor.start(scene.child("second", touch("second"), ready=scene.exists("second")))
    assert set(scene.pids()) == {"first", "second"}


def test_a_child_that_ends_before_it_is_ready_is_reported_with_its_last_words(scene: Scene) -> None:
    with pytest.raises(ConfigError, match=r"bad did not start: no such option .*bad\.log"):
        scene.supervisor.start(scene.child("bad", "raise SystemExit('no such option')", ready=lambda: False))


def test_one_that_is_never_ready_is_not_waited_for_longer_than_was_said(scene: Scene) -> None:
    with pytest.raises(ConfigError, match="mute did not start"):
        scene.supervisor.start(scene.child("mute", ready=lambda: False, ready_timeout_s=0.5))


def test_a_killed_child_comes_back_after_a_second_and_what_must_come_before_comes_before(
    scene: Scene,
) -> None:
    prepared: list[float] = []
    spec = scene.child("worker", before_restart=lambda: prepared.append(time.monotonic()))
    scene.supervisor.start(spec)
    first = scene.pids()["worker"]
    os.kill(first, signal.SIGKILL)
    killed = time.monotonic()
    scene.supervisor.serve(for_s=3.0)
    second = scene.pids()["worker"]
    assert second != first
    assert lives(second)
    assert prepared
    assert prepared[0] - killed >= FIRST_WAIT_S
    assert scene.told == [
        f"worker ended (SIGKILL), starts again in 1 s: it said nothing (log: {scene.folder}/logs/worker.log)"
    ]


def test_what_must_come_before_may_fail_and_is_tried_again(scene: Scene) -> None:
    tries: list[int] = []

    def second_time() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the server does not answer")

    scene.supervisor.start(scene.child("worker", before_restart=second_time))
    os.kill(scene.pids()["worker"], signal.SIGKILL)
    scene.supervisor.serve(for_s=6.0)
    assert len(tries) == 2
    assert lives(scene.pids()["worker"])
    assert "cannot be started yet (the server does not answer), again in 2 s" in scene.told[1]


def test_the_waits_double_up_to_a_minute_and_a_long_life_ends_that() -> None:
    back_off = BackOff()
    assert [back_off.plan(0.0, 0.0) for _ in range(8)] == [1, 2, 4, 8, 16, 32, LONGEST_WAIT_S, LONGEST_WAIT_S]
    assert back_off.plan(STEADY_S, 100.0) == FIRST_WAIT_S
    assert back_off.due == 100.0 + FIRST_WAIT_S


def test_children_end_in_reverse_order_each_with_all_that_it_has_started(scene: Scene) -> None:
    ended: list[str] = []
    parent = (
        "import subprocess, sys, pathlib, time\n"
        f"own = subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], start_new_session=True)\n"
        "new = pathlib.Path(sys.argv[1], 'new'); new.write_text(str(own.pid)); new.rename(new.with_name('own'))\n"
        "time.sleep(600)"
    )
    scene.supervisor.start(scene.child("server", before_stop=lambda _: ended.append("server")))
    scene.supervisor.start(
        scene.child("worker", parent, ready=scene.exists("own"), before_stop=lambda _: ended.append("worker"))
    )
    pids = [*scene.pids().values(), int((scene.folder / "own").read_text())]
    assert all(lives(pid) for pid in pids)
    scene.supervisor.stop()
    assert ended == ["worker", "server"]
    assert not any(lives(pid) for pid in pids)
    assert not (scene.folder / "runs" / "children.json").exists()


def test_a_child_that_does_not_heed_is_killed(scene: Scene) -> None:
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {touch('deaf')}"
    scene.supervisor.start(scene.child("deaf", deaf, ready=scene.exists("deaf"), stop_timeout_s=0.3))
    pid = scene.pids()["deaf"]
    scene.supervisor.stop()
    assert not lives(pid)


def test_children_of_a_killed_supervisor_die_with_it_or_are_ended_by_the_next(scene: Scene) -> None:
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {touch('deaf')}"
    script = (
        "import os, sys, time, pathlib; from nightdesk.supervisor import ChildSpec, Supervisor\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "made = Supervisor(log_dir=folder / 'logs', state_dir=folder / 'runs', tell=print)\n"
        f"for name, code in (('meek', {SLEEPER!r}), ('deaf', {deaf!r})):\n"
        "    made.start(ChildSpec(name=name, command=[sys.executable, '-c', code, sys.argv[1]],\n"
        "        env=dict(os.environ), ready=(folder / 'deaf').exists if name == 'deaf' else None))\n"
        "(folder / 'up').touch(); time.sleep(600)"
    )
    first = subprocess.Popen([sys.executable, "-c", script, str(scene.folder)])
    wait_until(scene.exists("up"))
    pids = scene.pids()
    first.kill()
    first.wait()
    wait_until(lambda: not lives(pids["meek"]))
    assert lives(pids["deaf"])
    assert scene.supervisor.end_leftovers() == 1
    assert not lives(pids["deaf"])
    assert scene.told == [f"deaf (pid {pids['deaf']}) was left over from the last time: ended"]


def test_a_stranger_that_got_the_process_id_of_a_child_is_left_alone(scene: Scene) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", SLEEPER])
    try:
        known = [{"name": "worker", "pid": stranger.pid, "create_time": 12345.0}]
        (scene.folder / "runs" / "children.json").write_text(json.dumps(known))
        assert scene.supervisor.end_leftovers() == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("broken", ["", "[", '{"a": 1}', '[{"name": "x"}]', "[3]"])
def test_a_broken_list_of_children_is_no_reason_not_to_start(scene: Scene, broken: str) -> None:
    (scene.folder / "runs" / "children.json").write_text(broken)
    assert scene.supervisor.end_leftovers() == 0


class Fragile:
    """A service that comes back at the second try."""

    name = "postgres"

    def __init__(self) -> None:
        self.alive, self.tries = False, 0

    def is_alive(self) -> bool:
        return self.alive

    def restart(self) -> None:
        self.tries += 1
        if self.tries == 1:
            raise RuntimeError("the disk is full")
        self.alive = True


def test_a_service_is_brought_back_too(scene: Scene) -> None:
    service = Fragile()
    scene.supervisor.watch(service)
    scene.supervisor.serve(for_s=5.5)
    assert service.alive
    assert scene.told == [
        "postgres is gone, starts again in 1 s",
        "postgres did not start (the disk is full), again in 2 s",
        "postgres is back",
    ]


def test_a_data_folder_has_one_supervisor_and_a_killed_one_leaves_it_free(tmp_path: Path) -> None:
    script = (
        "import sys, time, pathlib; from nightdesk.supervisor import DataFolderLock\n"
        "with DataFolderLock(pathlib.Path(sys.argv[1])):\n"
        "    pathlib.Path(sys.argv[1], 'held').touch(); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    try:
        wait_until((tmp_path / "held").exists)
        with pytest.raises(ConfigError, match=rf"runs already on .* \(pid {holder.pid}, since 20"):
            DataFolderLock(tmp_path).__enter__()
    finally:
        holder.kill()
        holder.wait()
    with DataFolderLock(tmp_path):
        pass
