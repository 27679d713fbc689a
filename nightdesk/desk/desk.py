"""All that working on jobs needs, in one place; the command line and the tasks compose it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlmodel import Session

from nightdesk.db import Database, transact
from nightdesk.desk.prompting import load_prompt
from nightdesk.desk.queue import Limits, Pin
from nightdesk.errors import ConfigError
from nightdesk.llm.metered import MeteredClient
from nightdesk.llm.providers import ModelChoice
from nightdesk.publishing.port import Site
from nightdesk.research import SourceReader
from nightdesk.states import Phase
from nightdesk.world import World

T = TypeVar("T")


@dataclass(frozen=True)
class Desk:
    """Ports and settings of the content side."""

    database: Database
    world: World
    client: MeteredClient
    reader: SourceReader
    sites: Mapping[str, Site]
    models: ModelChoice
    limits: Limits
    lease_s: float
    deadline_s: float

    async def transact(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a transaction of its own (see `nightdesk.db.transact`)."""
        return await transact(self.database, self.world, work)

    def pin(self, phase: Phase) -> Pin:
        """What a phase is done with today: strong model for draft, cheap one for the rest."""
        if phase is Phase.PUBLISH:
            return Pin()
        model = self.models.strong if phase is Phase.DRAFT else self.models.cheap
        return Pin(self.models.provider, model, load_prompt(phase).version)

    def site(self, name: str) -> Site:
        """A site by name.

        Raises:
            ConfigError: if it is no longer configured: its articles wait, none is lost.
        """
        if name not in self.sites:
            raise ConfigError(f"site '{name}' is not configured here: configure it again")
        return self.sites[name]
