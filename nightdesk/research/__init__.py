"""Fetching a topic's sources safely, and their text as evidence.

policy       what is fetched, and how much
addresses    where a request may go; transport: it goes nowhere else
web, body    one polite request with a bounded body
robots       what the sites allow; redirects, fetch: one address over all its hops
extraction   text out of a body, in a process of its own (extract_child)
reader       all of it together
quoting      is a quote in a text, and how a text is shown to a model
"""

from __future__ import annotations

from nightdesk.research.addresses import Resolver
from nightdesk.research.policy import FetchPolicy
from nightdesk.research.quoting import as_data, quote_is_in
from nightdesk.research.reader import SourceReader
from nightdesk.research.source import FetchedSource

__all__ = ["FetchPolicy", "FetchedSource", "Resolver", "SourceReader", "as_data", "quote_is_in"]
