"""What a sandbox is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_PORT = 8471


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """How a sandbox listens, how fast it answers, and what goes wrong in it."""

    journal: Path  #: JSON lines, one per request; an existing file is continued
    port: int = DEFAULT_PORT  #: on 127.0.0.1; 0 takes a free one
    latency_s: float = 0.0  #: mean time an answer takes; each answer takes 0.5 to 1.5 times that
    seed: int = 1  #: same seed and same request: same answer, latency and faults
    plan: Path | None = None  #: fault plan in JSON (`nightdesk.sandbox.faults`)
    exit_with_parent: bool = False  #: end as soon as stdin is at its end
