"""The most that a request can cost, before it is sent."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from decimal import Decimal

from nightdesk.spend.pricing import cost_usd
from nightdesk.spend.usage import TokenUsage

#: Tokens of the wrapping that providers add around what is sent (roles, tools, schema preamble).
OVERHEAD_TOKENS = 512


def input_bound_tokens(*texts: str) -> int:
    """An upper bound of the tokens in `texts`: a token covers at least one byte of UTF-8."""
    return OVERHEAD_TOKENS + sum(len(text.encode("utf-8", "replace")) for text in texts)


def input_estimate_tokens(*texts: str) -> int:
    """About as many tokens as `texts` have, rather too many than too few: 3 bytes of UTF-8 to a token.

    English has 4 and more, Cyrillic and the Indic scripts about 3. Money is held by the bound above.
    """
    return OVERHEAD_TOKENS + sum(-(-len(text.encode("utf-8", "replace")) // 3) for text in texts)


def worst_case_usd(
    provider: str, model: str, *, input_tokens: int, output_tokens: int, at: datetime
) -> Decimal:
    """The dearest of: nothing cached, everything written to the cache (for minutes, for an hour).

    At the standard tier, which the adapters ask for by name. Where Anthropic answers from is settled
    by the workspace, so its prices are those of the dearest place.
    """
    geo = "us" if provider == "anthropic" else None
    plain = TokenUsage(input_tokens=input_tokens, output_tokens=output_tokens, inference_geo=geo)
    written = dataclasses.replace(plain, cache_write_tokens=input_tokens)
    variants = [plain, written]
    if provider == "anthropic":
        variants.append(dataclasses.replace(written, cache_write_1h_tokens=input_tokens))
    return max(cost_usd(provider, model, usage, at=at) for usage in variants)
