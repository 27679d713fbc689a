"""The database that the settings name. It imports little: a tick with nothing to do ends after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from nightdesk.config import Settings
from nightdesk.db import Database
from nightdesk.embedded import EmbeddedPostgres
from nightdesk.schema import migrate


@contextmanager
def open_database(settings: Settings, *, upgrade: bool = True) -> Iterator[Database]:
    """The database in use; starts the embedded Postgres if no other is named.

    Args:
        upgrade: bring its schema to this version; a scheduled run takes it as it is.

    Raises:
        DatabaseError: with what is wrong and what to do.
    """
    with ExitStack() as stack:
        if settings.database_url is None:
            embedded = EmbeddedPostgres(settings.data_dir)
            embedded.start()
            stack.callback(embedded.stop)
            database = Database(embedded.url())
        else:
            database = Database(settings.database_url.get_secret_value())
        stack.callback(database.dispose)
        if upgrade:
            database.check()
            migrate(database)
        yield database
