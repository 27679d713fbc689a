"""`python -m nightdesk.sandbox`."""

from __future__ import annotations

import argparse
from pathlib import Path

from nightdesk.sandbox import SandboxOptions, serve
from nightdesk.sandbox.options import DEFAULT_PORT


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(
        prog="python -m nightdesk.sandbox",
        description="Model providers and source pages on 127.0.0.1, without a model.",
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one")
    parser.add_argument("--journal", type=Path, required=True, help="JSON lines, one per request")
    parser.add_argument("--latency", type=float, default=0.0, help="mean seconds per answer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plan", type=Path, default=None, help="fault plan (JSON)")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when stdin ends")
    given = parser.parse_args()
    serve(
        SandboxOptions(
            port=given.port,
            journal=given.journal,
            latency_s=given.latency,
            seed=given.seed,
            plan=given.plan,
            exit_with_parent=given.exit_with_parent,
        )
    )


if __name__ == "__main__":
    main()
