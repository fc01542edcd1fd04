"""What goes in stays as it was, whatever happens; what can't be checked is refused clearly."""

from __future__ import annotations

import random

import numpy
import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import gradlint
from gradlint.dropin.failure import InconclusiveWarning
from tests.dropin.conftest import function, leaf, square, thrice


def _raising_at(number):
    count = [0]

    def fn(x):
        count[0] += 1
        if count[0] == number:
            raise RuntimeError(f"call {number}")
        return x * x

    return fn


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_an_exception_escapes_and_the_inputs_are_as_before(number):
    x = leaf(4)
    before = x.detach().clone()
    with pytest.raises(RuntimeError, match=f"call {number}"):
        gradlint.gradcheck(_raising_at(number), (x,))
    assert torch.equal(x, before)
    assert x._version == 0
    assert x.grad is None


def test_a_function_that_raises_beside_the_sample_raises_what_it_raises():
    x = leaf(4)
    before = x.detach().clone()

    def only_here(x):
        if not torch.equal(x, before):
            raise KeyError("only here")
        return x * x

    with pytest.raises(KeyError, match="only here"):
        gradlint.gradcheck(only_here, (x,))
    assert torch.equal(x, before)


@pytest.mark.usefixtures("conclusive")
def test_a_domain_that_ends_near_by_is_no_fault():
    def positive(x):
        if bool((x <= 0.01).any()):
            raise ValueError("outside the domain")
        return x.log()

    x = torch.tensor([0.0101, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert gradlint.gradcheck(positive, (x,))


@pytest.mark.parametrize("fn", [square, thrice, lambda x: x.data.mul_(2) * 0 + x])
def test_inputs_layout_and_random_state_stay(fn):
    x = leaf(4, 6).detach()[:, ::2].requires_grad_()
    before, stride = x.detach().clone(), x.stride()
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].copy()
    gradlint.gradcheck(fn, (x,), raise_exception=False)
    assert torch.equal(x, before)
    assert x.stride() == stride
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert (states[2] == numpy.random.get_state()[1]).all()


def test_the_function_gets_the_layout_of_the_inputs():
    seen = set()

    def fn(x):
        seen.add(x.stride())
        return x.sin()

    x = leaf(4, 6).detach()[:, ::2].requires_grad_()
    assert gradlint.gradcheck(fn, (x,), check_forward_ad=True)
    assert seen == {x.stride()}


def test_a_function_may_read_its_inputs_without_being_passed_them():
    module = torch.nn.Linear(3, 2).double()
    x = leaf(4, 3)
    assert gradlint.gradcheck(lambda *_: module(x), (x, *module.parameters()))
    assert gradlint.gradgradcheck(lambda *_: module(x) ** 2, (x, *module.parameters()))
    wrong = [thrice]
    assert not gradlint.gradcheck(lambda _: wrong[0](x), (x,), raise_exception=False)


def test_a_stochastic_function_leaves_the_generator_after_one_call():
    x = leaf(4)
    torch.manual_seed(5)
    torch.rand(())
    once = torch.get_rng_state()
    torch.manual_seed(5)
    assert gradlint.gradcheck(lambda x: x * torch.rand(()), (x,))
    assert torch.equal(torch.get_rng_state(), once)


REFUSED = {
    "nothing requires grad": (
        torch.sin,
        lambda: (leaf(3).detach(),),
        ValueError,
        "gradcheck expects at least one input tensor to require gradient",
    ),
    "no tensor": (lambda x: x, lambda: (3,), ValueError, "at least one input tensor"),
    "integers": (lambda x: x, lambda: (torch.arange(3),), ValueError, "at least one input tensor"),
    "expanded": (
        lambda x: x * 2,
        lambda: (torch.ones(1, dtype=torch.float64).expand(3).requires_grad_(),),
        RuntimeError,
        "The 0th input has a dimension with stride 0",
    ),
    "sparse output": (
        lambda x: x.to_sparse(),
        lambda: (leaf(3, 3),),
        ValueError,
        "Sparse output is not supported at gradcheck yet",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused_likewise(name):
    fn, inputs, error, text = REFUSED[name]
    for check in (gradlint.gradcheck, torch.autograd.gradcheck):
        for raise_exception in (True, False):
            with pytest.raises(error, match=text):
                check(fn, inputs(), raise_exception=raise_exception)


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (None, "output 0 of the function is not a tensor but None"),
        (3.5, "output 0 of the function is not a tensor but a float"),
        ({}, "output 0 of the function is not a tensor but a dict"),
        ((1, 2), "output 0"),
    ],
)
def test_outputs_that_are_no_tensors(returned, text):
    with pytest.raises(ValueError, match=text):
        gradlint.gradcheck(lambda x: returned, (leaf(3),))


def test_overlapping_memory_beyond_stride_0():
    x = torch.arange(5.0, dtype=torch.float64).as_strided((3, 3), (1, 1)).requires_grad_()
    with pytest.raises(RuntimeError, match="overlapping memory"):
        gradlint.gradcheck(lambda x: x * 2, (x,))
    y = torch.arange(12.0, dtype=torch.float64).as_strided((3, 2), (1, 6)).requires_grad_()
    assert gradlint.gradcheck(lambda x: x * 2, (y,))


def test_nothing_to_judge_is_said():
    with pytest.warns(InconclusiveWarning, match="judged nothing"):
        assert gradlint.gradcheck(lambda x: x.argmax(), (leaf(3),))


def test_what_cannot_be_told_is_said():
    oscillating = function(lambda x: torch.sin(1e12 * x), lambda s, g: 1e12 * torch.cos(s[0]) * g)
    x = leaf(3000)
    with pytest.warns(InconclusiveWarning, match="returns True although nothing was verified"):
        assert gradlint.gradcheck(oscillating, (x,))


def test_what_cannot_be_told_is_asked_of_torch():
    oscillating = function(lambda x: torch.sin(1e12 * x), lambda s, g: 1e12 * torch.cos(s[0]) * g)
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch(.|\n)*gradlint is inconclusive"):
        gradlint.gradcheck(oscillating, (leaf(5),))


def test_shapes_that_depend_on_values():
    def positives(x):
        return torch.cat([x, x[x > 0]]) * 2

    assert gradlint.gradcheck(positives, (leaf(5),))
    x = torch.tensor([1e-17, 1.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="same shape"):
        gradlint.gradcheck(positives, (x,))


def _mkldnn():
    return (torch.ones(3, 3).to_mkldnn().requires_grad_(),)


@pytest.mark.filterwarnings("error", "ignore:Input #0")
def test_layouts_that_only_torch_knows_are_delegated(caplog):
    caplog.set_level("INFO", "gradlint.dropin")

    def inputs():
        return _mkldnn()

    assert gradlint.gradcheck(lambda x: x.to_dense() * 2, inputs(), eps=0.1, atol=0.1)
    assert "torch's own gradcheck checks this, not gradlint: input 0 has the layout" in caplog.text
    with pytest.raises(GradcheckError, match=r"^Jacobian mismatch"):
        gradlint.gradcheck(lambda x: thrice(x.to_dense()), inputs(), eps=0.1, atol=0.1)
