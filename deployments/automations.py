"""Automations as code, upserted by name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState, RunDeployment
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

from tasks.monitoring import HEARTBEATS_MISSED, ZOMBIES
from tasks.tick import PHASE_FAILED


def template(expression: str) -> dict[str, str]:
    """A parameter rendered as a string: a plain `"{{ … }}"` goes through JSON and fails on a UUID."""
    return {"__prefect_kind": "jinja", "template": expression}


def wanted(dead_letter: UUID, heartbeat_s: int | None) -> list[AutomationCore]:
    """The automations, given the id of the `dead-letter` deployment and the heartbeats' interval."""
    automations = [
        AutomationCore(
            name="nightdesk: dead letters of failed runs",
            description="Runs dead-letter for each run of a phase that failed or crashed, by state type.",
            trigger=_on_each(
                "prefect.flow-run.*",
                # State types, not names: they catch TimedOut and custom names too.
                match={
                    "prefect.resource.id": "prefect.flow-run.*",
                    "prefect.state-type": ["FAILED", "CRASHED"],
                },
                match_related=_tagged("phase"),
            ),
            actions=[
                _run(
                    dead_letter,
                    flow_run_id=template("{{ flow_run.id }}"),
                    layer="automation",
                    crashed=_json("{{ (event.resource['prefect.state-type'] == 'CRASHED') | tojson }}"),
                )
            ],
        ),
        AutomationCore(
            name="nightdesk: dead letters of failed jobs",
            description=(
                "The same on the event that a phase emits as it fails: state events of runs that were "
                "scheduled less than five minutes ahead are held back for fifteen."
            ),
            trigger=_on_each(PHASE_FAILED, match={"prefect.resource.id": "nightdesk.phase.*"}),
            actions=[
                _run(
                    dead_letter,
                    flow_run_id=template("{{ event.payload['flow_run_id'] }}"),
                    layer="event",
                )
            ],
        ),
    ]
    if heartbeat_s is not None:
        automations.append(_zombies(heartbeat_s))
    return automations


def _zombies(heartbeat_s: int) -> AutomationCore:
    return AutomationCore(
        name=ZOMBIES,
        description=(
            "Marks a run as crashed whose heartbeat has stopped. It also fires for short runs that have "
            "ended: Prefect refuses to change those. Nothing may be alerted on it."
        ),
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.*"},
            match={"prefect.resource.id": ["prefect.flow-run.*"]},
            match_related=_tagged("nightdesk"),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=HEARTBEATS_MISSED * heartbeat_s),
        ),
        actions=[
            ChangeFlowRunState(
                name=None,
                state=StateType.CRASHED,
                message="its heartbeat stopped: its process is gone",
                force=False,
            )
        ],
    )


def _on_each(event: str, **matching: Any) -> EventTrigger:
    """Fires once for each such event, at once."""
    return EventTrigger(
        expect={event}, posture=Posture.Reactive, threshold=1, within=timedelta(0), **matching
    )


def _tagged(tag: str) -> dict[str, str | list[str]]:
    return {"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"}


def _run(deployment: UUID, **parameters: Any) -> RunDeployment:
    return RunDeployment(
        source="selected", deployment_id=deployment, parameters=parameters, job_variables=None
    )


def _json(expression: str) -> dict[str, Any]:
    return {"__prefect_kind": "json", "value": template(expression)}


async def upsert(client: PrefectClient, automation: AutomationCore) -> UUID:
    """Create an automation or bring it up to date; one that was switched off in the UI stays off.

    Names are not unique in Prefect: what is there twice is reduced to one.
    """
    found = await client.read_automations_by_name(name=automation.name)
    if not found:
        return await client.create_automation(automation)
    keep, *doubles = sorted(found, key=lambda one: str(one.id))
    for double in doubles:
        await client.delete_automation(double.id)
    await client.update_automation(
        automation_id=keep.id, automation=automation.model_copy(update={"enabled": keep.enabled})
    )
    return keep.id
