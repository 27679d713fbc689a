"""Alembic revisions. Each runs inside one transaction with a lock timeout (see `nightdesk.schema`)."""
