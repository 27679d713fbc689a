"""The work of `nightdesk demo`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.live import Live
from sqlalchemy.exc import SQLAlchemyError

from nightdesk.cli.interrupt import ended_by_signals
from nightdesk.cli.output import articles_table, complain, console, print_articles, write_json
from nightdesk.compose import job_limits
from nightdesk.config import Settings, given_settings, load_settings
from nightdesk.db import passes
from nightdesk.desk.topics import add_topics, read_topics
from nightdesk.errors import ConfigError
from nightdesk.insights import ArticleSummary, articles, letters, money_usd
from nightdesk.money import show_usd
from nightdesk.publishing.port import Placement
from nightdesk.sandbox import SandboxOptions, SandboxProcess, billed_usd, read_journal
from nightdesk.sandbox.process import SandboxFailed
from nightdesk.site_server import WAIT_FOR_PORT_S, remember_port, remembered_port
from nightdesk.states import ArticleState
from nightdesk.world import RealWorld

if TYPE_CHECKING:
    from deployments.stack import Stack, StackOptions

_COUNTED = ("published", "needs_review", "dead")
SANDBOX_PORT = 8471
SITE_PORT = 8473
PREFECT_PORT = 8474
#: Each phase ticks this often.
INTERVAL_S = 20.0
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
    patience_s: float = 900.0


def demonstrate(options: Options) -> None:
    """Start the services, work through the topics, show and report; without `end`, serve the pages on."""
    from deployments.stack import running_stack

    watch = Stopwatch()
    folder = (options.data_dir or load_settings().data_dir / "demo").expanduser().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with ended_by_signals(), _topics_file(options.topics) as file, _sandbox(folder, options) as model_server:
        settings = demo_settings(folder, options.provider, model_server.base_url, model_server.port)
        wanted = read_topics(file, settings.sites)
        with running_stack(settings, _stack_options(options), _tell) as stack:
            watch.services = watch.now()
            with stack.database.transaction() as session:
                add_topics(
                    session,
                    RealWorld(),
                    wanted,
                    job_limits(settings),
                    source="the demo's topics",
                    skip_existing=True,
                )
            _until_all_is_final(stack, options, watch)
            watch.all = watch.now()
            result = asyncio.run(_report(stack, watch, model_server))
            _conclude(result, options)
            if not options.end:
                _tell(f"Prefect: {stack.url}/runs")
                for site in stack.sites.values():
                    _tell(f"{site.name}: {site.base_url}/")
                _tell("Ctrl-C ends it; the next run goes on from here.")
                stack.serve()


def _stack_options(options: Options) -> StackOptions:
    """The schedules of `prefect.yaml`, beating within seconds."""
    from deployments.definitions import Pace
    from deployments.stack import StackOptions

    pace = Pace(interval_s=INTERVAL_S, lease_s=60.0, grace_s=60.0, pending_s=60.0, batch=options.places)
    return StackOptions(port=PREFECT_PORT, runs=8, pace=pace, query_s=2.0)


def _until_all_is_final(stack: Stack, options: Options, watch: Stopwatch) -> None:
    """Show where the articles stand until nothing moves any more."""
    shown: set[int] = set()
    found: list[ArticleSummary] = []
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            found = _look(stack) or found
            if watch.first_page is None and any(one.state is ArticleState.PUBLISHED for one in found):
                watch.first_page = watch.now() - (watch.services or 0.0)
            if console.is_terminal:
                live.update(articles_table(found, "working …"), refresh=True)
            else:
                _print_news(found, shown)
            if (found and all(one.state.is_final for one in found)) or watch.now() > options.patience_s:
                return
            stack.serve(for_s=0.5)


def _look(stack: Stack) -> list[ArticleSummary]:
    """The articles; none while the database starts again."""
    try:
        with stack.database.reading() as session:
            return articles(session)
    except SQLAlchemyError as error:
        if passes(error):
            return []
        raise


def _tell(line: str) -> None:
    console.print(line, soft_wrap=True, markup=False)


def _print_news(found: list[ArticleSummary], shown: set[int]) -> None:
    for one in found:
        if one.state.is_final and one.number not in shown:
            shown.add(one.number)
            console.print(f"{one.state}: {one.topic} ({one.site}, {one.language})", soft_wrap=True)


async def _report(stack: Stack, watch: Stopwatch, model_server: SandboxProcess) -> dict[str, Any]:
    """The report; each page is looked at once more, as a stranger would."""
    with stack.database.reading() as session:
        found, booked, dead = articles(session), money_usd(session), letters(session)
    layers = {letter.article_id: letter.layer for letter in dead}
    rows = []
    for one in found:
        live = False
        if one.url is not None and one.state is ArticleState.PUBLISHED:
            placement = Placement(external_id=str(one.id), url=one.url, slug="", content_sha256="")
            live = (await stack.sites[one.site].verify(placement, one.id)).ok
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
                "dead_letter_layer": layers.get(one.id),
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
    return given_settings(
        data_dir=folder,
        provider=provider,
        site_port=site_port,
        sites=SITES,
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
