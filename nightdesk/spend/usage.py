"""Token usage with one meaning for every provider; each adapter normalises to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

#: More than any model takes or gives in one call: a larger count is a broken server's.
MOST_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What one call used.

    `input_tokens` is the whole prompt: uncached + read from cache + written to cache.
    `cache_write_tokens` includes the ones kept for an hour. `output_tokens` includes reasoning.
    """

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    tier: str | None = None  #: `flex`, `priority`, `fast`, `batch`; None is the standard one
    inference_geo: str | None = None

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def can_be_priced(self) -> bool:
        """No prompt has no tokens, none has a billion, and no part is larger than its whole."""
        return (
            0 < self.input_tokens <= MOST_TOKENS
            and self.output_tokens <= MOST_TOKENS
            and self.cache_read_tokens + self.cache_write_tokens <= self.input_tokens
            and self.cache_write_1h_tokens <= self.cache_write_tokens
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
