"""How sources are fetched: who asks, what may be reached, and how much is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from nightdesk.errors import ConfigError

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """Limits and identity of a `SourceReader`.

    Raises:
        ConfigError: if a limit is not positive or the user agent has no product token.
    """

    #: Product token and a way to reach the operator: `Nightdesk/0.1 (+https://example.org/contact)`.
    user_agent: str
    #: `host[:port]` → `address:port`, as curl's `--connect-to`: the only way to an address that is
    #: not public. Without a port, a key stands for ports 80 and 443.
    connect_to: Mapping[str, str] = field(default_factory=dict)
    #: Network time of one source over all its redirects; waiting for a host's turn is not counted,
    #: and each robots.txt that is not cached has the same time for itself.
    total_timeout_s: float = 20.0
    max_bytes: int = 2_000_000  #: of one body, after content decoding
    max_redirects: int = 5
    per_host_delay_s: float = 1.0  #: pause before every further request to the same host
    feed_items: int = 3  #: articles taken from one feed
    extract_timeout_s: float = 10.0
    extract_memory_bytes: int = 1024 * _MIB  #: address space of the process that extracts
    max_text_chars: int = 40_000

    def __post_init__(self) -> None:
        if not self.product_token:
            raise ConfigError(
                f"the user agent '{self.user_agent}' has no product token: begin it with a name of "
                "letters, '-' and '_', such as 'Nightdesk/0.1 (+https://example.org/contact)'"
            )
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, int | float):
                continue
            if not (value > 0 or (value == 0 and item.name in _MAY_BE_ZERO)):
                raise ConfigError(f"the fetch policy's {item.name} is {value}: use a positive number")

    @property
    def product_token(self) -> str:
        """The name that robots.txt files know us by (RFC 9309, 2.2.1)."""
        token = self.user_agent.split("/")[0].split(" ")[0]
        return token if token.replace("-", "").replace("_", "").isalpha() and token.isascii() else ""


_MAY_BE_ZERO = frozenset({"max_redirects", "per_host_delay_s", "feed_items"})
