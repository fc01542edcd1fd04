"""The audit of a class that defines ``__torch_function__``, made by a worker."""

from __future__ import annotations

from typing import Any

from gradlint.base.errors import TargetError
from gradlint.model.settings import Settings
from gradlint.running import server as _server
from gradlint.running.call import call_on_target
from gradlint.running.job import AuditWork
from gradlint.targets.resolve import EVERY, resolve


def overrides(target: str, settings: Settings) -> dict[str, Any]:
    """What ``gradlint.overrides.audit`` returns for the class ``target``.

    Raises:
        GradlintError: the target can't be used, or is not a class that overrides torch's functions.
        WorkerFailed: the module can't be loaded, crashed or hung.
    """
    _server.start()
    refs = resolve(target, settings)
    if len(refs) != 1 or refs[0].attribute in ("", EVERY) or refs[0].source == "library":
        raise TargetError(
            f"`{target}` does not name a single class",
            hint="Write pkg.mod:Class or path/file.py:Class.",
        )
    found: dict[str, Any] = call_on_target(AuditWork(refs[0], settings))
    return found
