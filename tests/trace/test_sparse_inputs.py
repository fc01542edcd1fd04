"""Sparse inputs as the values that they store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import gradlint
from gradlint.trace.sparse import Pattern

A = torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 4.0, 5.0]]).double()
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "coo": lambda a: a.to_sparse(),
    "csr": lambda a: a.to_sparse_csr(),
    "csc": lambda a: a.to_sparse_csc(),
    "bsr": lambda a: a.to_sparse_bsr((3, 2)),
    "bsc": lambda a: a.to_sparse_bsc((3, 2)),
    "hybrid": lambda a: a.to_sparse(1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_values_fill_the_tensor_and_gradients_are_picked_in_their_order(layout: str) -> None:
    template = LAYOUTS[layout](A)
    pattern = Pattern(template)
    assert torch.equal(pattern.filled(2 * pattern.values).to_dense(), 2 * A)
    gradient = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    # What is picked from A itself are the values of A, in their own order.
    assert torch.equal(pattern.picked(A), pattern.values)
    weighed = (pattern.picked(gradient) * pattern.values).sum()
    assert float(weighed) == float((gradient * A).sum())
    assert torch.equal(pattern.picked(LAYOUTS["coo"](A)), pattern.values)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_stored_value_is_found_in_the_tensor(layout: str) -> None:
    pattern = Pattern(LAYOUTS[layout](A))
    for at in (pattern.values == 5.0).nonzero().tolist():
        assert pattern.index_of(at) == [2, 3]


def test_each_of_two_values_stored_in_one_place_has_its_gradient() -> None:
    twice = torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 3]], [1.0, 2.0, 3.0], (3, 4))
    pattern = Pattern(twice)
    assert pattern.values.tolist() == [1.0, 2.0, 3.0]
    assert not pattern.filled(pattern.values).is_coalesced()
    assert pattern.picked(torch.arange(12.0).reshape(3, 4)).tolist() == [1.0, 1.0, 11.0]


class SparseMatmul(torch.autograd.Function):
    """``s @ d`` with a gradient for ``s`` as the test has it."""

    gradient: Callable[..., torch.Tensor]

    @staticmethod
    def forward(ctx, s, d):
        ctx.save_for_backward(s, d)
        return s @ d

    @staticmethod
    def backward(ctx, grad_output):
        s, d = ctx.saved_tensors
        return SparseMatmul.gradient(s, d, grad_output), s.mT.to_dense() @ grad_output


def dense_gradient(s: torch.Tensor, d: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return g @ d.mT


def masked_gradient(s: torch.Tensor, d: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return (g @ d.mT).sparse_mask(s.detach().coalesce())


def wrong_gradient(s: torch.Tensor, d: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return masked_gradient(s, d, g) * 1.01


@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [(dense_gradient, "pass"), (masked_gradient, "pass"), (wrong_gradient, "fail")],
)
def test_dense_and_masked_gradients_of_a_sparse_matrix_pass_and_wrong_ones_fail(
    gradient: Callable[..., torch.Tensor], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparseMatmul, "gradient", staticmethod(gradient), raising=False)
    inputs = (A.to_sparse().requires_grad_(), torch.randn(4, 2).double().requires_grad_())
    report = gradlint.check(SparseMatmul, inputs, seed=1, order=1)
    assert report.to_dict()["targets"][0]["verdict"] == verdict
    assert {finding.input for finding in report.findings} == ({"s"} if verdict == "fail" else set())
    for finding in report.findings:
        assert finding.index in A.nonzero().tolist()
        assert all(row["index"] in A.nonzero().tolist() for row in finding.evidence["elements"])


D = torch.arange(8.0, dtype=torch.float64).reshape(4, 2).cos()

CORRECT: dict[str, tuple[Callable[..., torch.Tensor], Callable[[], tuple[torch.Tensor, ...]]]] = {
    "mm": (torch.sparse.mm, lambda: (A.to_sparse(), D.clone())),
    "csr matmul": (lambda s, d: s @ d, lambda: (A.to_sparse_csr(), D.clone())),
    "to_dense": (lambda s: s.to_dense() ** 2, lambda: (A.to_sparse(),)),
    "sum": (lambda s: torch.sparse.sum(s * s, 1), lambda: (A.to_sparse(),)),
    "csc": (lambda s: s.to_dense().sin(), lambda: (A.to_sparse_csc(),)),
    "sparse output": (lambda a: (a * a).to_sparse(), lambda: (A + 1.0,)),
    "embedding": (
        lambda w: torch.nn.functional.embedding(torch.tensor([1, 2, 2]), w, sparse=True).sin(),
        lambda: (A.clone(),),
    ),
    "coalesce": (
        lambda s: s.coalesce().values() ** 2,
        lambda: (torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 3]], A[[0, 1, 2], [0, 1, 2]], (3, 4)),),
    ),
}


@pytest.mark.parametrize("name", CORRECT)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_correct_sparse_operators_pass(name: str) -> None:
    op, inputs = CORRECT[name]
    given = tuple(item.detach().clone().requires_grad_() for item in inputs())
    report = gradlint.check(op, given, seed=1)
    assert report.to_dict()["targets"][0]["verdict"] == "pass"
    judged = {check.code: check for target in report.targets for check in target.checks}
    resolution = judged["GL401"].resolution
    assert resolution is not None
    assert resolution < 1e-6


@pytest.mark.filterwarnings("ignore:Sparse")
def test_inputs_given_as_an_expression() -> None:
    for text in (
        "randn(3, 4).to_sparse(), randn(4, 2)",
        "randn(3, 4).to_sparse_csr(), randn(4, 2)",
    ):
        report = gradlint.check(lambda s, d: s @ d, text, seed=1)
        assert report.to_dict()["targets"][0]["verdict"] == "pass"
