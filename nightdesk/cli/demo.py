"""`nightdesk demo`: the whole pipeline on this machine, with loopback twins instead of the outside world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    exit_: Annotated[
        bool, typer.Option("--exit", help="End when all is done; else the pages stay up.")
    ] = False,
    report: Annotated[Path | None, typer.Option("--json", help="Write a report to this file.")] = None,
    topics: Annotated[Path | None, typer.Option(help="Other topics than those of the demo.")] = None,
    latency: Annotated[float, typer.Option(min=0, help="Mean seconds per answer of the model.")] = 0.5,
    places: Annotated[int, typer.Option(min=1, max=64, help="Jobs at a time.")] = 6,
    provider: Annotated[
        str, typer.Option(help="anthropic or openai: which protocol is spoken.")
    ] = "anthropic",
    seed: Annotated[int, typer.Option(help="The same seed writes the same.")] = 1,
    data_dir: Annotated[Path | None, typer.Option(help="Default: `demo` in the data folder.")] = None,
) -> None:
    """Research, write and publish the demo's topics: no keys, no network, no database needed.

    A second run goes on with the same database and publishes nothing twice.
    """
    if provider not in ("anthropic", "openai"):
        raise typer.BadParameter("use anthropic or openai", param_hint="--provider")
    from nightdesk.cli.demonstration import Options, demonstrate

    demonstrate(
        Options(
            end=exit_,
            report=report,
            topics=topics,
            latency_s=latency,
            places=places,
            provider=provider,
            seed=seed,
            data_dir=data_dir,
        )
    )
