"""Which part of a prompt was seen lately, as the providers' prompt caches bill it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

from nightdesk.sandbox.exchange import BYTES_PER_TOKEN, Ask, token_count
from nightdesk.sandbox.tariff import Tokens

MINIMUM_PREFIX_TOKENS = 1024
_STEP_TOKENS = 128  # OpenAI caches in steps of this size
_OPENAI_TTL_S = 1800
_HOUR_S = 3600


class PromptCache:
    """Remembers prefixes per account and model."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expiry: dict[tuple[str, ...], float] = {}

    def split(self, ask: Ask) -> Tokens:
        """The prompt's tokens by price, output left at zero; remembers the prompt."""
        return self._marked(ask) if ask.provider == "anthropic" else self._automatic(ask)

    def _marked(self, ask: Ask) -> Tokens:
        """Anthropic: up to the marked blocks. A block's end counts once 1024 tokens precede it."""
        read = marked = seen = ttl_s = 0
        prefix = hashlib.sha256()
        for segment in ask.segments:
            seen += token_count(segment.text)
            prefix.update(segment.text.encode("utf-8", "surrogatepass") + b"\0")
            if segment.cache_ttl_s is None or seen < MINIMUM_PREFIX_TOKENS:
                continue
            if self._known(ask, prefix.hexdigest(), segment.cache_ttl_s):
                read = seen
            marked, ttl_s = seen, segment.cache_ttl_s
        hourly = ttl_s >= _HOUR_S
        return Tokens(
            uncached=ask.prompt_tokens - marked,
            cache_read=read,
            cache_write=0 if hourly else marked - read,
            cache_write_1h=marked - read if hourly else 0,
        )

    def _automatic(self, ask: Ask) -> Tokens:
        """OpenAI: the longest known prefix in whole steps, from 1024 tokens on."""
        joined = "".join(segment.text for segment in ask.segments)
        content = joined.encode("utf-8", "surrogatepass")
        step = _STEP_TOKENS * BYTES_PER_TOKEN
        read = written = 0
        prefix = hashlib.sha256(ask.cache_key.encode())
        for end in range(step, len(content) + 1, step):
            prefix.update(content[end - step : end])
            tokens = end // BYTES_PER_TOKEN
            if tokens < MINIMUM_PREFIX_TOKENS:
                continue
            if self._known(ask, prefix.hexdigest(), _OPENAI_TTL_S):
                read = tokens
            written = tokens - read
        return Tokens(uncached=ask.prompt_tokens - read - written, cache_read=read, cache_write=written)

    def _known(self, ask: Ask, prefix: str, ttl_s: int) -> bool:
        """Whether the prefix is cached; being asked for renews it."""
        key = (ask.account, ask.model, prefix)
        now = self._clock()
        known = self._expiry.get(key, 0.0) > now
        self._expiry[key] = now + ttl_s
        return known
