"""Proves or refutes the gradients of PyTorch operators.

Importing this package imports neither torch nor anything heavy; its names are loaded when they
are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradlint.api import check, sweep
    from gradlint.base.errors import CheckFailedError, GradlintError
    from gradlint.checker import Checker
    from gradlint.dropin.failure import InconclusiveWarning
    from gradlint.dropin.gradcheck import gradcheck
    from gradlint.dropin.gradgradcheck import gradgradcheck
    from gradlint.model.report import Report

    __version__: str

_HOMES = {
    "CheckFailedError": "gradlint.base.errors",
    "Checker": "gradlint.checker",
    "GradlintError": "gradlint.base.errors",
    "InconclusiveWarning": "gradlint.dropin.failure",
    "Report": "gradlint.report.display",
    "check": "gradlint.api",
    "gradcheck": "gradlint.dropin.gradcheck",
    "gradgradcheck": "gradlint.dropin.gradgradcheck",
    "sweep": "gradlint.api",
}

__all__ = [
    "CheckFailedError",
    "Checker",
    "GradlintError",
    "InconclusiveWarning",
    "Report",
    "check",
    "gradcheck",
    "gradgradcheck",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # It takes as long to import as all else up to the start of the server.
        metadata = importlib.import_module("importlib.metadata")
        try:
            return metadata.version("gradlint")
        except metadata.PackageNotFoundError:
            return "0+unknown"  # run from its sources, without having been installed
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, "__version__"])
