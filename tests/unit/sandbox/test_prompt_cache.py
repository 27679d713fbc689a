"""The cache bills prefixes as the providers do."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nightdesk.sandbox.exchange import Ask, Segment
from nightdesk.sandbox.prompt_cache import PromptCache
from nightdesk.sandbox.tariff import Tokens

LONG = "abcd" * 2000  # 2000 tokens


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def ask(*segments: Segment, provider: str = "anthropic", **fields: Any) -> Ask:
    return Ask(
        **{
            "provider": provider, "model": "m", "account": "k", "segments": segments,
            "user_text": "", "schema": None, "schema_title": "", "max_tokens": None,
        } | fields
    )  # fmt: skip


def test_a_marked_prefix_is_written_once_and_read_for_five_minutes() -> None:
    clock = Clock()
    cache = PromptCache(clock)
    first = ask(Segment(LONG, 300), Segment("tail"))
    second = ask(Segment(LONG, 300), Segment("another tail."))
    assert cache.split(first) == Tokens(1, cache_write=2000)
    clock.now_s += 299
    assert cache.split(second) == Tokens(4, cache_read=2000)
    clock.now_s += 299
    assert cache.split(first) == Tokens(1, cache_read=2000), "reading renews the entry"
    clock.now_s += 301
    assert cache.split(first) == Tokens(1, cache_write=2000)


def test_an_hour_is_written_at_its_own_price() -> None:
    assert PromptCache().split(ask(Segment(LONG, 3600))) == Tokens(0, cache_write_1h=2000)


def test_a_short_or_unmarked_prefix_is_not_cached() -> None:
    cache = PromptCache()
    for _ in range(2):
        assert cache.split(ask(Segment("abcd" * 1023, 300))) == Tokens(1023)
        assert cache.split(ask(Segment(LONG))) == Tokens(2000)


def test_a_longer_marked_prefix_reads_the_shorter_one() -> None:
    cache = PromptCache()
    cache.split(ask(Segment(LONG, 300)))
    longer = ask(Segment(LONG, 300), Segment("abcd" * 100, 300), Segment("tail"))
    assert cache.split(longer) == Tokens(1, cache_read=2000, cache_write=100)


def test_nothing_is_shared_between_models_and_accounts() -> None:
    cache = PromptCache()
    for fields in ({}, {"model": "other"}, {"account": "other"}):
        assert cache.split(ask(Segment(LONG, 300), **fields)).cache_read == 0


def test_openai_caches_by_itself_in_steps_of_128() -> None:
    cache = PromptCache()
    first = ask(Segment(LONG), provider="openai")
    second = ask(Segment(LONG), Segment("efgh" * 200), provider="openai")
    assert cache.split(first) == Tokens(80, cache_write=1920)
    assert cache.split(second) == Tokens(24, cache_read=1920, cache_write=256)
    assert cache.split(ask(Segment("abcd" * 1000), provider="openai")) == Tokens(1000)


@given(
    provider=st.sampled_from(["anthropic", "openai"]),
    prompts=st.lists(
        st.lists(
            st.builds(
                lambda letter, size, ttl: Segment(letter * size, ttl),
                st.sampled_from("aбక"), st.integers(0, 9000), st.sampled_from([None, 300, 3600]),
            ),
            min_size=1, max_size=6,
        ),
        max_size=4,
    ),
)  # fmt: skip
def test_every_token_is_counted_exactly_once(provider: str, prompts: list[list[Segment]]) -> None:
    cache = PromptCache()
    for segments in prompts:
        asked = ask(*segments, provider=provider)
        tokens = cache.split(asked)
        assert tokens.prompt == asked.prompt_tokens
        assert min(tokens.uncached, tokens.cache_read, tokens.cache_write) >= 0
        assert tokens.cache_write_1h >= 0
