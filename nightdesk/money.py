"""Money is a Decimal in USD; it is rounded only when it is shown."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from nightdesk.errors import ConfigError

ZERO = Decimal(0)
_SCALE = Decimal("0.0000000001")  # the ledger's numeric(20,10)


def parse_usd(text: str) -> Decimal:
    """A finite, non-negative amount such as `200` or `0.35`.

    Raises:
        ConfigError: if it is anything else.
    """
    try:
        amount = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        raise ConfigError(f"'{text}' is not an amount in USD, such as 200 or 0.35") from None
    if not amount.is_finite() or amount < 0:
        raise ConfigError(f"'{text}' is not an amount in USD: it must be finite and not negative")
    return amount


def to_scale(amount: Decimal) -> Decimal:
    """`amount` at the ledger's scale (10 decimals), so that what is stored equals what was computed."""
    return amount.quantize(_SCALE, rounding=ROUND_HALF_EVEN)


def show_usd(amount: Decimal, places: int = 4) -> str:
    """For people: `$0.0310`."""
    return f"${amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)}"
