"""`prefect.yaml`, `Dockerfile` and `compose.yaml` hold what they promise, as far as can be seen without an engine."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from deployments.definitions import PHASES, Pace, definitions, paced
from deployments.server_settings import client_environment, server_environment

ROOT = Path(__file__).parents[2]
DEPLOYMENTS: list[dict[str, Any]] = definitions()["deployments"]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
each = pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda one: one["name"])
#: Prefect leaves sockets and warnings of its own behind when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@each
def test_every_entrypoint_is_a_flow_and_every_parameter_fits_it(deployment: dict[str, Any]) -> None:
    module, _, name = deployment["entrypoint"].rpartition(".")
    flow = getattr(importlib.import_module(module), name)
    known = inspect.signature(flow.fn, eval_str=True).parameters
    for parameter, value in deployment.get("parameters", {}).items():
        TypeAdapter(known[parameter].annotation).validate_python(value, strict=False)
    assert flow.name == deployment["name"]


@each
def test_every_key_is_one_that_prefect_reads(deployment: dict[str, Any]) -> None:
    """Prefect ignores misspelt keys."""
    from prefect.cli.deploy import _models

    assert deployment.keys() <= _models.DeploymentConfig.model_fields.keys()
    assert deployment["work_pool"].keys() <= _models.WorkPoolConfig.model_fields.keys()
    limit = deployment.get("concurrency_limit", {})
    assert limit.keys() <= {"limit", "collision_strategy", "grace_period_seconds"}
    for schedule in deployment.get("schedules", ()):
        assert {"interval", "anchor_date", "timezone", "slug", "active"} == schedule.keys()


def test_no_two_ticks_beat_in_the_same_minute() -> None:
    minutes = []
    for deployment in DEPLOYMENTS:
        for schedule in deployment.get("schedules", ()):
            anchor = datetime.fromisoformat(schedule["anchor_date"])
            minutes += [(anchor.minute + step) % 10 for step in range(0, 10, schedule["interval"] // 60)]
    assert len(minutes) == len(set(minutes))


def test_phases_are_tagged_as_such_and_what_runs_for_their_failures_is_not() -> None:
    tagged = {one["name"] for one in DEPLOYMENTS if "phase" in one["tags"]}
    assert tagged == set(PHASES)
    assert all("nightdesk" in one["tags"] for one in DEPLOYMENTS)


@pytest.mark.parametrize("name", PHASES)
def test_a_slow_tick_is_not_doubled(name: str) -> None:
    (deployment,) = (one for one in DEPLOYMENTS if one["name"] == name)
    assert deployment["concurrency_limit"]["limit"] == 1
    assert deployment["concurrency_limit"]["collision_strategy"] == "CANCEL_NEW"


def test_what_frees_the_others_waits_for_no_place() -> None:
    (monitor,) = (one for one in DEPLOYMENTS if one["name"] == "monitor")
    assert "concurrency_limit" not in monitor


def test_another_pace_changes_times_and_nothing_else() -> None:
    given = definitions()
    fast = paced(definitions(), Pace(interval_s=12, lease_s=30, grace_s=10, pending_s=60, batch=2))
    for slow, quick in zip(given["deployments"], fast["deployments"], strict=True):
        assert slow["entrypoint"] == quick["entrypoint"]
        assert [one["slug"] for one in slow.get("schedules", ())] == [
            one["slug"] for one in quick.get("schedules", ())
        ]
    starts = {
        one["schedules"][0]["anchor_date"]: one["schedules"][0]["interval"]
        for one in fast["deployments"]
        if "schedules" in one
    }
    assert len(starts) == 6
    assert set(starts.values()) == {12}


def _instructions() -> list[str]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_the_image_copies_only_what_is_there_and_what_is_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [
        line.split()[1:-1] for line in _instructions() if line.startswith("COPY") and "--from" not in line
    ]
    for source in (name for names in copied for name in names):
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source
    packaged = re.findall(r"packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[0]
    for package in shlex.split(packaged.replace(",", " ")):
        assert [package] in copied, f"{package} is in the wheel and not in the image"


def test_the_image_does_not_run_as_root_and_bakes_in_no_secret() -> None:
    lines = _instructions()
    assert lines.index("USER nightdesk") < next(i for i, line in enumerate(lines) if line.startswith("CMD"))
    assert not [line for line in lines if re.search(r"KEY|PASSWORD|SECRET|TOKEN", line)]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "STOPSIGNAL", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    assert all(":latest" not in line and ":" in line for line in lines if line.startswith("FROM"))


def test_services_of_compose_have_what_they_depend_on() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[name]
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in COMPOSE["volumes"]
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")


def test_compose_sets_for_server_and_worker_what_up_sets() -> None:
    server, worker = (COMPOSE["services"][name]["environment"] for name in ("prefect", "worker"))
    free = {
        "PREFECT_PROFILES_PATH",
        "PREFECT_SERVER_API_PORT",
        "PREFECT_CLI_PROMPT",
        "PREFECT_WORKER_PREFETCH_SECONDS",
    }
    for ours, theirs in (
        (server_environment(Path("/data/prefect"), 4200, ""), server),
        (client_environment(Path("/data/prefect"), "", 5), worker),
    ):
        assert ours.keys() - free <= theirs.keys()
        own = {
            "PREFECT_SERVER_API_HOST",
            "PREFECT_SERVER_DATABASE_CONNECTION_URL",
            "PREFECT_API_URL",
            "PREFECT_UI_URL",
        }
        for name in ours.keys() - free - own:
            assert ours[name] == theirs[name], name


def test_every_setting_of_prefect_that_we_set_exists() -> None:
    from prefect.settings.legacy import _get_valid_setting_names

    known = set(_get_valid_setting_names(__import__("prefect.settings", fromlist=["Settings"]).Settings))
    used = {
        *server_environment(Path("/x"), 1, ""),
        *client_environment(Path("/x"), "http://x/api", 5),
        *COMPOSE["services"]["prefect"]["environment"],
        *COMPOSE["services"]["worker"]["environment"],
    }
    assert {name for name in used if name.startswith("PREFECT_")} <= known
