"""Which findings are the same in another run: told by what they are about, never by a measurement.

A finding is known by its operator, code, dtype, device, input and output. Lines of source, numbers,
seeds and texts are left out, because they change while the defect stays. Baselines, SARIF and
GitLab all use this.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, replace

from gradlint.model.report import Argument, Check, SampleReport, TargetReport

#: Version of what a fingerprint is made of; part of every fingerprint.
FINGERPRINT_VERSION = 1

#: Hexadecimal digits of a fingerprint: 128 bits, which no two of any number of findings share by
#: chance.
_DIGITS = 32

#: Endings of targets that are files by themselves.
_SPEC = (".yaml", ".yml")

#: How the names of dtypes begin that can be differentiated.
_DIFFERENTIABLE = ("float", "bfloat", "complex")


@dataclass(frozen=True, order=True)
class Identity:
    """What stays of a finding from run to run. Texts are empty where there is nothing to say.

    Args:
        op: file and name of the operator, or its target where it has no file in the folder.
        code: of the rule.
        dtype, device: those of the sample, or of the check where it has its own.
        input, output: the names in the finding.
        copy: 0 for the first finding of which all else is the same, 1 for the second, and so on.
    """

    op: str
    code: str
    dtype: str = ""
    device: str = ""
    input: str = ""
    output: str = ""
    copy: int = 0

    @property
    def fingerprint(self) -> str:
        """A short text of hexadecimal digits that no other identity has."""
        text = json.dumps([FINGERPRINT_VERSION, *asdict(self).values()])
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def identities(target: TargetReport, folder: str = ".") -> list[Identity]:
    """The identity of every finding of ``target``, in their order; no two are equal.

    Args:
        target: what was checked, with paths relative to the working directory.
        folder: what paths are relative to in the identities.
    """
    op = op_identity(target, folder)
    first = {(check.code, check.sample): check for check in reversed(target.checks)}
    seen: Counter[Identity] = Counter()
    found = []
    for finding in target.findings:
        made_by = first.get((finding.code, finding.sample))
        check = made_by or Check(finding.code, "fail", finding.sample)
        dtype, device = dtype_and_device(target, check)
        plain = Identity(op, finding.code, dtype, device, finding.input or "", finding.output or "")
        found.append(replace(plain, copy=seen[plain]))
        seen[plain] += 1
    return found


def op_identity(target: TargetReport, folder: str = ".") -> str:
    """``path/file.py:Name`` of an operator, however it was named on the command line.

    A specification is its own path. What has no file of its own below ``folder``, such as an
    installed package or a registered op, is the target as it was named.
    """
    name = target.target
    if name.endswith(_SPEC):
        return _below(name, folder) or name
    file = target.location.file if target.location is not None else ""
    attribute = name.rpartition(":")[2] if ":" in name else ""
    path = _below(file, folder) if file and attribute else ""
    return f"{path}:{attribute}" if path else name


def _below(path: str, folder: str) -> str:
    """``path`` as seen from ``folder``, with slashes; empty if it lies outside."""
    try:
        seen = os.path.relpath(path, folder)
    except (ValueError, FileNotFoundError):  # another drive; the folder is gone
        return ""
    seen = seen.replace(os.sep, "/")
    return "" if seen == ".." or seen.startswith("../") else seen


def dtype_and_device(target: TargetReport, check: Check) -> tuple[str, str]:
    """What ``check`` ran at: its own dtype and device, else those of its sample's first tensor that
    can be differentiated; empty texts without a sample."""
    dtype, device = check.dtype or "", check.device or ""
    sample = next((item for item in target.samples if item.label == check.sample), None)
    first = _first_tensor(sample)
    if first is not None:
        dtype, device = dtype or first.dtype or "", device or first.device or ""
    return dtype, device


def _first_tensor(sample: SampleReport | None) -> Argument | None:
    tensors = [arg for arg in sample.args if arg.shape is not None] if sample else []
    for arg in tensors:
        if (arg.dtype or "").startswith(_DIFFERENTIABLE):
            return arg
    return tensors[0] if tensors else None
