"""The command line. ``main`` is the console script."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

#: Commands that always need a worker.
_WORKING = ("check", "sweep", "init")


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (see ``gradlint.cli._app.main``).

    Args:
        args: the words after the program's name; default those it was called with.
    """
    words = list(sys.argv[1:] if args is None else args)
    if not (len(words) > 1 and words[0] in _WORKING and not {"-h", "--help"} & set(words)):
        from gradlint.cli._app import main as run

        return run(words)
    from gradlint.running import _server

    try:
        _server.start()  # torch loads while the command line is imported and read
        from gradlint.cli._app import main as run

        return run(words)
    except KeyboardInterrupt:
        return 130
    finally:
        _server.stop()
