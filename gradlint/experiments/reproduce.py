"""The one command that shows a finding again."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from gradlint.model.settings import Settings

if TYPE_CHECKING:
    from gradlint.model.sample import Sample

#: In what the command line can find an op by: ``module:Name``, ``torch.ops.ns.name``, ``x.yaml``.
_NAMES_A_PLACE = re.compile(r"[:./\\]")


def reproduce(target: str, code: str, settings: Settings, sample: Sample | None = None) -> str:
    """The one command that shows a finding again, quoted for a POSIX shell.

    Args:
        target: as on the command line; of an object that has no importable name, its name.
        code: the rule to select; empty for a finding that no single rule makes.
        sample: the sample of the finding, if it has one.

    Returns:
        A shell command; the call in Python for objects or inputs that only exist there.
    """
    given = sample is not None and sample.origin == "given"
    if given or "<" in target or (sample is not None and not _NAMES_A_PLACE.search(target)):
        return _in_python(target, code, settings, given)
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
    if settings.sanitizer is not None:
        words += ["--sanitizer", settings.sanitizer]
    if settings.untrusted:
        words.append("--untrusted")
    if os.environ.get("TRITON_INTERPRET") == "1":
        words.append("--triton-interpret")
    return shlex.join(words)


def _in_python(target: str, code: str, settings: Settings, given: bool) -> str:
    words = [target.rpartition(":")[2], *(["inputs"] if given else [])]
    if settings.dtypes is not None:
        words.append(f"dtypes={list(settings.dtypes)}")
    if settings.devices != ("cpu",):
        words.append(f"devices={list(settings.devices)}")
    if code:
        words.append(f"select={code!r}")
    words.append(f"seed={settings.seed}")
    return f"gradlint.check({', '.join(words)})"
