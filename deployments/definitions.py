"""`prefect.yaml`, found, read and adapted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import yaml

from nightdesk.states import Phase

#: The work pool of everything that Nightdesk runs.
POOL = "nightdesk"


@dataclass(frozen=True, slots=True)
class Pace:
    """Other times than those of `prefect.yaml`, for demos and tests: everything beats within seconds."""

    interval_s: float
    lease_s: float
    grace_s: float
    pending_s: float
    batch: int


def definitions() -> dict[str, Any]:
    """The file of the checkout, else the copy in the wheel."""
    checkout = Path(__file__).parents[1] / "prefect.yaml"
    if checkout.is_file():
        return _read(checkout)
    with as_file(files("deployments") / "prefect.yaml") as packaged:
        return _read(packaged)


def _read(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def paced(given: dict[str, Any], pace: Pace) -> dict[str, Any]:
    """The same deployments at another pace; ticks of one interval are spread over it in their order."""
    scheduled = [one for one in given["deployments"] if one.get("schedules")]
    order = [*Phase, "monitor"]
    scheduled.sort(key=lambda one: order.index(one["name"]))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for position, deployment in enumerate(scheduled):
        offset = timedelta(seconds=position * pace.interval_s / len(scheduled))
        for schedule in deployment["schedules"]:
            schedule["interval"] = pace.interval_s
            schedule["anchor_date"] = (start + offset).isoformat()
        parameters = deployment.setdefault("parameters", {})
        if deployment["name"] in list(Phase):
            parameters |= {
                "batch": pace.batch,
                "lease_s": pace.lease_s,
                "refill_s": pace.interval_s * 0.8,
                "grace_s": pace.grace_s,
            }
        else:
            parameters |= {"grace_s": pace.grace_s, "pending_s": pace.pending_s}
    return given
