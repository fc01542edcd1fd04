"""Several operators in one worker, one after another: what each may not leave behind.

What GL008 finds of an operator is put back here after each turn, and so is what the import of its
module changes; if anything else is different, the next operator is given a worker of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

from gradlint.experiments.loading.process_effects import (
    open_descriptors,
    running_children,
    running_threads,
)
from gradlint.running._touched import is_installed
from gradlint.targets.importing import module_attribute
from gradlint.trace.global_state import preserved_state
from gradlint.trace.originals import at_the_start, of_torch

#: What importing a module changes, and is put back.
_BY_IMPORT = "sys.path"


@dataclass
class Left:
    """What an operator left.

    Attributes:
        behind: whether the next one might see any of it.
    """

    behind: bool = False


@contextmanager
def turn(path: str) -> Iterator[Left]:
    """In the body, an operator of the file at ``path`` is checked. Afterwards its module is
    forgotten, and global state is as before; what else it left is told."""
    left = Left()
    modules = dict(sys.modules)
    effects = _effects()
    with preserved_state() as changes:
        yield left
    left.behind = (
        any(not text.startswith(_BY_IMPORT) for text in changes.texts)
        or _effects() != effects
        or bool(of_torch().replaced() or at_the_start().lost())
        or not _forgotten(path, modules)
    )


def _effects() -> tuple[int, set[int], int]:
    """What this process has started, and how many files it holds."""
    return running_threads(), running_children(), open_descriptors()


def _forgotten(path: str, before: dict[str, ModuleType]) -> bool:
    """Forget the module of the file at ``path``. Returns whether there is no other module of the
    user's that was not there before, and none was replaced."""
    real = os.path.realpath(path)
    for name, module in list(sys.modules.items()):
        if before.get(name) is module:
            continue
        file = module_attribute(module, "__file__")
        if name in before or (isinstance(file, str) and not is_installed(file)):
            if isinstance(file, str) and os.path.realpath(file) == real:
                del sys.modules[name]
                continue
            return False
    return True
