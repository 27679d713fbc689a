"""The money side: what was used, what it costs, and the ledger."""
