"""The one command that shows a finding again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.config import Settings
    from gradlint.inputs import Sample


def reproduce(target: str, code: str, settings: Settings, sample: Sample | None = None) -> str:
    """The one command that shows a finding again, quoted for a POSIX shell.

    Args:
        code: the rule to select; empty for a finding that no single rule makes.
    """
    words = ["gradlint", "check", target]
    if code:
        words += ["--select", code]
    words += ["--seed", str(settings.seed)]
    if settings.inputs is not None:
        words += ["--inputs", settings.inputs]
    for name in settings.imports:
        words += ["--import", name]
    if settings.dtypes is not None:
        words += ["--dtype", ",".join(settings.dtypes)]
    if settings.devices != ("cpu",):
        words += ["--device", ",".join(settings.devices)]
    return shlex.join(words)
