"""A first specification for a target, written by a worker from what it inferred."""

from __future__ import annotations

from gradlint.base.errors import TargetError
from gradlint.model.settings import Settings
from gradlint.running import server as _server
from gradlint.running.call import call_on_target
from gradlint.running.job import StarterWork
from gradlint.targets.resolve import EVERY, resolve


def starter(target: str, settings: Settings) -> str:
    """The YAML text of a specification of ``target`` with the inputs that were found for it.

    Raises:
        GradlintError: the target can't be used, or names more than one operator.
    """
    _server.start()
    refs = resolve(target, settings)
    if len(refs) != 1 or refs[0].attribute == EVERY:
        names = ", ".join(ref.target for ref in refs[:5])
        raise TargetError(
            f"{target} names {len(refs)} operators; a specification describes one",
            hint=f"name one of them: {names}",
        )
    text: str = call_on_target(StarterWork(refs[0], settings))
    return text
