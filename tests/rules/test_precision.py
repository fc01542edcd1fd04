"""The dtype an op is judged in: what it takes, and what it computes in."""

from __future__ import annotations

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.experiments.judged_dtype import accepted, computes_in, outputs_in_float32
from gradlint.experiments.subject import Subject
from gradlint.model.events import CheckDone
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


def sample(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    value = torch.randn(shape, generator=generator, dtype=torch.float64)
    return Sample("test", "--inputs", (value.requires_grad_(),))


def casts(dtype):
    def op(x):
        return torch.tanh(x.to(dtype)).to(x.dtype)

    return op


def takes(*dtypes):
    def op(x):
        if x.dtype not in dtypes:
            raise RuntimeError("not that dtype")
        return x.sin()

    return op


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_cast_inside_is_seen(dtype):
    op, settings = from_object(casts(dtype)), Settings(seed=2)
    assert computes_in(Subject(op, sample(5, 6), settings).problem) == dtype
    chosen, note = accepted(op, sample(5, 6), settings)
    assert chosen.args[0].dtype == dtype
    assert note == f"the op casts its inputs to {dtype}; judged in {dtype}".replace("torch.", "")


@pytest.mark.parametrize(
    "op",
    [
        torch.sin,
        torch.sign,
        torch.round,
        torch.relu,
        lambda x: torch.round(x * 127) / 127,
        lambda x: torch.round(20 * x),
        lambda x: (x.float() + 1e4).sum(-1),
        lambda x: torch.tanh(x.float()).double(),
        lambda x: torch.zeros_like(x) * x,
        lambda x: x[:0],
    ],
)
def test_other_ops_cast_nothing(op):
    assert computes_in(Subject(from_object(op), sample(5, 6), Settings()).problem) is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_first_dtype_that_is_taken(dtype):
    chosen, note = accepted(from_object(takes(dtype)), sample(4), Settings())
    assert chosen.args[0].dtype == dtype
    assert ("refuses float64" in note) == (dtype != torch.float64)


def test_an_op_that_takes_nothing_keeps_its_sample():
    given = sample(4)
    assert accepted(from_object(takes()), given, Settings()) == (given, "")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_right_gradients_pass_and_wrong_ones_fail_in_the_dtype_inside(dtype):
    # Eight bits do not always resolve enough for a pass; they never fail what is right.
    right = {"pass", "inconclusive"}
    for factor, verdicts in ((1.0, right), (-1.0, {"fail"}), (3.0, {"fail"})):

        class Op(torch.autograd.Function):
            scale = factor

            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return torch.tanh(x.to(dtype)).to(x.dtype)

            @staticmethod
            def backward(ctx, grad_output):
                (x,) = ctx.saved_tensors
                return Op.scale * grad_output * (1 - torch.tanh(x) ** 2)

        checks = []

        def emit(event, checks=checks):
            if isinstance(event, CheckDone):
                checks.append(event.check)

        settings = Settings(seed=1, order=1, select=("GL401",))
        examine(from_object(Op), [sample(5, 6)], settings, emit)
        assert {check.verdict for check in checks} <= verdicts


@pytest.mark.parametrize(
    ("op", "names"),
    [
        (lambda x: x.float().exp().to(x.dtype), ["output"]),
        (lambda x: (x.exp(), x.float().exp().double()), ["output[1]"]),
        (lambda x: (x.float() * 3).sum(0).double(), ["output"]),
        (torch.exp, []),
        (torch.relu, []),
        (torch.sign, []),
        (lambda x: (9000 * x).round(), []),
        (lambda x: x.half().double(), []),
        (lambda x: x.float().exp(), []),
        (lambda x: x.sum().float().double(), []),
    ],
)
def test_outputs_that_are_numbers_of_float32(op, names):
    problem = Subject(from_object(op), sample(5, 7), Settings(seed=3)).problem
    assert outputs_in_float32(problem) == names


def test_inputs_that_are_numbers_of_float32_prove_nothing():
    given = Sample("s", "given", (torch.ones(5, 7).double().requires_grad_(),))
    problem = Subject(from_object(torch.relu), given, Settings()).problem
    assert outputs_in_float32(problem) == []
