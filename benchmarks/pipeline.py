"""CPU of the synchronous run per article-phase, without model latency."""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from pathlib import Path

from sqlalchemy import text
from sqlmodel import select

from nightdesk.cli.demonstration import demo_settings
from nightdesk.compose import job_limits, open_desk, open_sites, registered
from nightdesk.connection import open_database
from nightdesk.db import Database
from nightdesk.desk.runner import Runner
from nightdesk.desk.topics import add_topics, read_topics
from nightdesk.models.article import Article
from nightdesk.sandbox import SandboxOptions, SandboxProcess
from nightdesk.world import RealWorld

DRAFT_S = 20.0
TOPICS = Path(__file__).parents[1] / "examples" / "topics.csv"


def cpu_s() -> float:
    """User and system time of this process with all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure(folder: Path, places: int) -> dict[str, float]:
    """Run all topics once."""
    options = SandboxOptions(port=0, journal=folder / "journal.jsonl", latency_s=0.0)
    with SandboxProcess(options) as model_server:
        settings = demo_settings(folder, "anthropic", model_server.base_url, model_server.port, site_port=0)
        with open_database(settings) as database, open_sites(settings) as sites:
            world = RealWorld()
            with registered(settings, database, world) as run:
                async with open_desk(settings, database, sites, world=world) as desk:
                    with database.transaction() as session:
                        topics = read_topics(TOPICS, settings.sites)
                        add_topics(session, world, topics, job_limits(settings), source="benchmark")
                        warm = session.exec(select(Article.id).limit(1)).all()
                    # One article first: models, stemmers and pools are loaded once for a process.
                    await Runner(desk, run, articles=warm).run_until_idle()
                    before, started = cpu_s(), time.monotonic()
                    await Runner(desk, run, places=places).run_until_idle()
                    used, took = cpu_s() - before, time.monotonic() - started
            return _figures(database, used, took)


def _figures(database: Database, used_s: float, took_s: float) -> dict[str, float]:
    with database.reading() as session:
        jobs = session.connection().execute(
            text("SELECT count(*) FROM nightdesk.jobs WHERE state = 'done'")
        ).scalar_one()  # fmt: skip
    jobs -= 5  # of the first article
    per_phase_ms = used_s / jobs * 1000
    return {
        "article_phases": jobs,
        "wall_s": round(took_s, 2),
        "cpu_s": round(used_s, 2),
        "cpu_ms_per_article_phase": round(per_phase_ms, 1),
        "ratio_to_model_time": round(5 * per_phase_ms / 1000 / DRAFT_S, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--places", type=int, default=6, help="jobs at a time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nightdesk-bench-") as folder:
        figures = asyncio.run(measure(Path(folder), arguments.places))
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:>26}  {value}")


if __name__ == "__main__":
    main()
