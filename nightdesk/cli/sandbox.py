"""`nightdesk sandbox`: loopback twins of the model providers, for work without keys or network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sandbox(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8471,
    journal: Annotated[Path, typer.Option(help="Where every request is noted.")] = Path("sandbox.jsonl"),
    latency: Annotated[float, typer.Option(min=0, help="Mean seconds per answer.")] = 0.3,
    seed: Annotated[int, typer.Option(help="The same seed answers the same.")] = 1,
    plan: Annotated[Path | None, typer.Option(help="A fault plan (JSON).")] = None,
) -> None:
    """Serve Anthropic Messages and OpenAI Responses on this machine until Ctrl-C.

    Point a client there with NIGHTDESK_ANTHROPIC__BASE_URL=http://127.0.0.1:PORT (or
    NIGHTDESK_OPENAI__BASE_URL=http://127.0.0.1:PORT/v1) and any key.
    """
    from nightdesk.sandbox import SandboxOptions, serve

    serve(SandboxOptions(port=port, journal=journal, latency_s=latency, seed=seed, plan=plan))
