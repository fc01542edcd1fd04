"""gradcheck: right functions pass, wrong ones fail with torch's words and the cause."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError

import gradlint
from gradlint.dropin._as_map import as_map
from gradlint.dropin._fast import unsettled
from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from tests.dropin.conftest import function, leaf, square, thrice

#: Among the first of them, three are known at which two directions alone would miss the error.
SEEDS = 120


def _zeroed(saved, g):
    grad = 2 * saved[0] * g
    grad[37] = 0.0
    return grad


def _ones_at_0(n=4):
    return torch.zeros(n, dtype=torch.float64, requires_grad=True)


#: name → function, inputs. Torch's gradcheck fails those marked so, though they are right.
RIGHT = {
    "square": (square, lambda: (leaf(5),)),
    "large": (square, lambda: (leaf(100, 100),)),
    "two inputs": (lambda a, b: a @ b, lambda: (leaf(3, 4), leaf(4, 2))),
    "list of inputs": (lambda a, b: a * b, lambda: [leaf(3), leaf(3, seed=4)]),
    "one tensor alone": (square, lambda: leaf(3)),
    "the same tensor twice": (lambda a, b: a * b, lambda: (leaf(3),) * 2),
    "other arguments": (
        lambda a, name, n: a.sum() * n if name == "sum" else a,
        lambda: (leaf(3), "sum", 2),
    ),
    "frozen input": (lambda a, b: a * b, lambda: (leaf(3).detach(), leaf(3))),
    "unused input": (lambda a, b: a * 2, lambda: (leaf(3), leaf(3, seed=4))),
    "integer output beside": (lambda a: (a * 2, a.argmax()), lambda: (leaf(3),)),
    "detached output beside": (lambda a: (a * 2, a.detach() * 3), lambda: (leaf(3),)),
    "empty": (lambda a: a * 2, lambda: (leaf(0),)),
    "complex": (lambda z: z * z, lambda: (leaf(4, dtype=torch.complex128),)),
    "complex to real": (lambda z: z.abs(), lambda: (leaf(4, dtype=torch.complex128),)),
    "non-leaf": (lambda a: a.sin(), lambda: (leaf(4) * 2,)),
    "float32": (square, lambda: (leaf(50, dtype=torch.float32),)),  # torch fails it
    "float16": (square, lambda: (leaf(50, dtype=torch.float16),)),  # torch fails it
    "bfloat16": (square, lambda: (leaf(50, dtype=torch.bfloat16),)),  # torch fails it
    "relu at 0": (torch.relu, lambda: (_ones_at_0(),)),  # torch fails it
    "abs at 0": (torch.abs, lambda: (_ones_at_0(),)),
    "dropout": (torch.nn.Dropout(0.5), lambda: (leaf(20),)),  # torch fails it
    "Cholesky factor": (  # torch fails it
        torch.linalg.cholesky,
        lambda: (torch.eye(3, dtype=torch.float64).add(0.2).requires_grad_(),),
    ),
    "masked with infinity": (  # torch fails it
        lambda a: a.masked_fill(torch.tensor([True, False, False]), -float("inf")),
        lambda: (leaf(3),),
    ),
    "small values": (torch.log, lambda: (leaf(3).abs().detach().mul(1e-5).requires_grad_(),)),
    "two inputs in one memory": (lambda a, b: a * b, lambda: (x := leaf(3), x.detach())),
    "nested inputs": (lambda pair: pair[0] * pair[1], lambda: ([leaf(3), leaf(3, seed=4)],)),
}


@pytest.mark.usefixtures("conclusive")
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_function_passes(name):
    fn, inputs = RIGHT[name]
    assert gradlint.gradcheck(fn, inputs()) is True
    assert gradlint.gradcheck(fn, inputs(), fast_mode=True) is True


MISMATCH = r"Jacobian mismatch for output 0 with respect to input 0,"

#: name → function, inputs, patterns of the message.
WRONG = {
    "factor": (thrice, lambda: (leaf(5),), [f"^{MISMATCH}", r"scaled: .* 2/3 agrees"]),
    "factor, large": (thrice, lambda: (leaf(10_000),), [f"^{MISMATCH}", "scaled"]),
    "factor, small": (
        function(lambda x: x * x, lambda s, g: 2.01 * s[0] * g),
        lambda: (leaf(5),),
        [f"^{MISMATCH}"],
    ),
    "factor, float32": (
        thrice,
        lambda: (leaf(50, dtype=torch.float32),),
        [f"^{MISMATCH}", "scaled"],
    ),
    "factor, bfloat16": (thrice, lambda: (leaf(50, dtype=torch.bfloat16),), [f"^{MISMATCH}"]),
    "one element of 1000": (
        function(lambda x: x * x, _zeroed),
        lambda: (leaf(1000),),
        [f"^{MISMATCH}", r"one-element: only element \[37\]", r"\[37\]"],
    ),
    "transposed": (
        function(lambda x, w: x @ w, lambda s, g: (g @ s[1].mT, g.mT @ s[0])),
        lambda: (leaf(3, 3), leaf(3, 3, seed=4)),
        [r"^Jacobian mismatch for output 0 with respect to input 1,", "transposed"],
    ),
    "every pair": (
        function(lambda x, y: (x * y, x + y), lambda s, a, b: (2 * a * s[1] + b, a * s[0] + 2 * b)),
        lambda: (leaf(3), leaf(3, seed=4)),
        [
            r"^Jacobian mismatch for output 0 with respect to input 0,",
            r"\nJacobian mismatch for output 1 with respect to input 1,",
        ],
    ),
    "input numbers as torch's": (
        function(lambda x, y: x * y, lambda s, g: (None, 2 * g * s[0])),
        lambda: (leaf(3).detach(), leaf(3, seed=4)),
        [f"^{MISMATCH}", r"argument 1"],
    ),
    "complex": (
        function(lambda z: z * z, lambda s, g: 2 * s[0] * g),
        lambda: (leaf(4, dtype=torch.complex128),),
        [f"^While considering the imaginary part of complex outputs only, {MISMATCH}", "conjugate"],
    ),
    "None": (function(lambda x: x * x, lambda s, g: None), lambda: (leaf(3),), [f"^{MISMATCH}"]),
    "NaN": (
        function(lambda x: x * x, lambda s, g: g * float("nan")),
        lambda: (leaf(3),),
        [f"^{MISMATCH}", r"the gradient of input 0 is nan at index \[0\] \(3 of 3"],
    ),
    "NaN output": (torch.sqrt, lambda: (leaf(5),), [f"^{MISMATCH}", r"output 0 is nan at index"]),
    "detached": (
        lambda a: a.detach() * 3,
        lambda: (leaf(3),),
        [r"^Numerical gradient for function expected to be zero", "detach"],
    ),
    "random backward": (
        function(lambda x: x * x, lambda s, g: 2 * s[0] * g * (1 + 1e-12 * torch.rand_like(g))),
        lambda: (leaf(3),),
        [r"^Backward is not reentrant", "tolerance for nondeterminism was 0.0"],
    ),
    "backward changes what it gets": (
        function(lambda x: x * 2, lambda s, g: g.mul_(2)),
        lambda: (leaf(3),),
        [r"^Backward is not reentrant", "changes the incoming gradient of output 0 in place"],
    ),
    "ignores grad_output": (
        function(lambda x: x * x, lambda s, g: 2 * s[0]),
        lambda: (leaf(3),),
        [f"^{MISMATCH}", "ignores-grad-output", "backward not multiplied by grad_output"],
    ),
    "more than grad_output": (
        function(lambda x: x * x, lambda s, g: 2 * s[0] * g + 1e-9),
        lambda: (leaf(3),),
        [r"backward not multiplied by grad_output"],
    ),
    "in place, unknown to autograd": (
        lambda a: a.data.add_(1) * 0 + a * a,
        lambda: (leaf(3),),
        [r"Input 0 is changed in place by the function"],
    ),
    "only when alone": (
        function(
            lambda x: (x * 2, x * 3),
            lambda s, a, b: 2 * a + 3 * b if bool(a.any()) else torch.zeros_like(s[0]),
        ),
        lambda: (leaf(3),),
        [r"^Jacobian mismatch for output 1 with respect to input 0,", "only output 1 does"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_fails_and_says_why(name):
    fn, inputs, patterns = WRONG[name]
    with pytest.raises(GradcheckError) as caught:
        gradlint.gradcheck(fn, inputs())
    for pattern in patterns:
        assert caught.match(pattern)
    assert caught.match("GRADLINT_SEED=20 repeats it")
    for fast in (False, True):
        assert gradlint.gradcheck(fn, inputs(), raise_exception=False, fast_mode=fast) is False


@pytest.mark.parametrize("name", ["factor", "transposed", "complex", "None", "detached"])
def test_torch_raises_the_same(name):
    fn, inputs, patterns = WRONG[name]
    with pytest.raises(GradcheckError, match=patterns[0]):
        torch.autograd.gradcheck(fn, inputs())


def test_a_function_is_sensitive_to_every_element():
    """The dead bands of torch's fast mode: it passes these."""
    x = leaf(1000)
    wrong = function(lambda x: x * x, _zeroed)
    assert torch.autograd.gradcheck(wrong, (x,), fast_mode=True)
    for fast in (False, True):
        assert not gradlint.gradcheck(wrong, (x,), raise_exception=False, fast_mode=fast)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("count", [100, 10_000])
def test_fast_mode_sees_one_wrong_element_at_any_scale(count, scale):
    """Its sign flipped, or half of it missing."""

    def spoiled(factor):
        def backward(saved, g):
            grad = 2 * saved[0] * g
            grad[count // 3] *= factor
            return grad

        return function(lambda x: x * x, backward)

    x = (leaf(count).detach() * scale).requires_grad_()
    with torch.no_grad():
        x[count // 3] = 2.0 * scale
    options = {"fast_mode": True, "raise_exception": False, "atol": 1e-5 * min(scale, 1.0)}
    assert gradlint.gradcheck(spoiled(1.0), (x,), **options)
    assert not gradlint.gradcheck(spoiled(-1.0), (x,), **options)
    assert not gradlint.gradcheck(spoiled(0.5), (x,), **options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fast_mode_sees_errors_that_cancel_along_one_direction(dtype):
    """Along signs, two equal errors cancel for every second seed. A right gradient takes no call
    more for that."""
    for error, kept in ((1e-2, [0]), (0.0, [])):
        op = function(lambda x: x * 1, lambda _, g, error=error: g + error)
        checked = Function(op, (torch.ones(2, dtype=dtype, requires_grad=True),), masked=False)
        checked.start()
        judged = as_map(checked)
        before = checked.forward_calls
        assert all(unsettled(judged, _fast(seed)) == kept for seed in range(SEEDS))
        if not error:
            assert checked.forward_calls - before == 4 * SEEDS
        checked.restore()


def _fast(seed):
    gradcheck_defaults = (1e-6, 1e-5, 1e-3, 0.0, False, False, False, False, False, True)
    return Options("gradcheck", *gradcheck_defaults, True, None, seed)


def test_undefined_gradients():
    class Unguarded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if g is None:
                raise RuntimeError("no gradient given")
            return 2 * g

    with pytest.raises(GradcheckError, match=r"^Expected backward function to handle undefined"):
        gradlint.gradcheck(Unguarded.apply, (leaf(3),))
    assert gradlint.gradcheck(Unguarded.apply, (leaf(3),), check_undefined_grad=False)

    class Ones(Unguarded):
        @staticmethod
        def backward(ctx, g):
            return torch.ones(3, dtype=torch.float64) if g is None else 2 * g

    with pytest.raises(GradcheckError, match=r"^Expected all input grads to be undefined or zero"):
        gradlint.gradcheck(Ones.apply, (leaf(3),))


def test_batched_gradients():
    through_numpy = function(
        lambda x: x * x, lambda s, g: 2 * s[0] * torch.from_numpy(g.numpy().copy())
    )
    assert gradlint.gradcheck(through_numpy, (leaf(3),))
    assert gradlint.gradcheck(square, (leaf(3),), check_batched_grad=True)
    with pytest.raises(
        GradcheckError, match="gradcheck or gradgradcheck failed while testing batched gradient"
    ):
        gradlint.gradcheck(through_numpy, (leaf(3),), check_batched_grad=True)
