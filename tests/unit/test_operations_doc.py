"""What `docs/operations.md` names exists: commands, options, modules, files, variables, values, places to jump to."""

from __future__ import annotations

import configparser
import importlib.util
import json
import re
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.definitions import definitions
from deployments.server_settings import client_environment, server_environment
from nightdesk.config import Settings, _variables, default_data_dir, given_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
FENCED: list[str] = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PROSE = re.sub(r"^```\w*\n.*?^```$", "", PAGE, flags=re.DOTALL | re.MULTILINE)
SPANS: list[str] = re.findall(r"`([^`\n]+)`", PROSE)
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def _commands() -> list[list[str]]:
    """Each command of the page as words, without what is set for it."""
    found = []
    for text in (line for block in [*FENCED, *SPANS] for line in block.splitlines()):
        try:
            words = shlex.split(text.removeprefix("ExecStart="), comments=True)
        except ValueError:  # a line of prose or of a table of settings
            continue
        for part in " ".join(shlex.quote(word) for word in words).split(" '&&' "):
            command = shlex.split(part)
            while command and re.fullmatch(r"export|\w+=.*", command[0]):
                command.pop(0)
            if len(command) > 1:
                found.append([Path(command[0]).name, *command[1:]])
    return found


def _of(program: str) -> list[list[str]]:
    commands = [words[1:] for words in _commands() if words[0] == program]
    assert commands, f"no command of {program} was found on the page: the test no longer reads it"
    return commands


def _of_nightdesk() -> list[list[str]]:
    in_containers = [words[words.index("nightdesk") + 1 :] for words in _of("docker") if "nightdesk" in words]
    assert in_containers
    return [*_of("nightdesk"), *in_containers]


@pytest.mark.parametrize("words", _of_nightdesk(), ids=" ".join)
def test_every_command_of_nightdesk_exists_with_its_options(words: list[str]) -> None:
    from typer.main import get_command

    from nightdesk.cli.app import app

    command: Any = get_command(app)
    words = list(words)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        assert name in command.commands, f"there is no {name} in nightdesk {command.name}"
        command = command.commands[name]
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= options
    required = {one.opts[0] for one in command.params if one.required and one.opts[0].startswith("--")}
    assert not words or required <= set(words)


@pytest.mark.parametrize("words", _of("prefect"), ids=" ".join)
def test_every_command_of_prefect_exists_with_its_options(words: list[str]) -> None:
    from prefect.cli._app import _app

    command: Any = _app
    words = [word for word in words if word != "--no-prompt"]
    while words and not words[0].startswith("-") and words[0] in command:
        command = command[words.pop(0)]
    names = {name for one in command.assemble_argument_collection() for name in one.names}
    assert command is not _app
    assert {word for word in words if word.startswith("-")} <= names


def test_every_module_that_is_run_exists() -> None:
    modules = [words[1] for words in _of("python") if words[0] == "-m"]
    assert "deployments.apply" in modules
    assert all(importlib.util.find_spec(module) for module in modules)
    named = {span for span in SPANS if re.fullmatch(r"deployments\.\w+", span)}
    assert all(importlib.util.find_spec(module) for module in named)


def test_commands_on_containers_name_services_that_are_there() -> None:
    for words in (words for words in _of("docker") if words[0] == "compose"):
        assert words[1] in ("up", "down", "run", "exec", "stop")
        if words[1] in ("run", "exec"):
            assert next(word for word in words[2:] if not word.startswith("-")) in COMPOSE["services"]
    volumes = {span.partition("_")[2] for span in SPANS if span.startswith("nightdesk_")}
    assert volumes == {"sites"} <= COMPOSE["volumes"].keys()
    assert "in four volumes" in PAGE
    assert len(COMPOSE["volumes"]) == 4


def test_every_verb_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{words[0]}:", makefile, re.MULTILINE) for words in _of("make"))


def _file_names() -> set[str]:
    looks_like_one = re.compile(r"[\w./-]*(\.(py|yaml|json|log|lock|toml)|/)|Dockerfile")
    return {span for span in SPANS if looks_like_one.fullmatch(span) and not span.startswith("/")}


@pytest.mark.parametrize("name", sorted(_file_names()))
def test_every_file_exists_in_the_checkout_or_is_made_by_the_code(name: str) -> None:
    if (ROOT / name).exists():
        return
    sources = [
        path.read_text() for folder in ("nightdesk", "deployments") for path in (ROOT / folder).rglob("*.py")
    ]
    # Prefect's own result folder, which our setting replaces.
    wanted = {f'"{name.rstrip("/")}"', f'"{Path(name).stem}"'}
    assert name == "storage/" or any(one in source for source in sources for one in wanted), name


def test_the_data_folder_is_where_the_page_says() -> None:
    assert default_data_dir({}) == Path("~/.local/share/nightdesk").expanduser()
    assert "`~/.local/share/nightdesk`" in PAGE


def _prefect_fields() -> dict[str, Any]:
    """The variable of each of Prefect's settings, with its default."""
    from prefect.settings import Settings as PrefectSettings

    fields: dict[str, Any] = {}

    def walk(model: Any, prefix: str) -> None:
        for name, field in model.model_fields.items():
            if hasattr(field.annotation, "model_fields"):
                walk(field.annotation, f"{prefix}{name.upper()}_")
            else:
                fields[f"{prefix}{name.upper()}"] = field.default

    walk(PrefectSettings, "PREFECT_")
    return fields


def _ours() -> dict[str, str]:
    return server_environment(Path("/x"), 4200, "") | client_environment(Path("/x"), "http://x/api", 5)


def test_every_variable_exists() -> None:
    ours = {f"NIGHTDESK_{name}" for name in (*_variables(Settings), "CONFIG")}
    assert set(re.findall(r"NIGHTDESK_[A-Z_]+", PAGE)) <= ours
    # This one Prefect reads from the environment itself, in server/utilities/encryption.py.
    named = set(re.findall(r"PREFECT_[A-Z_]+", PAGE)) - {"PREFECT_SERVER_ENCRYPTION_KEY"}
    assert named <= _prefect_fields().keys()


def test_no_setting_of_prefect_is_set_without_a_reason_on_the_page() -> None:
    assert [name for name in _ours() if f"`{name}`" not in PAGE] == []


def test_values_are_ours_and_prefects_own() -> None:
    """`NAME` (our value; Prefect's own), as far as they are numbers."""
    fields, checked = _prefect_fields(), 0
    for name, ours, theirs in re.findall(r"`(PREFECT_\w+)` \((\w+)[^;)]*; (\d+)(?: s)?\)", PAGE):
        default = fields[name]
        default_s = default.total_seconds() if isinstance(default, timedelta) else default
        assert _ours()[name] == ours, name
        assert float(default_s) == float(theirs), name
        checked += 1
    assert checked >= 12


def test_each_deployment_beats_as_the_page_says() -> None:
    table = {
        name: (int(minutes), rest)
        for names, minutes, rest in re.findall(r"^\| ([\w, -]+) \| (\d+) min \| (.*) \|$", PAGE, re.MULTILINE)
        for name in names.split(", ")
    }
    scheduled = {one["name"]: one for one in definitions()["deployments"] if one.get("schedules")}
    assert table.keys() == scheduled.keys()
    for name, one in scheduled.items():
        minutes, _ = table[name]
        assert [schedule["interval"] for schedule in one["schedules"]] == [60 * minutes]
    assert {
        one["parameters"]["refill_s"] for one in scheduled.values() if "refill_s" in one["parameters"]
    } == {480, 240}
    assert "refilled for 8 minutes" in table["draft"][1]
    assert "the same for 4 minutes" in table["publish"][1]


def test_parameters_that_are_named_are_those_of_the_flows() -> None:
    import flows.draft
    import flows.publish

    sentence = re.search(r"Parameters of the phases: (.*?)\.", PAGE, re.DOTALL)
    assert sentence is not None
    named = set(re.findall(r"`(\w+)`", sentence[1]))
    assert named == set(flows.draft.draft.parameters.properties)
    assert named - {"model", "prompt"} == set(flows.publish.publish.parameters.properties)


def test_the_example_of_a_site_is_accepted() -> None:
    (example,) = re.findall(r"^NIGHTDESK_SITES='(.*)'$", "\n".join(FENCED), re.MULTILINE)
    assert given_settings(sites=json.loads(example)).sites["garden"].base_url == "https://garden.example.org"


def test_systemd_waits_until_up_has_ended_everything() -> None:
    from deployments.stack import DRAIN_S
    from nightdesk.embedded import START_TIMEOUT_S

    (text,) = (block for block in FENCED if "[Unit]" in block)
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    worker_and_server_s = 2 * 10
    assert float(unit["Service"]["TimeoutStopSec"]) >= DRAIN_S + worker_and_server_s + START_TIMEOUT_S
    assert unit["Service"]["KillMode"] == "mixed"


def test_deaths_that_are_named_are_those_of_the_policy() -> None:
    from nightdesk.desk.policy import MOST_DEATHS

    assert MOST_DEATHS == 4
    assert "after four it is a dead\nletter" in PAGE or "after four it is a dead letter" in PAGE


def test_every_place_to_jump_to_is_there() -> None:
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", PROSE, re.MULTILINE)
    }
    jumps = set(re.findall(r"\]\(#([\w-]+)\)", PAGE))
    assert jumps
    assert jumps <= headings
