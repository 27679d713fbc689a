"""What a tick leaves for whoever looks at its run: one Markdown table."""

from __future__ import annotations

from prefect.artifacts import acreate_markdown_artifact
from prefect.logging import get_run_logger

from nightdesk.desk.tick import TickReport


async def summarise(report: TickReport) -> None:
    """Leave a summary artifact under the key of the phase; a tick is not failed for want of it."""
    try:
        await acreate_markdown_artifact(
            markdown=as_markdown(report),
            key=f"tick-{report.phase}",
            description=f"What the last ticks of {report.phase} did.",
        )
    except Exception as error:
        get_run_logger().warning("no summary was left: %s", error)


def as_markdown(report: TickReport) -> str:
    """The counts, and one line per claim."""
    counts = " · ".join(f"{count} {state}" for state, count in sorted(report.counts.items()))
    lines = [f"**{report.phase}**: {counts or 'nothing claimed'}", ""]
    if report.outcomes:
        lines += ["| article | job | attempt | outcome |", "| --- | ---: | ---: | --- |"]
        lines += [
            f"| {one.name} | {one.claim.job_id} | {one.claim.attempts} | {one.state or 'claim lost'} |"
            for one in report.outcomes
        ]
    return "\n".join(lines)
