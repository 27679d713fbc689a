"""A loopback twin of the model providers and of the pages that research reads.

It speaks Anthropic Messages and OpenAI Responses well enough for the official SDKs, writes
plausible articles without a model, breaks on request as real providers break, and keeps a journal
of every request with the bill it would have sent. The domain never imports it, and it knows neither
our adapters nor our prices: what it saw and billed is independent evidence.
"""

from __future__ import annotations

from nightdesk.sandbox.journal import JournalEntry, billed_usd, read_journal
from nightdesk.sandbox.options import SandboxOptions
from nightdesk.sandbox.process import SandboxProcess

__all__ = [
    "JournalEntry",
    "SandboxOptions",
    "SandboxProcess",
    "billed_usd",
    "read_journal",
    "serve",
]


def serve(options: SandboxOptions) -> None:
    """Serve until told to stop; prints `{"port": …, "pid": …}` on stdout once it listens.

    Raises:
        SystemExit: code 2, after one line on stderr, if the port is taken or the plan is invalid.
    """
    # Starlette and uvicorn cost 0.3 s to import; a parent that only starts a child needs neither.
    from nightdesk.sandbox.server import run

    run(options)
