"""What a simulation replaces: new ids, randomness, sleep. Time is the database's (`nightdesk.now()`)."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Protocol


class World(Protocol):
    """The sources of everything that would make two runs differ."""

    def new_id(self) -> uuid.UUID:
        """A new unique id."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class RealWorld:
    """Ids and randomness from the operating system, sleep from the event loop."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def new_id(self) -> uuid.UUID:
        return uuid.uuid4()

    def random(self) -> float:
        return self._random.random()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
