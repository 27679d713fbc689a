"""`nightdesk up`: the whole desk on this machine."""

from __future__ import annotations

from typing import Annotated

import typer


def up(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the Prefect server and its pages.")] = 4200,
    runs: Annotated[int, typer.Option(min=2, max=64, help="Flow runs at a time.")] = 6,
) -> None:
    """Start Postgres, a Prefect server and a worker, register everything, and keep it all alive.

    Ctrl-C ends it in good order: runs at work give back their jobs, and the next start goes on.
    """
    from deployments.stack import StackOptions, running_stack
    from nightdesk.cli.interrupt import ended_by_signals
    from nightdesk.cli.output import console
    from nightdesk.config import load_settings

    def tell(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)

    settings = load_settings()
    with ended_by_signals(), running_stack(settings, StackOptions(port=port, runs=runs), tell) as stack:
        tell(f"Prefect: {stack.url}/runs")
        for site in stack.sites.values():
            tell(f"site {site.name}: {site.base_url}/")
        tell(f"logs: {settings.data_dir / 'logs'}")
        tell("the desk is open; Ctrl-C ends it")
        stack.serve()
