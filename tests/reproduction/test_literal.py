"""Values as source: they come back as they were, and none of them can end a line or a string."""

from __future__ import annotations

import math

import pytest
import torch

from gradlint.reproduction.literal import INLINE, Literals, NotWritten, comment

HOSTILE = 'x"\n"""\nraise SystemExit(7)\n\'\'\'\r\u2028\\'


def back(value: object) -> object:
    """``value`` as its source gives it."""
    literals = Literals()
    expression = literals.of(value)
    space: dict[str, object] = {"torch": torch, "KEPT": literals.kept}
    exec("\n".join(literals.lines), space)
    return eval(expression, space)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, -0.5, 1e-300, complex(1, -2), "plain", HOSTILE, b"\x00'\"", ...),
        *([1, (2,), {"a": [None]}], (), {1, 2}, set(), frozenset([3]), slice(1, None, 2)),
        *(torch.float32, torch.Size([2, 3]), torch.device("cpu"), {HOSTILE: HOSTILE}),
        torch.nn.functional.relu,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back(value: object) -> None:
    assert back(value) == value


def test_numbers_that_are_none_come_back() -> None:
    assert math.isnan(back(math.nan))  # type: ignore[arg-type]
    assert back(-math.inf) == -math.inf


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.complex128, torch.int64]
)
def test_tensors_come_back_to_the_last_bit(dtype: torch.dtype) -> None:
    made = (torch.arange(6, dtype=torch.float64) / 7).to(dtype).reshape(2, 3)
    found = back(made)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == dtype
    assert torch.equal(found, made)


def test_strides_and_requires_grad_come_back() -> None:
    made = torch.arange(6.0).reshape(2, 3).T.requires_grad_()
    found = back(made)
    assert isinstance(found, torch.Tensor)
    assert (found.stride(), found.requires_grad) == (made.stride(), True)
    assert torch.equal(found, made)


def test_a_tensor_passed_twice_is_one() -> None:
    x = torch.zeros(2)
    found = back((x, x))
    assert found[0] is found[1]  # type: ignore[index]


def test_large_tensors_are_kept_beside() -> None:
    literals = Literals()
    literals.of(torch.zeros(INLINE + 1))
    assert [t.numel() for t in literals.kept.values()] == [INLINE + 1]


@pytest.mark.parametrize(
    "value",
    [object(), lambda: 1, torch.zeros(2).to_sparse()],
    ids=["object", "function", "sparse"],
)
def test_what_cannot_be_written_is_said(value: object) -> None:
    with pytest.raises(NotWritten):
        Literals().of(value)


def test_a_comment_holds_no_code() -> None:
    lines = comment(HOSTILE).splitlines()
    assert all(line.startswith("#") for line in lines)
    exec(comment(HOSTILE))
