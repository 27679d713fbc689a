"""Nightdesk's queue beside other job queues on one Postgres, and beside a bare loop of its own statements."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    # A script's own folder comes first on the path: there this file would stand before the standard
    # library's `queue`. So it imports nothing until the path is set right.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from benchmarks.queue_peers import comparison

    comparison.main(__doc__)


if __name__ == "__main__":
    main()
