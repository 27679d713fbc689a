"""The `nightdesk` command: one module per group of commands, put together in `app`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an operator's mistake is one clear line and exit code 2."""
    from nightdesk.cli.app import app
    from nightdesk.cli.output import complain
    from nightdesk.errors import OperatorError

    try:
        app()
    except OperatorError as error:
        complain(str(error))
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(141)
