"""The command line. ``main`` is the console script."""

from gradlint.cli._app import main

__all__ = ["main"]
