"""The `nightdesk` command: one module per group of commands, put together in `app`."""

from __future__ import annotations

import os
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
        # The reader of our output has gone (`| head`); what Python would flush at exit goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"{error.filename}: {error.strerror}")
        sys.exit(2)
