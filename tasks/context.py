"""The composition root of the scheduled side: blocks and settings become a working desk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from nightdesk.config import load_settings

if TYPE_CHECKING:
    from nightdesk.db import Database
    from nightdesk.desk.desk import Desk


@asynccontextmanager
async def opened_desk(database: Database, *, lease_s: float | None = None) -> AsyncIterator[Desk]:
    """A desk on the settings and blocks of this moment. It imports the provider's SDK.

    Raises:
        ConfigError: if no provider is configured, a model has no price, or a block cannot be used.
    """
    from blocks.settings import with_blocks
    from nightdesk.compose import open_desk, open_sites
    from tasks.limits import PrefectLimiter

    settings = await with_blocks(load_settings())
    if lease_s is not None:
        settings = settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"lease_s": lease_s})})
    with open_sites(settings) as sites:
        async with open_desk(settings, database, sites, limiter=PrefectLimiter()) as desk:
            yield desk
