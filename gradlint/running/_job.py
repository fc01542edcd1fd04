"""What a worker is told to do, and what it may take for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """One piece of work for one worker.

    Args:
        function: dotted path ``package.module:name`` of a function that is called with
            ``send(kind, payload)`` and then ``arguments``.
        arguments: picklable values.
        memory_mb: MiB it may allocate beyond what torch holds; None for no limit.
        environment: variables of the caller, which may have changed since the server started.
        interpreter: a program that starts Python with the arguments it is given, under a tool that
            watches it. Such a worker is no fork of the server: it starts afresh, adds
            ``environment`` to what the tool left it, and ends as a program does, so that the tool
            can end too. None for a worker of the usual kind.
    """

    function: str
    arguments: tuple[Any, ...] = ()
    memory_mb: int | None = None
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    interpreter: str | None = None
