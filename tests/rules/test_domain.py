"""Symmetric inputs: recognised by what the op reads and returns, not by their values alone."""

from __future__ import annotations

import pytest
import torch

from gradlint.experiments.direction_projections import projections
from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.value import wrong_gradient
from gradlint.targets.build import from_object


def spd(size=4, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    root = torch.randn(size, size, generator=generator, dtype=torch.float64).to(dtype)
    if dtype.is_complex:
        root = root + 1j * torch.randn(size, size, generator=generator, dtype=torch.float64)
    product = root @ root.mH
    return (product + product.mH) / 2 + size * torch.eye(size, dtype=dtype)


def subject_of(function, value, seed=3):
    sample = Sample("test", "--inputs", (value.clone().requires_grad_(),))
    return Subject(from_object(function), sample, Settings(seed=seed))


def cholesky(a):
    return torch.linalg.cholesky(a)


def eigenvalues(a):
    return torch.linalg.eigvalsh(a)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("function", [cholesky, eigenvalues])
def test_ops_that_read_one_triangle_pass_at_symmetric_matrices(function, dtype):
    for seed in range(3):
        subject = subject_of(function, spd(dtype=dtype), seed)
        assert projections(subject.problem)[0] is not None
        assert wrong_gradient.probe(subject).verdict == "pass"


@pytest.mark.parametrize("function", [cholesky, eigenvalues])
def test_they_pass_where_the_other_triangle_holds_something_else(function):
    value = spd()
    value = value.tril() + value.triu(1) * 3.0
    assert wrong_gradient.probe(subject_of(function, value)).verdict == "pass"


def both_triangles(a):
    return a @ a


def lower_alone(a):
    return a.tril() * 2


@pytest.mark.parametrize("function", [both_triangles, lower_alone])
def test_other_ops_are_judged_element_by_element(function):
    subject = subject_of(function, spd())
    assert projections(subject.problem) == [None]
    assert wrong_gradient.probe(subject).verdict == "pass"


def test_other_inputs_are_not_symmetric():
    generator = torch.Generator().manual_seed(0)
    for value in (
        torch.randn(4, 4, generator=generator, dtype=torch.float64),
        torch.ones(1, 1, dtype=torch.float64),
        torch.ones(3, dtype=torch.float64),
        torch.ones(0, 0, dtype=torch.float64),
    ):
        subject = subject_of(lower_alone if value.dim() == 2 else torch.exp, value)
        assert projections(subject.problem) == [None]


class WrongCholesky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        with torch.enable_grad():
            leaf = a.detach().requires_grad_()
            ctx.graph = torch.linalg.cholesky(leaf), leaf
        return ctx.graph[0].detach()

    @staticmethod
    def backward(ctx, grad_output):
        factor, leaf = ctx.graph
        return 2 * torch.autograd.grad(factor, leaf, grad_output)[0]


def test_a_wrong_gradient_of_a_symmetric_matrix_is_caught():
    found = wrong_gradient.probe(subject_of(WrongCholesky, spd()))
    assert found.verdict == "fail"
