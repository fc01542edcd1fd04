"""A dtype that was only wished for, and that the op refuses.

``--dtype float32,bfloat16`` is typed for many operators at once, and some of them (an FFT, a
factorisation) exist in float32 and float64 only. That such an op raises in bfloat16 is a limit that
it states itself. It is a fault where somebody promised the dtype: the ``dtypes:`` of a spec, or
``dtypes`` in ``[tool.gradlint]``.
"""

from __future__ import annotations

import torch

from gradlint.experiments.subject import Subject
from gradlint.model.settings import DTYPES
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: How PyTorch's kernels name the dtypes that they refuse, in lower case.
_SPELLINGS = {
    "float64": ("double", "float64"),
    "float32": ("float", "float32"),
    "float16": ("half", "float16"),
    "bfloat16": ("bfloat16",),
}

#: Texts by which they refuse one.
_REFUSALS = ("not implemented for", "not supported", "unsupported", "does not support")


def unsupported_dtype(subject: Subject) -> str:
    """The name of the sample's dtype where the op does not work in it, works in another one, and
    nobody promised it; else "".

    Forward may refuse a dtype by any exception. Backward must say that it lacks the dtype: after a
    forward that ran, any other exception is a fault.
    """
    error = subject.run.error
    if error is None or (subject.settings.dtypes is None and subject.op.dtypes is None):
        return ""
    name = _dtype_of(subject)
    promised = (*subject.settings.promised_dtypes, *(subject.op.dtypes or ()))
    if not name or name in promised:
        return ""
    if error.phase == "forward":
        return name if subject.once(_runs_in_another) else ""
    return name if _says_so(error.error, name) else ""


def _dtype_of(subject: Subject) -> str:
    """The dtype of all real floating inputs, or ""."""
    values = [value for _, value in subject.sample.named_tensors(None)]
    values += [item.value for item in subject.problem.parameters]
    found = {value.dtype for value in values if value.is_floating_point()}
    return str(found.pop()).removeprefix("torch.") if len(found) == 1 else ""


def _runs_in_another(subject: Subject) -> bool:
    """Whether forward runs on this sample in any other dtype."""
    device = next(str(value.device) for _, value in subject.sample.named_tensors(None))
    for name in DTYPES:
        if name == _dtype_of(subject):
            continue
        other = Problem(
            subject.op, subject.sample.converted(getattr(torch, name), device), seed=subject.seed
        )
        try:
            other.forward()
        except OpRaised:
            continue
        finally:
            subject.problem.forward_calls += other.forward_calls
        return True
    return False


def _says_so(error: BaseException, name: str) -> bool:
    text = str(error).lower()
    return any(part in text for part in _REFUSALS) and any(
        spelling in text for spelling in _SPELLINGS[name]
    )
