"""Nightdesk's domain: all that would be true without Prefect.

states, errors, money, text    small things that everything else uses
languages, world, config       settings and ports
db, embedded, models           Postgres, and every table in one folder
spend/                         usage, prices, the ledger
llm/                           one port to models, an adapter per provider, the metered client
research/                      fetching and extracting sources safely
publishing/                    one port to sites, an adapter per kind of site, verification
desk/                          the queue, the phases, prompts, the quality gate, the runner
insights                       the read side
sandbox/                       loopback twins of the outside world
cli/                           the `nightdesk` command
"""

__version__ = "0.1.0"
