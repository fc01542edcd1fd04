"""How the modules of a class that ``--of`` names are made in the program."""

from __future__ import annotations

import inspect
import json
import sys
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import Any

from gradlint.recorded.written import Writer

#: Modules of a class that are remembered.
MOST_MODULES = 10_000


class Constructed:
    """Remembers the arguments by which the modules of ``cls`` are made, as long as they live."""

    def __init__(self, cls: Any) -> None:
        self.inner = cls.__init__
        self._known: dict[int, tuple[Any, str]] = {}

    def note(self, frame: FrameType, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """A module is made, the first of ``args``."""
        if len(self._known) >= MOST_MODULES:
            return
        module, key = args[0], id(args[0])
        writer = Writer(sys.modules["torch"])
        bound = inspect.signature(self.inner).bind(*args, **kwargs)
        parameters = list(bound.signature.parameters.values())[1:]
        rows = []
        for parameter in parameters:
            if parameter.name not in bound.arguments:
                continue
            value = bound.arguments[parameter.name]
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                rows += [[name, writer.value(item)] for name, item in value.items()]
            elif parameter.kind in (
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.POSITIONAL_ONLY,
            ):
                rows.append([parameter.name, ["object", f"passed by position ({parameter})"]])
            else:
                rows.append([parameter.name, writer.value(value)])
        gone = weakref.ref(module, lambda _: self._known.pop(key, None))
        self._known[key] = gone, json.dumps(rows)

    def by(self, module: Any) -> str | None:
        """The arguments by which ``module`` was made, pairs of a name and a value as JSON; None
        where that is not known: it was copied, or unpickled."""
        known = self._known.get(id(module))
        return known[1] if known is not None and known[0]() is module else None
