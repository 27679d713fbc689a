"""Everything that is done once per environment: `python -m deployments.apply`, as often as one likes.

Against the server or Cloud workspace that PREFECT_API_URL (and PREFECT_API_KEY) name: work pool, block
types and documents, concurrency limits, the deployments of `prefect.yaml`, automations. Nothing is made
twice. What was set in the Prefect UI is kept in blocks, where the settings do not name it, and in automations
that were switched off; deployments, their parameters and schedules become what `prefect.yaml` says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import get_current_settings

from blocks.settings import with_blocks
from deployments.automations import upsert, wanted
from deployments.definitions import POOL, Pace, definitions, paced
from deployments.documents import write_blocks
from nightdesk.config import Settings, load_settings
from nightdesk.errors import ConfigError, OperatorError
from tasks.limits import in_flight_limit, token_limit

Tell = Callable[[str], None]


async def apply(settings: Settings, tell: Tell = print, *, pace: Pace | None = None) -> None:
    """Bring a Prefect server or workspace to what this version needs.

    Raises:
        ConfigError: if the API cannot be reached, or a step is refused; the steps before it stay.
    """
    async with get_client() as client:
        await _require_api(client)
        await _work_pool(client, tell)
        await write_blocks(client, settings, tell)
        await _limits(client, await with_blocks(settings), tell)
        await asyncio.to_thread(_deploy, definitions() if pace is None else paced(definitions(), pace))
        await _check_deployments(client, tell)
        await _automations(client, tell)


async def _require_api(client: PrefectClient) -> None:
    problem = await client.api_healthcheck()
    if problem is not None:
        raise ConfigError(
            f"no Prefect API answers at {client.api_url} ({problem}): set PREFECT_API_URL, "
            "or start everything with `nightdesk up`"
        )


async def _work_pool(client: PrefectClient, tell: Tell) -> None:
    try:
        await client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        tell(f"work pool {POOL}: made")
    except ObjectAlreadyExists:
        tell(f"work pool {POOL}: is there")


async def _limits(client: PrefectClient, settings: Settings, tell: Tell) -> None:
    for provider in ("anthropic", "openai"):
        limits = getattr(settings, provider)
        await client.upsert_global_concurrency_limit_by_name(in_flight_limit(provider), limits.max_in_flight)
        if limits.tokens_per_minute is not None:
            await client.upsert_global_concurrency_limit_by_name(
                token_limit(provider), limits.tokens_per_minute, limits.tokens_per_minute / 60
            )
    tell("concurrency limits: in force")


def _deploy(wanted: dict[str, Any]) -> None:
    """`prefect deploy --all`, as anybody would run it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prefect.yaml"
        path.write_text(yaml.safe_dump(wanted, sort_keys=False), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "prefect",
            "--no-prompt",
            "deploy",
            "--all",
            "--prefect-file",
            str(path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise ConfigError(f"`prefect deploy --all` failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")


async def _check_deployments(client: PrefectClient, tell: Tell) -> None:
    """Prefect ignores keys that it does not know: look at what came of the file."""
    for one in definitions()["deployments"]:
        flow = one["entrypoint"].rpartition(".")[2].replace("_", "-")
        made = await client.read_deployment_by_name(f"{flow}/{one['name']}")
        if len(made.schedules) != len(one.get("schedules", ())):
            expected = len(one.get("schedules", ()))
            raise ConfigError(
                f"deployment {one['name']} has {len(made.schedules)} schedules instead of {expected}: "
                f"in the Prefect UI, remove those that are not in prefect.yaml"
            )
    tell("deployments: " + ", ".join(one["name"] for one in definitions()["deployments"]))


async def _automations(client: PrefectClient, tell: Tell) -> None:
    deployment = await client.read_deployment_by_name("dead-letter/dead-letter")
    for automation in wanted(deployment.id, get_current_settings().flows.heartbeat_frequency):
        await upsert(client, automation)
        tell(f"automation {automation.name}: in force")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m deployments.apply", description=__doc__)
    parser.add_argument("--pace", type=_pace, help="other times than those of prefect.yaml, as JSON")
    arguments = parser.parse_args()
    try:
        settings = load_settings()
        _upgrade_database(settings)
        asyncio.run(apply(settings, pace=arguments.pace))
    except OperatorError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)


def _pace(given: str) -> Pace:
    try:
        return Pace(**json.loads(given))
    except (ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _upgrade_database(settings: Settings) -> None:
    from nightdesk.connection import open_database

    with open_database(settings):
        sys.stdout.write("database: up to date\n")


if __name__ == "__main__":
    main()
