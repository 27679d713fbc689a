"""The work of `nightdesk demo`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import typer
from rich.live import Live

from nightdesk.cli.interrupt import until_interrupted
from nightdesk.cli.output import articles_table, complain, console, print_articles, write_json
from nightdesk.compose import job_limits, open_database, open_desk, open_sites, registered
from nightdesk.config import Settings, load_settings
from nightdesk.db import Database
from nightdesk.desk.desk import Desk
from nightdesk.desk.runner import Runner
from nightdesk.desk.topics import add_topics, read_topics
from nightdesk.errors import ConfigError
from nightdesk.insights import ArticleSummary, articles, money_usd
from nightdesk.money import show_usd
from nightdesk.publishing.port import Placement
from nightdesk.sandbox import SandboxOptions, SandboxProcess, billed_usd, read_journal
from nightdesk.sandbox.process import SandboxFailed
from nightdesk.site_server import WAIT_FOR_PORT_S, remember_port, remembered_port
from nightdesk.states import ArticleState
from nightdesk.world import RealWorld

_COUNTED = ("published", "needs_review", "dead")
SANDBOX_PORT = 8471
SITE_PORT = 8473
#: The host of the demo's source pages; research reaches it at the sandbox, by an explicit rule.
SOURCES_HOST = "sources.nightdesk.example"
SITES: dict[str, dict[str, str]] = {
    "garden": {"title": "The Night Garden", "tagline": "Growing food and flowers in small spaces"},
    "kitchen": {"title": "The Quiet Kitchen", "tagline": "Cooking and keeping house without hurry"},
}


@dataclass
class Stopwatch:
    """Seconds since the start, measured for the report; nothing is decided by them."""

    started: float = field(default_factory=time.monotonic)
    services: float | None = None
    first_page: float | None = None
    all: float | None = None

    def now(self) -> float:
        return time.monotonic() - self.started


@dataclass(frozen=True, slots=True)
class Options:
    """What the command was told."""

    end: bool
    report: Path | None
    topics: Path | None
    latency_s: float
    places: int
    provider: str
    seed: int
    data_dir: Path | None


def demonstrate(options: Options) -> None:
    """Start the services, work through the topics, show and report; without `end`, serve the pages on."""
    watch = Stopwatch()
    folder = (options.data_dir or load_settings().data_dir / "demo").expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with _topics_file(options.topics) as file, _sandbox(folder, options) as model_server:
        settings = demo_settings(folder, options.provider, model_server.base_url, model_server.port)
        wanted = read_topics(file, settings.sites)
        with open_database(settings) as database:
            until_interrupted(_run(settings, database, wanted, watch, options, model_server))


async def _run(
    settings: Settings,
    database: Database,
    wanted: Any,
    watch: Stopwatch,
    options: Options,
    model_server: SandboxProcess,
) -> None:
    world = RealWorld()
    with open_sites(settings) as sites, registered(settings, database, world) as name:
        async with open_desk(settings, database, sites, world=world) as desk:
            watch.services = watch.now()
            with database.transaction() as session:
                add_topics(
                    session,
                    world,
                    wanted,
                    job_limits(settings),
                    source="the demo's topics",
                    skip_existing=True,
                )
            runner = Runner(desk, name, places=options.places)
            await _with_progress(desk, runner, watch)
            watch.all = watch.now()
            result = await _report(desk, watch, model_server)
        _conclude(result, options)
        if not options.end:
            for site in sites.values():
                console.print(f"{site.name}: {site.base_url}/", soft_wrap=True)
            console.print("Ctrl-C ends it; the next run goes on from here.")
            await asyncio.Event().wait()


async def _with_progress(desk: Desk, runner: Runner, watch: Stopwatch) -> None:
    """Run the runner and show where the articles stand meanwhile."""
    working = asyncio.create_task(runner.run_until_idle())
    shown: set[int] = set()
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while True:
                await asyncio.wait([working], timeout=0.25)
                found = await desk.transact(articles)
                if watch.first_page is None and any(one.state is ArticleState.PUBLISHED for one in found):
                    watch.first_page = watch.now() - (watch.services or 0.0)
                if console.is_terminal:
                    live.update(articles_table(found, "working …"), refresh=True)
                else:
                    _print_news(found, shown)
                if working.done():
                    break
    finally:
        if not working.done():
            working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    working.result()


def _print_news(found: list[ArticleSummary], shown: set[int]) -> None:
    for one in found:
        if one.state.is_final and one.number not in shown:
            shown.add(one.number)
            console.print(f"{one.state}: {one.topic} ({one.site}, {one.language})", soft_wrap=True)


async def _report(desk: Desk, watch: Stopwatch, model_server: SandboxProcess) -> dict[str, Any]:
    """The report; each page is looked at once more, as a stranger would."""
    found = await desk.transact(articles)
    booked = await desk.transact(money_usd)
    rows = []
    for one in found:
        live = False
        if one.url is not None and one.state is ArticleState.PUBLISHED:
            placement = Placement(external_id=str(one.id), url=one.url, slug="", content_sha256="")
            live = (await desk.site(one.site).verify(placement, one.id)).ok
        rows.append(
            {
                "topic": one.topic,
                "site": one.site,
                "language": one.language,
                "state": one.state,
                "words": one.words,
                "cost_usd": one.cost_usd,
                "tokens": one.tokens,
                "prompt_version": one.prompt_version,
                "url": one.url,
                "live": live,
                "reasons": list(one.reasons),
            }
        )
    billed = billed_usd(read_journal(model_server.options.journal))
    return {
        "articles": rows,
        "totals": {
            **{state: sum(one.state == state for one in found) for state in _COUNTED},
            "cost_usd": booked,
            "billed_by_provider_usd": billed,
        },
        "seconds": {
            name: None if value is None else round(value, 2)
            for name, value in (
                ("services", watch.services),
                ("first_page", watch.first_page),
                ("all", watch.all),
            )
        },
        "summaries": found,
    }  # fmt: skip


def _conclude(result: dict[str, Any], options: Options) -> None:
    found: list[ArticleSummary] = result.pop("summaries")
    if options.report is not None:
        write_json(options.report, result)
    print_articles(found)
    totals, seconds = result["totals"], result["seconds"]
    console.print(
        f"{totals['published']} published, {totals['needs_review']} need a person, {totals['dead']} dead; "
        f"{show_usd(totals['cost_usd'])} in the ledger, {show_usd(totals['billed_by_provider_usd'])} billed "
        f"by the provider; first page {seconds['first_page']} s, all {seconds['all']} s",
        soft_wrap=True,
    )
    unfinished = [one.topic for one in found if not one.state.is_final]
    if unfinished and options.end:
        complain(f"not finished: {', '.join(unfinished)}; run the demo again to go on")
        raise typer.Exit(1)


def demo_settings(
    folder: Path, provider: str, base_url: str, sandbox_port: int, site_port: int = SITE_PORT
) -> Settings:
    """Settings that reach nothing but the sandbox at `base_url`, with their data in `folder`."""
    suffix = "/v1" if provider == "openai" else ""
    return load_settings(
        data_dir=folder,
        database_url=None,
        provider=provider,
        site_port=site_port,
        sites=SITES,
        models={"strong": None, "cheap": None},
        research={
            "connect_to": {SOURCES_HOST: f"127.0.0.1:{sandbox_port}"},
            "per_host_delay_s": 0.0,
        },
        **{provider: {"api_key": "sandbox", "base_url": base_url + suffix}},
    )


@contextmanager
def _topics_file(given: Path | None) -> Iterator[Path]:
    """The topics named, else `examples/topics.csv` of a checkout, else the copy in the wheel."""
    checkout = Path(__file__).parents[2] / "examples" / "topics.csv"
    if given is not None or checkout.is_file():
        yield given or checkout
        return
    with as_file(files("nightdesk.cli") / "demo_topics.csv") as packaged:
        yield packaged


@contextmanager
def _sandbox(folder: Path, options: Options) -> Iterator[SandboxProcess]:
    """The model server, at the port it had before; a child that was left behind ends by itself."""
    port = remembered_port(folder, "sandbox", SANDBOX_PORT)
    with as_file(files("nightdesk.sandbox") / "plans" / "demo.json") as plan:
        deadline = time.monotonic() + WAIT_FOR_PORT_S
        while True:
            server = SandboxProcess(
                SandboxOptions(
                    port=port,
                    journal=folder / "journal.jsonl",
                    latency_s=options.latency_s,
                    seed=options.seed,
                    plan=plan,
                )
            )
            try:
                server.start()
                break
            except SandboxFailed as error:
                if time.monotonic() > deadline:
                    raise ConfigError(str(error)) from None
                time.sleep(0.2)
                port = remembered_port(folder, "sandbox", SANDBOX_PORT)
    try:
        remember_port(folder, "sandbox", server.port, SANDBOX_PORT)
        yield server
    finally:
        server.stop()
