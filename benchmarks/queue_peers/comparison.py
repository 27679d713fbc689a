"""The rounds of `benchmarks/queue.py`: systems take turns on one Postgres, each in a process of its own."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.queue_peers import figures, measurement
from benchmarks.queue_peers.figures import BARE, OURS
from nightdesk.embedded import EmbeddedPostgres

PEERS = tuple(name for name in measurement.SYSTEMS if name not in (BARE, OURS))
#: Of so slow a peer a fifth of the jobs is enough for a rate.
SLOW = {"procrastinate": 5, "dbos": 5}


@contextmanager
def postgres() -> Iterator[EmbeddedPostgres]:
    """A server on a data folder of its own, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="nightdesk-bench-") as folder:
        server = EmbeddedPostgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
            shutil.rmtree(server.home, ignore_errors=True)  # for root it is not in the folder


@contextmanager
def processes(systems: Sequence[str]) -> Iterator[dict[str, ProcessPoolExecutor]]:
    """A process for each system, which keeps what it has imported."""
    with ExitStack() as stack:
        start = multiprocessing.get_context("spawn")
        yield {name: stack.enter_context(ProcessPoolExecutor(1, mp_context=start)) for name in systems}


def measure(
    server: EmbeddedPostgres, process: ProcessPoolExecutor, system: str, backlog: int, jobs: int
) -> dict[str, float]:
    """One measurement; seconds are those of `jobs` jobs."""
    share = max(jobs // SLOW.get(system, 1), 1)
    address = server.url(f"{system}_{backlog}").render_as_string(hide_password=False)
    found = process.submit(measurement.measure, system, address, backlog, share).result()
    return found | {op: found[op] * jobs / share for op in figures.OPS}


def run(systems: Sequence[str], backlogs: Sequence[int], jobs: int, rounds: int) -> dict[str, object]:
    """All rounds; within one, the systems take turns at each backlog."""
    found: list[dict[tuple[str, int], dict[str, float]]] = []
    with postgres() as server, processes(systems) as process:
        for number in range(rounds):
            found.append({})
            for backlog in backlogs:
                # Another one is the first in each round: what a predecessor leaves to do hits all alike.
                turn = number % len(systems)
                for system in (*systems[turn:], *systems[:turn]):
                    found[-1][system, backlog] = measure(server, process[system], system, backlog, jobs)
                    _progress(number, system, backlog, jobs, found[-1][system, backlog])
    return {
        "jobs": jobs,
        "rounds": rounds,
        "rows": [asdict(row) for row in figures.rows(found, jobs)],
        "summary": figures.summary(found),
        "summary_enqueue": figures.summary(found, "enqueue"),
        "claim_buffers": {
            str(backlog): round(median(one[OURS, backlog]["claim_buffers"] for one in found))
            for backlog in backlogs
        },
    }


def _progress(number: int, system: str, backlog: int, jobs: int, took: dict[str, float]) -> None:
    rates = ", ".join(f"{op} {jobs / took[op]:,.0f}/s" for op in figures.OPS)
    print(f"round {number + 1}  {system:>13} at {backlog:,}: {rates}", file=sys.stderr, flush=True)


def show(report: dict[str, object]) -> None:
    """The report for a person."""
    rows = report.pop("rows")
    assert isinstance(rows, list)
    for row in rows:
        rate = f"{row['per_s']:>10,.0f}/s {row['ratio_to_bare']:>6.2f} of bare"
        print(f"{row['op']:>8} {row['backlog']:>8,} {row['system']:>14} {rate}")
    for name, value in report.items():
        print(f"{name:>17}  {value}")


def chosen_systems(arguments: argparse.Namespace) -> list[str]:
    """Bare, ours and the peers asked for.

    Raises:
        SystemExit: if one is not installed.
    """
    peers = PEERS if arguments.all_peers else () if arguments.no_peers else PEERS[:1]
    missing = [peer for peer in peers if find_spec(peer) is None]
    if missing:
        sys.exit(
            f"not installed: {', '.join(missing)}. Install the dependency group 'bench' "
            "(uv pip install --group bench), or measure without peers (--no-peers)"
        )
    return [BARE, OURS, *peers]


def main(description: str | None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument(
        "--all-peers", action="store_true", help="Procrastinate and DBOS too, not PgQueuer alone"
    )
    parser.add_argument("--no-peers", action="store_true", help="the bare loop alone to compare with")
    parser.add_argument("--jobs", type=int, default=5_000, help="to enqueue and to drain in each measurement")
    parser.add_argument("--backlogs", default="5000,200000", help="jobs that wait when the drain begins")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians of them")
    parser.add_argument("--quick", action="store_true", help="a few jobs, to see that it works; no figures")
    arguments = parser.parse_args()
    backlogs = sorted({int(given) for given in arguments.backlogs.split(",")})
    jobs, rounds = arguments.jobs, arguments.rounds
    if arguments.quick:
        backlogs, jobs, rounds = [100, 400], 100, 1
    if jobs < 1 or rounds < 1 or backlogs[0] < jobs:
        parser.error(
            f"--jobs is {jobs} and --rounds {rounds}: at least 1, and no backlog may be less than --jobs"
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # no server is left behind
    report = run(chosen_systems(arguments), backlogs, jobs, rounds)
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)
