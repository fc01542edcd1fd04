"""``torch.library.opcheck`` on a registered operator: what its registrations promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from gradlint.inputs import map_tensors

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject

#: Tests in the order in which a failure explains those after it.
_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)

#: What a failure of each means.
_MEANING = {
    "test_schema": "what it mutates or aliases is not what its schema says",
    "test_autograd_registration": "its backward is not registered where autograd looks for it",
    "test_faketensor": "its fake kernel is not what the real one does",
    "test_aot_dispatch_dynamic": "traced with symbolic shapes it is another function",
}

#: In the texts of those who say that there is no fake kernel.
_NO_FAKE = ("no fake impl", "no meta", "meta implementation", "fake implementation")


@dataclass(frozen=True)
class Failure:
    """One failed test of opcheck. ``absent``: nothing is registered, which torch says openly."""

    test: str
    meaning: str
    error: BaseException
    absent: bool
    others: list[str]


def opcheck(subject: Subject) -> Failure | None:
    """The first of opcheck's tests that ``subject`` fails; None where all pass."""
    sample = subject.sample

    def passed(tensor: torch.Tensor) -> torch.Tensor:
        leaf = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        # What writes to its inputs refuses leaves, as it must.
        return leaf.clone() if subject.problem.in_place else leaf

    args, kwargs = map_tensors((sample.args, sample.kwargs), passed)
    run: Any = torch.library.opcheck  # takes more kinds of operator than its type says
    results = run(subject.op.call, args, kwargs, test_utils=_TESTS, raise_exception=False)
    failed = {name: results[name] for name in _TESTS if results.get(name) != "SUCCESS"}
    if not failed:
        return None
    first, error = next(iter(failed.items()))
    absent = any(phrase in str(error).lower() for phrase in _NO_FAKE)
    return Failure(first, _MEANING[first], error, absent, list(failed)[1:])
