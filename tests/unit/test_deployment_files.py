"""`prefect.yaml`, `Dockerfile` and `compose.yaml` hold what they promise, as far as can be seen without an engine."""

from __future__ import annotations

import importlib
import inspect
import math
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import entry_points
from itertools import combinations
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from pydantic import TypeAdapter

import deployments.definitions
from deployments.definitions import Pace, definitions, paced
from deployments.server_settings import client_environment, server_environment
from nightdesk.config import Settings, _variables, given_settings
from nightdesk.states import Phase

ROOT = Path(__file__).parents[2]
DEPLOYMENTS: list[dict[str, Any]] = definitions()["deployments"]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
each = pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda one: one["name"])
#: Prefect leaves sockets and warnings of its own behind when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


# ── prefect.yaml ─────────────────────────────────────────────────────────────────────────────────


@each
def test_every_entrypoint_is_a_flow_and_every_parameter_fits_it(deployment: dict[str, Any]) -> None:
    module, _, name = deployment["entrypoint"].rpartition(".")
    flow = getattr(importlib.import_module(module), name)
    known = inspect.signature(flow.fn, eval_str=True).parameters
    for parameter, value in deployment.get("parameters", {}).items():
        TypeAdapter(known[parameter].annotation).validate_python(value, strict=False)
    assert flow.name == deployment["name"]


@each
def test_a_run_can_be_started_with_the_parameters_of_the_file_alone(deployment: dict[str, Any]) -> None:
    module, _, name = deployment["entrypoint"].rpartition(".")
    known = inspect.signature(getattr(importlib.import_module(module), name).fn).parameters
    required = {name for name, one in known.items() if one.default is inspect.Parameter.empty}
    by_the_automation = {"flow_run_id"} if deployment["name"] == "dead-letter" else set()
    assert required - deployment.get("parameters", {}).keys() == by_the_automation


@each
def test_every_key_is_one_that_prefect_reads(deployment: dict[str, Any]) -> None:
    """Prefect ignores misspelt keys."""
    from prefect.cli.deploy import _models as read

    assert deployment.keys() <= read.DeploymentConfig.model_fields.keys()
    assert deployment["work_pool"].keys() <= read.WorkPoolConfig.model_fields.keys()
    assert deployment.get("concurrency_limit", {}).keys() <= read.ConcurrencyLimitSpec.model_fields.keys()
    for schedule in deployment.get("schedules", ()):
        assert schedule.keys() <= read.RawScheduleConfig.model_fields.keys()
    assert definitions().keys() - {"definitions"} <= read.PrefectYamlModel.model_fields.keys()
    read.DeploymentConfig.model_validate(deployment)


@each
def test_deploying_again_neither_moves_nor_doubles_a_schedule(deployment: dict[str, Any]) -> None:
    schedules = deployment.get("schedules", [])
    for schedule in schedules:
        assert schedule["slug"]
        assert datetime.fromisoformat(schedule["anchor_date"]).tzinfo is not None
    assert len({one["slug"] for one in schedules}) == len(schedules)


def test_no_two_ticks_are_ever_due_in_the_same_minute() -> None:
    ticks = [
        (one["name"], datetime.fromisoformat(schedule["anchor_date"]), schedule["interval"])
        for one in DEPLOYMENTS
        for schedule in one.get("schedules", ())
    ]
    assert len(ticks) == len(Phase) + 1
    for (one, start, every_s), (other, other_start, other_every_s) in combinations(ticks, 2):
        together_s = math.gcd(every_s, other_every_s)
        apart_s = (start - other_start).total_seconds() % together_s
        assert min(apart_s, together_s - apart_s) >= 60, f"{one} and {other}"


def test_phases_are_tagged_as_such_and_what_runs_for_their_failures_is_not() -> None:
    tagged = {one["name"] for one in DEPLOYMENTS if "phase" in one["tags"]}
    assert tagged == set(Phase)
    assert all("nightdesk" in one["tags"] for one in DEPLOYMENTS)


@pytest.mark.parametrize("name", list(Phase))
def test_a_slow_tick_is_not_doubled(name: str) -> None:
    from prefect.client.schemas.objects import ConcurrencyLimitStrategy

    (deployment,) = (one for one in DEPLOYMENTS if one["name"] == name)
    assert deployment["concurrency_limit"]["limit"] == 1
    strategy = ConcurrencyLimitStrategy(deployment["concurrency_limit"]["collision_strategy"])
    assert strategy is ConcurrencyLimitStrategy.CANCEL_NEW
    assert deployment["parameters"]["refill_s"] < deployment["schedules"][0]["interval"]


def test_what_frees_the_others_waits_for_no_place() -> None:
    for name in ("monitor", "dead-letter"):
        (deployment,) = (one for one in DEPLOYMENTS if one["name"] == name)
        assert "concurrency_limit" not in deployment


@each
def test_every_run_is_started_without_a_second_process(deployment: dict[str, Any]) -> None:
    command = deployment["work_pool"]["job_variables"]["command"].split()
    assert command[:2] == ["python", "-m"]
    assert importlib.util.find_spec(command[2]) is not None


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


def test_a_checkout_uses_its_own_file_and_a_wheel_the_copy_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "deployments"
    package.mkdir()
    (package / "prefect.yaml").write_text("name: the copy in the wheel")
    monkeypatch.setattr(deployments.definitions, "__file__", str(package / "definitions.py"))
    monkeypatch.setattr(deployments.definitions, "files", lambda name: tmp_path / name)
    assert definitions()["name"] == "the copy in the wheel"
    (tmp_path / "prefect.yaml").write_text("name: the file of the checkout")
    assert definitions()["name"] == "the file of the checkout"


def _wheel() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel: dict[str, Any] = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    return wheel


def test_the_wheel_has_a_copy_of_the_file() -> None:
    assert _wheel()["force-include"]["prefect.yaml"] == "deployments/prefect.yaml"


# ── Dockerfile ───────────────────────────────────────────────────────────────────────────────────


def _instructions() -> list[str]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _the_one(instruction: str) -> str:
    (line,) = (line for line in _instructions() if line.startswith(f"{instruction} "))
    return line


def test_the_image_copies_only_what_is_there_and_what_is_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [
        line.split()[1:-1] for line in _instructions() if line.startswith("COPY") and "--from" not in line
    ]
    for source in (name for names in copied for name in names):
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source
    assert ignored[0] == "*", "what is not named, such as .env, stays out"
    for package in {*_wheel()["packages"], *(Path(one).parts[0] for one in _wheel()["force-include"])}:
        assert any(package in names for names in copied), f"{package} is in the wheel and not in the image"


def test_the_image_installs_nothing_whose_hash_is_not_known() -> None:
    installs = [line for line in _instructions() if "pip install" in line]
    assert len(installs) == 2
    assert "--require-hashes -r requirements.lock" in installs[0]
    assert "--no-deps ." in installs[1]


def test_the_image_does_not_run_as_root_and_bakes_in_no_secret() -> None:
    lines = _instructions()
    assert lines.index("USER nightdesk") < lines.index(_the_one("CMD"))
    assert not [line for line in lines if re.search(r"KEY|PASSWORD|SECRET|TOKEN|://(?!127\.)", line)]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "HEALTHCHECK", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    bases = {line.split()[1] for line in lines if line.startswith("FROM")}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", bases.pop())


def _commands() -> Iterator[list[str]]:
    """Whatever the image or a service starts."""
    yield yaml.safe_load(_the_one("CMD").removeprefix("CMD "))
    yield yaml.safe_load(_the_one("HEALTHCHECK").partition("CMD ")[2])
    for service in SERVICES.values():
        if "command" in service:
            yield service["command"]
        test = service.get("healthcheck", {}).get("test")
        if test is not None and service.get("build"):
            yield test[1:]
        for hook in service.get("pre_stop", ()):
            yield hook["command"]


@pytest.mark.parametrize("command", list(_commands()), ids=lambda command: " ".join(command)[:60])
def test_every_command_of_the_containers_exists(command: list[str]) -> None:
    match command:
        case ["python", "-c", code]:
            compile(code, "<command>", "exec")
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None
        case ["prefect", *words]:
            _require_prefect(words)
        case [program, *_]:
            assert entry_points(group="console_scripts", name=program)


def _require_prefect(words: list[str]) -> None:
    from prefect.cli._app import _app

    command = _app
    while words and not words[0].startswith("-"):
        command, words = command[words[0]], words[1:]
    names = {name for one in command.assemble_argument_collection() for name in one.names}
    assert {word for word in words if word.startswith("-")} <= names


# ── compose.yaml ─────────────────────────────────────────────────────────────────────────────────


def test_services_of_compose_have_what_they_depend_on() -> None:
    for service in SERVICES.values():
        for name, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "test" in SERVICES[name]["healthcheck"]
            if how["condition"] == "service_completed_successfully":
                assert SERVICES[name]["restart"] == "no"
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in COMPOSE["volumes"]
        for config in service.get("configs", ()):
            assert config["source"] in COMPOSE["configs"]
        assert service["restart"] in ("no", "unless-stopped")


def test_nothing_is_reached_from_another_machine_and_no_secret_is_written_down() -> None:
    for service in SERVICES.values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")
        for name, value in service.get("environment", {}).items():
            if re.search("KEY|PASSWORD", name):
                assert re.fullmatch(r"\$\{\w+:[-?].*\}", value), name


def test_only_who_needs_the_keys_gets_them() -> None:
    keys = {name for name, one in SERVICES.items() if "ANTHROPIC_API_KEY" in one.get("environment", {})}
    assert keys == {name for name, one in SERVICES.items() if "env_file" in one} == {"apply", "worker"}


def test_pages_are_served_where_the_worker_proves_them() -> None:
    port = str(given_settings().site_port)
    assert SERVICES["sites"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert SERVICES["sites"]["command"][3:] == [port, "--directory", "/data/sites"]
    data_dir = SERVICES["worker"]["environment"]["NIGHTDESK_DATA_DIR"]
    assert f"sites:{data_dir}/sites" in SERVICES["worker"]["volumes"]


def test_runs_are_asked_to_end_before_their_worker_is_and_other_processes_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hook's own code, on processes that look like a run and like its worker."""
    (hook,) = SERVICES["worker"]["pre_stop"]
    asleep = "print('up', flush=True); signal.pause()"
    polite = f"signal.signal(signal.SIGTERM, lambda *_: (print('gave back'), sys.exit())); {asleep}"
    run, worker = (
        subprocess.Popen(
            [sys.executable, "-c", f"import signal, sys; {code}", *words], stdout=subprocess.PIPE
        )
        for code, words in ((polite, ["-m", "prefect.engine"]), (asleep, ["prefect worker start"]))
    )
    every_process = psutil.process_iter
    ours = {run.pid, worker.pid}
    monkeypatch.setattr(
        psutil, "process_iter", lambda attrs: [one for one in every_process(attrs) if one.pid in ours]
    )
    try:
        for process in (run, worker):
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
        exec(hook["command"][2], {})
        assert run.stdout is not None
        assert run.stdout.read() == b"gave back\n"
        assert worker.poll() is None
    finally:
        for process in (run, worker):
            process.kill()
            process.communicate()


def test_compose_sets_for_server_and_worker_what_up_sets() -> None:
    server, worker = (SERVICES[name]["environment"] for name in ("prefect", "worker"))
    follows_from_the_home = {"PREFECT_PROFILES_PATH"}
    of_the_network = {
        "PREFECT_SERVER_API_HOST",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL",
        "PREFECT_API_URL",
        "PREFECT_UI_URL",
    }
    for ours, theirs in (
        (server_environment(Path("/data/prefect"), 4200, ""), server),
        (client_environment(Path("/data/prefect"), "", 5), worker),
    ):
        assert ours.keys() - follows_from_the_home <= theirs.keys()
        for name in ours.keys() - follows_from_the_home - of_the_network:
            assert ours[name] == theirs[name], name


def test_every_setting_that_we_set_exists() -> None:
    from prefect.settings import Settings as PrefectSettings
    from prefect.settings.legacy import _get_valid_setting_names

    used = {
        *server_environment(Path("/x"), 1, ""),
        *client_environment(Path("/x"), "http://x/api", 5),
        *(name for one in SERVICES.values() for name in one.get("environment", {})),
        *re.findall(r"(?:PREFECT|NIGHTDESK)_\w+", _the_one("ENV")),
    }
    assert {one for one in used if one.startswith("PREFECT_")} <= _get_valid_setting_names(PrefectSettings)
    ours = {f"NIGHTDESK_{name}" for name in _variables(Settings)}
    assert {one for one in used if one.startswith("NIGHTDESK_")} <= ours
