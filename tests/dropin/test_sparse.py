"""Sparse inputs: only what is specified, or every element, as ``masked`` says."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import gradlint
from gradlint.dropin._function import SparseInput
from gradlint.trace.sparse import Pattern
from tests.dropin.conftest import function, thrice

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def _dense(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.where(drawn.abs() < 0.7, torch.zeros_like(drawn), drawn)


def _rows(*shape):
    """Whole rows of zeros, for layouts with dense axes."""
    return _dense(*shape) * (torch.arange(shape[1]) % 2).reshape(1, -1, 1)


LAYOUTS = {
    "coo": lambda: _dense(4, 6).to_sparse(),
    "coo, one sparse axis": lambda: _rows(4, 6, 3).to_sparse(1),
    "coo, dense axis": lambda: _rows(4, 6, 3).to_sparse(2),
    "csr": lambda: _dense(4, 6).to_sparse_csr(),
    "csc": lambda: _dense(4, 6).to_sparse_csc(),
    "bsr": lambda: _dense(4, 6).to_sparse_bsr((2, 3)),
    "bsc": lambda: _dense(4, 6).to_sparse_bsc((2, 3)),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("masked", [True, False])
def test_a_sparse_tensor_and_its_dense_form(name, masked):
    made = LAYOUTS[name]()
    given = SparseInput(made, masked)
    assert torch.equal(given.value, made.to_dense())
    again = given.tensor(given.value)
    assert again.layout == made.layout
    assert torch.equal(again.to_dense(), made.to_dense())
    count = Pattern(made).values.numel() if masked else made.to_dense().numel()
    assert Pattern(again).values.numel() == count
    moved = torch.arange(1.0, 1 + given.value.numel(), dtype=torch.float64)
    moved = moved.reshape(given.value.shape)
    kept = moved if given.pattern is None else moved * given.pattern
    assert torch.equal(given.tensor(moved).to_dense(), kept)


@pytest.mark.usefixtures("conclusive")
@pytest.mark.parametrize("name", ["coo", "csr", "csc"])
@pytest.mark.parametrize("masked", [True, False])
def test_right_and_wrong(name, masked):
    def leaf():
        return LAYOUTS[name]().requires_grad_()

    def right(x):
        return x.to_dense(masked_grad=masked) ** 2

    def wrong(x):
        return thrice(x.to_dense(masked_grad=masked))

    assert gradlint.gradcheck(right, (leaf(),), masked=masked)
    assert torch.autograd.gradcheck(right, (leaf(),), masked=masked)
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0"):
        gradlint.gradcheck(wrong, (leaf(),), masked=masked)


def test_masked_gradients_are_wrong_where_every_element_counts():
    def fn(x):
        return torch.sparse.mm(x, torch.ones(6, 2, dtype=torch.float64), "sum")

    leaf = LAYOUTS["csr"]().requires_grad_()
    for check in (gradlint.gradcheck, torch.autograd.gradcheck):
        assert check(fn, (leaf,), masked=True)
        with pytest.raises(GradcheckError, match=r"^Jacobian mismatch for output 0"):
            check(fn, (leaf,))


def test_a_gradient_of_another_layout_is_told():
    dense_grad = function(lambda x: x.to_dense() * 2, lambda s, g: 2 * g)
    leaf = LAYOUTS["coo"]().requires_grad_()
    assert gradlint.gradcheck(dense_grad, (leaf,))


def _fifth(dtype, values=(0.0, 0.5, 0.0, 0.7, 0.0)):
    return torch.tensor(values, dtype=dtype).to_sparse().requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("fast", [True, False])
def test_a_masked_gradient_fails_unmasked_in_every_dtype(dtype, fast):
    """Backward at the sample leaves three of five elements out, elsewhere it would not. (Torch's
    fast mode passes it.)"""
    low = dtype == torch.float32
    options = {"raise_exception": False, **({"eps": 1e-2, "atol": 1e-2} if low else {})}
    homes = (gradlint,) if fast else (gradlint, torch.autograd)
    for home in homes:
        for fn, masked, right in (
            (lambda x: x.to_dense(), True, True),
            (lambda x: x.to_dense(), False, False),
            (lambda x: x.to_dense(masked_grad=False), False, True),
            (lambda x: (x.to_dense(masked_grad=False) + 1) ** 2, False, True),
        ):
            inputs = (_fifth(dtype),)
            assert home.gradcheck(fn, inputs, masked=masked, fast_mode=fast, **options) is right


@pytest.mark.parametrize("seed", range(10))
def test_no_masked_gradient_passes_unmasked_in_float32(seed):
    values = _dense(3 + seed, seed=seed).float()
    values[0] = 0.0
    values[1] = 1.5
    options = {"masked": False, "raise_exception": False, "eps": 1e-2, "atol": 1e-2}
    for fn, right in (
        (lambda x: x.to_dense(), False),
        (lambda x: x.to_dense(masked_grad=False), True),
    ):
        assert gradlint.gradcheck(fn, (values.to_sparse().requires_grad_(),), **options) is right


def test_unmasked_float32_at_torchs_defaults_is_torchs_verdict():
    """PyTorch's own test of what gradcheck makes of its inputs expects this."""
    x = torch.linspace(0.11, 0.97, 10).requires_grad_().to_sparse()
    for check in (gradlint.gradcheck, torch.autograd.gradcheck):
        assert check(lambda x: x.to_dense(), (x,), atol=0.1, masked=True)
        assert check(lambda x: x.to_dense(masked_grad=False), (x,), atol=0.1, masked=False)
        assert not check(lambda x: x.to_dense(), (x,), masked=False, raise_exception=False)
