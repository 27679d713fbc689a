"""From settings to a working desk: the composition root of the command line and of the tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from nightdesk import __version__
from nightdesk.config import ProviderName, Settings
from nightdesk.db import Database
from nightdesk.desk.desk import Desk
from nightdesk.desk.queue import Limits
from nightdesk.desk.runs import registered_run, take_back_dead_runs
from nightdesk.llm.limiter import PATIENCE_S, WINDOW_S, Limiter, LocalLimiter, ProviderLimits
from nightdesk.llm.metered import MeteredClient
from nightdesk.llm.providers import choose_models, open_model
from nightdesk.publishing.port import Site
from nightdesk.publishing.static_site import StaticSite
from nightdesk.research import FetchPolicy, SourceReader
from nightdesk.site_server import serve_static_sites
from nightdesk.world import RealWorld, World


def job_limits(settings: Settings) -> Limits:
    """What each new job may use."""
    return Limits(max_tokens=settings.jobs.max_tokens, max_usd=settings.jobs.max_usd)


def local_limiter(settings: Settings, provider: ProviderName, world: World) -> LocalLimiter:
    """The limits that the settings name for a provider, kept in this process.

    Whoever is first in line waits for tokens a whole minute if need be: a run that asks one call after
    another must not be sent away by its own last one.
    """
    given = settings.provider_settings(provider)
    limits = {str(provider): ProviderLimits(given.max_in_flight, given.tokens_per_minute)}
    return LocalLimiter(limits, world, patience_s=PATIENCE_S + WINDOW_S)


def fetch_policy(settings: Settings) -> FetchPolicy:
    """How sources are fetched."""
    return FetchPolicy(
        user_agent=f"Nightdesk/{__version__} (+{settings.research.contact})",
        connect_to=settings.research.connect_to,
        per_host_delay_s=settings.research.per_host_delay_s,
    )


@contextmanager
def open_sites(settings: Settings) -> Iterator[Mapping[str, Site]]:
    """The configured sites; those without an address of their own are served on loopback meanwhile."""
    root = settings.data_dir / "sites"
    local = [name for name, site in settings.sites.items() if site.base_url is None]
    with serve_static_sites(root, settings) if local else _nowhere() as base_url:
        yield {
            name: StaticSite(
                name,
                site.title,
                site.folder or root / name,
                site.base_url or f"{base_url}/{name}",
                tagline=site.tagline,
                author=site.author,
            )
            for name, site in settings.sites.items()
        }


@contextmanager
def _nowhere() -> Iterator[str]:
    yield ""


@asynccontextmanager
async def open_desk(
    settings: Settings,
    database: Database,
    sites: Mapping[str, Site],
    *,
    model: str | None = None,
    world: World | None = None,
    limiter: Limiter | None = None,
) -> AsyncIterator[Desk]:
    """A desk on these settings. `model` replaces both configured models.

    `limiter` None: the settings' limits, kept in this process.

    Raises:
        ConfigError: if no provider is configured or a model has no price.
    """
    world = world or RealWorld()
    choice = choose_models(settings, override=model)
    port = open_model(settings, choice.provider)
    reader = SourceReader(fetch_policy(settings))
    try:
        yield Desk(
            database=database,
            world=world,
            client=MeteredClient(
                database,
                {choice.provider: port},
                world,
                limiter or local_limiter(settings, choice.provider, world),
            ),
            reader=reader,
            sites=sites,
            models=choice,
            limits=job_limits(settings),
            lease_s=settings.jobs.lease_s,
            deadline_s=settings.models.deadline_s,
        )
    finally:
        await port.aclose()
        await reader.aclose()


@contextmanager
def registered(settings: Settings, database: Database, world: World) -> Iterator[str]:
    """A run of this process, after taking back what dead runs on this machine held."""
    folder = settings.data_dir / "runs"
    take_back_dead_runs(folder, database)
    with registered_run(folder, database, world.new_id()) as run:
        yield run
