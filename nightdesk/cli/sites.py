"""`nightdesk sites`: where articles are published."""

from __future__ import annotations

import contextlib
import threading
from typing import Annotated

import typer

from nightdesk.cli.output import console, print_json

app = typer.Typer(help="Sites: where articles are published.", no_args_is_help=True)


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the configured sites."""
    from nightdesk.compose import open_sites
    from nightdesk.config import load_settings

    with open_sites(load_settings()) as sites:
        found = [{"name": site.name, "kind": site.kind, "url": site.base_url} for site in sites.values()]
    if as_json:
        print_json(found)
        return
    for site in found:
        console.print(f"{site['name']}  {site['kind']}  {site['url']}/", soft_wrap=True)


@app.command()
def serve() -> None:
    """Serve the static sites on this machine until Ctrl-C."""
    from nightdesk.compose import open_sites
    from nightdesk.config import load_settings

    with open_sites(load_settings()) as sites:
        for site in sites.values():
            console.print(f"{site.name}: {site.base_url}/", soft_wrap=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
