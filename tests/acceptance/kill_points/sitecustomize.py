"""Kills its own process at a named point, once: put on PYTHONPATH of the desk under test.

TEST_KILL_DIR holds one file per armed kill, named after its point; whoever gets there first removes the
file and sends itself SIGKILL. Nothing in the product knows of this.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import signal
import sys
from pathlib import Path
from typing import Any

ARMED = Path(os.environ.get("TEST_KILL_DIR", "/nonexistent"))

#: (point, module, class or None, function). Each point has a `before` and an `after`.
PATCHES = [
    ("claim", "nightdesk.desk.tick", "Tick", "_claim"),
    ("ask", "nightdesk.llm.anthropic", "AnthropicModel", "ask"),
    ("persist", "prefect.results", "ResultStore", "_persist_result_record"),
    ("persist", "prefect.results", "ResultStore", "_apersist_result_record"),
    ("finish", "nightdesk.desk.work", None, "finish"),
    ("judge", "nightdesk.desk.work", None, "judge"),
    ("post", "nightdesk.publishing.static_site", "StaticSite", "publish"),
    ("prove", "nightdesk.desk.work", None, "prove"),
    ("conclude", "nightdesk.desk.work", None, "conclude"),
]


def _die_if_armed(point: str, when: str) -> None:
    phase = _phase()
    try:
        (ARMED / f"{phase}-{when}-{point}").unlink()
    except OSError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _phase() -> str:
    for name in ("research", "outline", "draft", "optimize", "publish"):
        if f"flows.{name}" in sys.modules:
            return name
    return ""


def _patch(module: object, owner: str | None, name: str, point: str) -> None:
    holder = getattr(module, owner) if owner else module
    original = getattr(holder, name)

    async def deadly(*args: Any, **kwargs: Any) -> Any:
        _die_if_armed(point, "before")
        result = await original(*args, **kwargs)
        # A claim that brought nothing is none.
        if point != "claim" or result:
            _die_if_armed(point, "after")
        return result

    def deadly_too(*args: Any, **kwargs: Any) -> Any:
        _die_if_armed(point, "before")
        result = original(*args, **kwargs)
        _die_if_armed(point, "after")
        return result

    setattr(holder, name, deadly if inspect.iscoroutinefunction(original) else deadly_too)


class _Patching(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        wanted = [patch for patch in PATCHES if patch[1] == name]
        if not wanted:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: object) -> None:
            run(module)  # type: ignore[arg-type]
            for point, _, owner, function in wanted:
                _patch(module, owner, function, point)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if ARMED.is_dir():
    sys.meta_path.insert(0, _Patching())
