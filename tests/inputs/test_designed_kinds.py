"""Samples of another kind are made where the code or its documentation gives a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

import gradlint
from gradlint.inputs.designed import Designed
from gradlint.inputs.designed_kinds import (
    as_batch,
    as_complex,
    in_double,
    with_empty_lengths,
    with_equal_eigenvalues,
)
from gradlint.inputs.domains import DOMAINS
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object


def plain(x):
    return x


def documented(x):
    """The trace of a batch of matrices, real or complex."""
    return x


def only_real(x):
    """A map of vectors, not for complex numbers."""
    return x


def magnitude(x, y):
    """The complex magnitude, smooth at zero."""
    return x


def product_of_numbers(x, y):
    """The complex product of complex tensors."""
    return x


def lengths(x, n):
    return x


def never_empty(x, n):
    """Sums of rows x (B, T), n (B,) in 1..T."""
    return x


def op_of(function: Any) -> Op:
    return from_object(function, name=function.__name__)


def sample(*args: Any, **domains: str) -> Sample:
    return Sample("inferred", "inferred", args, domains=domains)


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()


def test_one_length_is_zero():
    there = sample(randn(3, 4), torch.tensor([2, 4, 3]), x=DOMAINS["real"], n="sizes")
    (found,) = with_empty_lengths(op_of(lengths), there)
    assert found.sample.args[1].tolist() == [0, 4, 3]
    assert (found.sample.kind, found.sample.label) == ("special", "where one of `n` is 0")
    indices = sample(randn(3, 4), torch.tensor([2, 4, 3]), x=DOMAINS["real"], n="indices")
    assert not list(with_empty_lengths(op_of(lengths), indices))
    assert not list(with_empty_lengths(op_of(never_empty), there))


def test_definite_matrices_become_multiples_of_the_identity():
    (found,) = with_equal_eigenvalues(op_of(plain), sample(randn(2, 3, 3), x=DOMAINS["spd"]))
    (matrices,) = found.sample.args
    assert torch.equal(matrices.detach(), 1.7 * torch.eye(3).double().expand(2, 3, 3))
    assert matrices.requires_grad
    assert not list(with_equal_eigenvalues(op_of(plain), sample(randn(3, 3), x=DOMAINS["tril"])))
    assert not list(with_equal_eigenvalues(op_of(plain), sample(randn(3), x=DOMAINS["spd"])))


@pytest.mark.parametrize(
    ("function", "expected", "made"),
    [(plain, False, 0), (plain, True, 1), (documented, False, 1), (only_real, True, 0)],
)
def test_complex_numbers_where_they_are_expected(function: Any, expected: bool, made: int):
    x = randn(3, 4)
    found = list(as_complex(op_of(function), sample(x, x=DOMAINS["real"]), expected=expected))
    assert len(found) == made
    for designed in found:
        (there,) = designed.sample.args
        assert there.dtype == torch.complex128
        assert torch.equal(there.real, x.detach())
        assert there.requires_grad


@pytest.mark.parametrize("expected", [False, True])
def test_real_numbers_beside_complex_ones_are_meant(expected: bool):
    def amplitudes(x, y):
        """The amplitudes y of a complex field x."""
        return x.abs() - y

    given = Sample("inferred", "inferred", (torch.complex(randn(3), randn(3)), randn(3)))
    given = replace(given, domains={"y": DOMAINS["real"]})
    assert not list(as_complex(op_of(amplitudes), given, expected=expected))


def test_definite_matrices_become_hermitian_ones():
    x = torch.eye(4, dtype=torch.float64) + 0.3
    (designed,) = as_complex(op_of(documented), sample(x, x=DOMAINS["spd"]), expected=False)
    (there,) = designed.sample.args
    assert torch.equal(there, there.mH)
    assert bool(there.imag.any())
    torch.linalg.cholesky(there)


class LogDet(torch.autograd.Function):
    """log det of a Hermitian positive definite (complex) covariance R (n, n)."""

    @staticmethod
    def forward(ctx, R):
        factor = torch.linalg.cholesky(R)
        ctx.save_for_backward(factor)
        return 2 * factor.diagonal().real.log().sum()

    @staticmethod
    def backward(ctx, g):
        return g * torch.cholesky_inverse(*ctx.saved_tensors)


class LogDetConjugated(LogDet):
    """log det of a Hermitian positive definite (complex) covariance R (n, n)."""

    @staticmethod
    def backward(ctx, g):
        return LogDet.backward(ctx, g).conj()


@pytest.mark.parametrize(("op", "found"), [(LogDet, set()), (LogDetConjugated, {"error"})])
def test_a_conjugate_shows_at_hermitian_matrices(op: type, found: set[str]):
    (report,) = gradlint.check(op, select=["GL401"], order=1, seed=0).targets
    assert {item.severity for item in report.findings} == found


def test_values_of_another_domain_stay_real():
    found = as_complex(op_of(documented), sample(randn(3), x=DOMAINS["positive"]), expected=True)
    assert not list(found)


def test_a_batch_is_as_long_as_the_last_axis():
    (found,) = as_batch(op_of(documented), sample(randn(3, 4), x=DOMAINS["real"]))
    (batch,) = found.sample.args
    assert batch.shape == (4, 3, 4)
    assert not torch.equal(batch[0], batch[1])
    assert found.sample.kind == "other-rank"


def trunk(x):
    """A layer of batches, but assumes `x` to be identical along the first batch
    axis.
    """
    return x


def repeated(x):
    """Takes a batch that is repeated over the batch axis."""
    return x


def same_sizes(x):
    """A map of batches whose weights have the same sizes in all layers."""
    return x


def of_rows(x):
    """A map of batches: (..., N). The scale is constant along the last axis."""
    return x


def of_images(x):
    """Scores of images (B, F), averaged over the batch; returns (B,)."""
    return x


@pytest.mark.parametrize(
    ("function", "made"), [(of_images, 0), (trunk, 0), (repeated, 0), (same_sizes, 1), (of_rows, 1)]
)
def test_no_batch_of_different_members_where_they_are_said_to_be_the_same(function, made):
    assert len(list(as_batch(op_of(function), sample(randn(3, 4), x=DOMAINS["real"])))) == made


@pytest.mark.parametrize("shape", [(3, 4), (4,)])
def test_no_batch_where_nothing_speaks_of_one(shape: tuple[int, ...]):
    function: Callable[..., Any] = plain if len(shape) == 2 else documented
    found: Iterator[Designed] = as_batch(op_of(function), sample(randn(*shape)))
    assert not list(found)


def test_float64_beside_float32():
    (found,) = in_double(op_of(plain), sample(randn(3, dtype=torch.float32)))
    assert found.must_run
    assert found.sample.args[0].dtype == torch.float64
    assert not list(in_double(op_of(plain), sample(randn(3))))


@pytest.mark.parametrize(
    ("function", "expected", "kind"),
    [
        (magnitude, False, "special"),
        (magnitude, True, "same"),
        (product_of_numbers, False, "same"),
    ],
)
def test_parts_of_complex_numbers_are_hardly_complex(
    function: Any, expected: bool, kind: str
) -> None:
    real = DOMAINS["real"]
    given = sample(randn(3), randn(3), x=real, y=real)
    (designed,) = as_complex(op_of(function), given, expected=expected)
    assert designed.sample.kind == kind


@pytest.mark.parametrize(("last", "expected", "made"), [(2, False, 0), (2, True, 1), (3, False, 1)])
def test_a_last_axis_of_two_holds_complex_numbers(last: int, expected: bool, made: int) -> None:
    given = sample(randn(4, last), x=DOMAINS["real"])
    assert len(list(as_complex(op_of(documented), given, expected=expected))) == made
