"""The audit of a class that defines ``__torch_function__``, made by a worker."""

from __future__ import annotations

from typing import Any

from gradlint.base.errors import TargetError
from gradlint.model.settings import Settings
from gradlint.running import _memory
from gradlint.running import server as _server
from gradlint.running._job import Job
from gradlint.running.call import run_task
from gradlint.targets.resolve import EVERY, resolve


def overrides(target: str, settings: Settings) -> dict[str, Any]:
    """What ``gradlint.overrides.audit`` returns for the class ``target``.

    Raises:
        GradlintError: the target can't be used, or is no class that overrides torch's functions.
        WorkerFailed: the module can't be loaded, crashed or hung.
    """
    _server.start()
    refs = resolve(target, settings)
    if len(refs) != 1 or refs[0].attribute in ("", EVERY) or refs[0].source == "library":
        raise TargetError(
            f"`{target}` names no single class", hint="Write pkg.mod:Class or path/file.py:Class."
        )
    memory = _memory.allowance(settings.memory_mb, 1, settings.devices)
    work = ("gradlint.overrides.audit:audit", (refs[0], settings))
    found: dict[str, Any] = run_task(
        Job("gradlint.running.jobs:call", work, memory), refs[0], settings
    )
    return found
