"""From a provider's error to the failure policy's class and what is known about the bill.

The order of the rules is the order of trust: the provider's own code, then the status. Text is
matched only where a provider gives nothing else (Anthropic's two billing messages with status 400).
"""

from __future__ import annotations

from dataclasses import dataclass

from nightdesk.errors import (
    Blocked,
    JobError,
    Lane,
    LaneKind,
    NeedsPerson,
    Permanent,
    Reason,
    ToldToWait,
    Transient,
)
from nightdesk.llm.port import Billing, CallFailed
from nightdesk.text import shorten, storable

#: Codes that mean: nobody may spend here any more. Both providers send some of them with status 429.
OUT_OF_MONEY = frozenset(
    {
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "organization_on_hold",
        "billing_error",
        "billing_hard_limit_reached",
    }
)
_OUT_OF_MONEY_TEXTS = ("specified api usage limits", "credit balance is too low")
#: Codes that mean: what was asked broke the provider's rules; asking again would hurt the account.
FLAGGED = frozenset(
    {
        "invalid_prompt",
        "content_policy",
        "content_policy_violation",
        "bio_policy",
        "misalignment_policy_violation",
    }
)
#: Where an address of each provider usually ends.
_ADDRESS_HINTS = {"openai": " (it usually ends in /v1)", "anthropic": " (it usually ends without /v1)"}
_REFUSED_BEFORE_WORK = frozenset({409, 503, 529})
DEFAULT_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class ProviderError:
    """What an error response says, as far as it says it."""

    provider: str
    status: int
    codes: frozenset[str]  #: its type and codes
    message: str
    retry_after_s: float | None


def classify(error: ProviderError) -> CallFailed:
    """The failure of a request that was answered with an error."""
    said = f"{error.provider} answered {error.status}: {shorten(storable(error.message), 400)}"
    lane = Lane(LaneKind.PROVIDER, error.provider)
    failure: JobError
    billing = Billing.NOTHING
    if _is_closed(error):
        failure = Blocked(said, lane=lane)
    elif _is_elsewhere(error):
        failure = Blocked(f"{said}; {_address_hint(error.provider)}", lane=lane)
    elif error.codes & FLAGGED:
        failure = NeedsPerson(said, reasons=(Reason("prompt_flagged", said),))
    elif error.status in (402, 429):
        failure = ToldToWait(said, lane=lane, retry_after_s=error.retry_after_s or DEFAULT_WAIT_S)
    elif error.status in (408, 409) or error.status >= 500:
        failure = Transient(said, lane=lane)
        billing = Billing.NOTHING if error.status in _REFUSED_BEFORE_WORK else Billing.UNKNOWN
    else:
        failure = Permanent(said)
    return CallFailed(failure, billing)


def _is_closed(error: ProviderError) -> bool:
    """Whether the provider works for nobody here until a person, or a date, changes that."""
    codes = error.codes & OUT_OF_MONEY
    if error.status == 402:
        # Anthropic types every 402 `billing_error`: only a Retry-After tells one that passes by itself.
        return error.retry_after_s is None or bool(codes - {"billing_error"})
    lowered = error.message.lower()
    told_in_words = error.status == 400 and any(text in lowered for text in _OUT_OF_MONEY_TEXTS)
    return bool(codes) or told_in_words or error.status in (401, 403)


def _is_elsewhere(error: ProviderError) -> bool:
    """Whether nothing that answers questions is at this address: the operator's mistake, no article's.

    Both providers answer 404 to a model that they do not have, too; then they name it.
    """
    if error.status == 404:
        return "model_not_found" not in error.codes and "model" not in error.message.lower()
    return error.status == 405


def _address_hint(provider: str) -> str:
    return f"check the setting {provider}.base_url{_ADDRESS_HINTS.get(provider, '')}"


def not_sent(provider: str, why: str) -> CallFailed:
    """The request never left: refused connection, unknown host."""
    lane = Lane(LaneKind.PROVIDER, provider)
    return CallFailed(Transient(f"{provider} cannot be reached: {why}", lane=lane), Billing.NOTHING)


def misconfigured(provider: str, why: str) -> CallFailed:
    """The request cannot be made of key and address as they are, so it never left."""
    said = f"the request to {provider} cannot be made ({why}): check its key and {provider}.base_url"
    return CallFailed(Blocked(said, lane=Lane(LaneKind.PROVIDER, provider)), Billing.NOTHING)


def unsendable(provider: str, why: str) -> CallFailed:
    """The request cannot be written down, so it never left: lone surrogates have no UTF-8."""
    said = f"the question to {provider} cannot be encoded, clean its text first: {why}"
    return CallFailed(Permanent(said), Billing.NOTHING)


def lost(provider: str, why: str) -> CallFailed:
    """The request left, and no usable answer came: it may have been billed."""
    lane = Lane(LaneKind.PROVIDER, provider)
    said = shorten(storable(why), 500)
    return CallFailed(Transient(f"{provider} gave no answer: {said}", lane=lane), Billing.UNKNOWN)


def retry_after_s(header: str | None, header_ms: str | None = None) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after`; HTTP dates are not used by either provider."""
    for text, scale in ((header_ms, 0.001), (header, 1.0)):
        try:
            value = float(text) * scale if text is not None else -1.0
        except ValueError:
            continue
        if 0 <= value < 10_000_000:
            return value
    return None
