"""Stand-in until the real one is written."""
from __future__ import annotations
import os, signal, subprocess, time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from contextlib import contextmanager
import psutil

@dataclass
class ChildSpec:
    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    ready: Callable[[], bool] | None = None
    ready_timeout_s: float = 60
    stop_timeout_s: float = 10
    before_stop: Callable[[psutil.Process], None] | None = None

class DataFolderLock:
    def __init__(self, data_dir: Path) -> None: ...
    def __enter__(self): return self
    def __exit__(self, *a): ...

def who_listens(port: int) -> str | None:
    return None

class Supervisor:
    def __init__(self, *, log_dir: Path, state_dir: Path, tell) -> None:
        self.log_dir, self.tell, self.children = log_dir, tell, []
        log_dir.mkdir(parents=True, exist_ok=True)
    def end_leftovers(self): ...
    def watch(self, service): ...
    def start(self, spec):
        log = open(self.log_dir / f"{spec.name}.log", "ab")
        p = subprocess.Popen(spec.command, env=dict(spec.env), stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        self.children.append((spec, p))
        end = time.monotonic() + spec.ready_timeout_s
        while spec.ready and not spec.ready():
            assert p.poll() is None and time.monotonic() < end, spec.name
            time.sleep(0.2)
    def serve(self, over=None, for_s=None):
        if for_s: time.sleep(for_s)
        else: over.wait()
    def stop(self):
        for spec, p in reversed(self.children):
            if spec.before_stop: spec.before_stop(psutil.Process(p.pid))
            p.terminate()
            try: p.wait(spec.stop_timeout_s)
            except subprocess.TimeoutExpired: p.kill(); p.wait()
