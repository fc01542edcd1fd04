"""GL601, GL602, GL603, GL605 and GL610: what a forward and its backwards leave as it was."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch.autograd import Function

from gradlint.experiments.state.guarded_run import declared_writes, make_guarded, same_values
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.rules.state.grad_output_mutated import RULE as GL602
from gradlint.rules.state.input_mutated import RULE as GL601
from gradlint.rules.state.rng_differs_between_passes import RULE as GL610
from gradlint.rules.state.saved_tensor_mutated import RULE as GL603
from gradlint.rules.state.second_backward_differs import RULE as GL605

Probed = Callable[..., Outcome]

X = torch.tensor([0.7, -1.3, 2.1])


def op(forward: Callable[..., Any], backward: Callable[..., Any]) -> type:
    """A Function with ``forward(ctx, *args)`` and ``backward(ctx, grad)``."""
    return type(
        "Op", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


class Packed(torch.Tensor):
    """A tensor of the user's own that refuses all that is done with its values."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if "detach" in str(function):
            return args[0]
        raise NotImplementedError(str(function))


def test_a_tensor_that_refuses_to_be_compared_counts_as_unchanged() -> None:
    packed = torch.Tensor._make_wrapper_subclass(Packed, (3,), dtype=torch.float32)
    assert same_values(packed, torch.zeros(3))
    assert not same_values(packed, torch.zeros(4))
    assert not same_values(torch.ones(3), torch.zeros(3))


def sine(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    ctx.save_for_backward(x)
    return x.sin()


def cosine(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    (x,) = ctx.saved_tensors
    return grad * x.cos()


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(finding.severity, finding.message) for finding in outcome.findings]


# -- GL601 -----------------------------------------------------------------------------------------


def doubled(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    return x.mul_(2).clone()


def doubled_silently(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    array = x.detach().numpy()
    numpy.multiply(array, 2, out=array)
    return x.clone()


def doubled_declared(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    ctx.mark_dirty(x)
    return x.mul_(2)


def twice(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


@pytest.mark.parametrize("forward", [doubled, doubled_silently])
def test_input_written_to_is_found(probed: Probed, forward: Any) -> None:
    outcome = probed(GL601, op(forward, twice), X)
    assert outcome.verdict == "fail"
    assert told(outcome) == [
        ("error", "forward writes to `x` without declaring it: 3 of 3 elements changed")
    ]
    assert outcome.findings[0].evidence["elements"][0]["returned"] == pytest.approx(4.2)
    assert outcome.findings[0].evidence["elements"][0]["expected"] == pytest.approx(2.1)


def test_write_past_the_version_counter_is_told_as_such(probed: Probed) -> None:
    (finding,) = probed(GL601, op(doubled_silently, twice), X).findings
    assert "version counter" in finding.cause_text


def test_declared_writes_pass(probed: Probed) -> None:
    assert told(probed(GL601, op(doubled_declared, twice), X)) == []
    assert told(probed(GL601, lambda x: x.mul_(2), X)) == []
    assert told(probed(GL601, torch.nn.ReLU(inplace=True), X)) == []


def test_integer_argument_written_to_is_found(probed: Probed) -> None:
    def forward(ctx: Any, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        index.remainder_(3)
        ctx.save_for_backward(index.clone())
        return x[index]

    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (index,) = ctx.saved_tensors
        return grad.new_zeros(3).index_add(0, index, grad), None

    outcome = probed(GL601, op(forward, backward), X, torch.tensor([-1, 0]))
    assert outcome.findings[0].input == "index"
    assert outcome.findings[0].severity == "error"


def test_running_statistics_pass(probed: Probed) -> None:
    norm = torch.nn.BatchNorm1d(3)
    assert probed(GL601, norm, torch.randn(5, 3)).findings == []

    def forward(ctx: Any, x: torch.Tensor, running_mean: torch.Tensor) -> torch.Tensor:
        running_mean.add_(x.mean())
        return x * 2

    function = op(forward, lambda ctx, grad: (grad * 2, None))
    x = X.clone().requires_grad_()
    assert [s for s, _ in told(probed(GL601, function, x, torch.zeros(3)))] == ["info"]


def test_weights_renormalised_in_sight_are_a_warning(probed: Probed) -> None:
    embedding = torch.nn.Embedding(5, 3, max_norm=0.1)
    (finding,) = probed(GL601, embedding, torch.tensor([0, 3])).findings
    assert (finding.severity, finding.input) == ("warning", "weight")


def test_mask_written_to_in_backward_is_found(probed: Probed) -> None:
    masks = []

    def forward(ctx: Any, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        masks[:] = [mask]
        ctx.save_for_backward(mask.clone())
        return x * mask

    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        masks[0].logical_not_()
        return grad * ctx.saved_tensors[0], None

    (finding,) = probed(GL601, op(forward, backward), X, torch.tensor([True, False, True])).findings
    assert finding.message == "backward writes to `mask`: 3 of 3 elements changed"


def test_memory_of_the_input_as_output(probed: Probed) -> None:
    hidden = op(lambda ctx, x: x.detach(), lambda ctx, grad: grad)
    (finding,) = probed(GL601, hidden, X).findings
    assert finding.severity == "error"
    assert "shares memory with `x` without declaring it" in finding.message
    # A further output without elements, which only orders what runs, hides nothing.
    forked = op(lambda ctx, x: (x.detach(), torch.empty(0)), lambda ctx, grad, _: grad)
    (finding,) = probed(GL601, forked, X).findings
    assert "`output[0]` shares memory with `x`" in finding.message
    apart = op(lambda ctx, x: (x.clone(), torch.empty(0)), lambda ctx, grad, _: grad)
    assert probed(GL601, apart, X).findings == []
    view = op(lambda ctx, x: x.view(3, 1), lambda ctx, grad: grad.view(3))
    (finding,) = probed(GL601, view, X).findings
    assert finding.severity == "info"
    assert probed(GL601, view, X).verdict == "pass"
    for right in (lambda x: x.view(3, 1), lambda x: x, lambda x: x[1:], torch.real):
        assert probed(GL601, right, X).findings == []


def test_schema_declares_writes(probed: Probed) -> None:
    from gradlint.targets.build import from_object

    assert declared_writes(from_object(torch.ops.aten.add_.Tensor)) == {"self"}
    assert declared_writes(from_object(torch.ops.aten.mul)) <= {"out"}
    assert declared_writes(from_object(torch.mul)) == set()


def test_intermediate_written_to_by_a_function_inside(probed: Probed) -> None:
    def inside(forward: Any) -> Any:
        inner = op(forward, twice)
        return lambda x: inner.apply(x.sin()) + 1

    outcome = probed(GL601, inside(doubled), X)
    assert told(outcome) == [
        ("warning", "forward of Op writes to `x` without declaring it: 3 of 3 elements changed")
    ]
    assert probed(GL601, inside(doubled_declared), X).findings == []
    assert len(probed(GL601, lambda x: op(doubled, twice).apply(x), X).findings) == 1


def with_grad(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    (x,) = ctx.saved_tensors
    x.grad = cosine(ctx, grad)
    return x.grad


def with_grad_of_a_copy(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    (x,) = ctx.saved_tensors
    with torch.enable_grad():
        own = x.detach().requires_grad_()
        torch.autograd.backward(own.sin(), grad)
    return own.grad


def with_grad_only(ctx: Any, grad: torch.Tensor) -> None:
    (x,) = ctx.saved_tensors
    x.grad = cosine(ctx, grad)


def test_a_gradient_left_in_grad_beside_the_one_returned(probed: Probed) -> None:
    (finding,) = probed(GL601, op(sine, with_grad), X).findings
    assert (finding.severity, finding.input) == ("error", "x")
    assert "writes to `x.grad` itself" in finding.message
    assert finding.location is not None
    assert finding.location.line == with_grad.__code__.co_firstlineno + 2
    x = X.clone().requires_grad_()
    op(sine, with_grad).apply(x).sum().backward()
    assert torch.allclose(x.grad, 2.0 * X.cos())  # the harm that the finding speaks of


@pytest.mark.parametrize("backward", [with_grad_of_a_copy, with_grad_only])
def test_a_gradient_that_arrives_once_passes(probed: Probed, backward: Any) -> None:
    assert told(probed(GL601, op(sine, backward), X)) == []


# -- GL602 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "backward",
    [
        lambda ctx, grad: grad.mul_(ctx.saved_tensors[0].cos()),
        lambda ctx, grad: grad.contiguous().mul_(ctx.saved_tensors[0].cos()),
        lambda ctx, grad: torch.mul(grad, ctx.saved_tensors[0].cos(), out=grad),
        lambda ctx, grad: grad.data.view(-1).mul_(ctx.saved_tensors[0].cos()),
    ],
)
def test_grad_output_written_to_is_found(probed: Probed, backward: Any) -> None:
    (finding,) = probed(GL602, op(sine, backward), X).findings
    assert finding.message == "backward writes to grad_output of `output`: 3 of 3 elements changed"
    assert finding.severity == "error"


def test_grad_output_of_a_function_inside_is_watched(probed: Probed) -> None:
    inner = op(sine, lambda ctx, grad: grad.mul_(ctx.saved_tensors[0].cos()))
    (finding,) = probed(GL602, lambda x: inner.apply(x).square(), X).findings
    assert "grad_outputs[0] of Op" in finding.message


def test_grad_output_left_alone_passes(probed: Probed) -> None:
    assert probed(GL602, op(sine, cosine), X).verdict == "pass"
    copied = op(sine, lambda ctx, grad: grad.clone().mul_(ctx.saved_tensors[0].cos()))
    assert probed(GL602, copied, X).verdict == "pass"


def holders(grad: torch.Tensor) -> int:
    """How many hold a gradient, this call among them."""
    return sys.getrefcount(grad)


def within_a_network() -> int:
    """How many hold a gradient that the engine computes within a network."""
    counts: list[int] = []

    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        counts.append(holders(grad))
        return grad

    function: Any = op(lambda ctx, x: x.clone(), backward)
    (function.apply(torch.ones(2, requires_grad=True)) * 2.0).sum().backward()
    return counts[0]


#: The same, found anew before each test: where torch.compile has replaced the interpreter's frame
#: evaluation (PEP 523), each call of a Python function holds its arguments once more.
HOLDERS: list[int] = []


@pytest.fixture(autouse=True)
def _holders() -> None:
    HOLDERS[:] = [within_a_network()]


def owned_alone(grad: torch.Tensor) -> bool:
    """Whether nobody else seems to use a gradient: counted is one holder too many, which is the
    branch beside it."""
    return sys.getrefcount(grad) <= HOLDERS[0] + 1


def reuses_its_gradient(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
    (x,) = ctx.saved_tensors
    return grad.mul_(x.cos()) if owned_alone(grad) else grad * x.cos()


def test_gradient_that_looks_unused_but_is_shared_is_found(probed: Probed) -> None:
    (finding,) = probed(GL602, op(sine, reuses_its_gradient), X).findings
    assert finding.severity == "error"
    assert finding.message == ("the gradient for `x` changes in a residual connection, `x + op(x)`")
    row = finding.evidence["elements"][0]
    (index,) = row["index"]
    # What came in, v, was overwritten by v·cos x before it was added: 2·v·cos x for v·(1 + cos x).
    slope = math.cos(X[index].item())
    assert row["returned"] / row["expected"] == pytest.approx(2 * slope / (1 + slope), rel=1e-6)
    assert finding.evidence["differing"] == 3


def test_the_second_of_two_inputs_may_be_the_branch(probed: Probed) -> None:
    def forward(ctx: Any, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(weight, x)
        return weight.sum() * x.sin()

    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        weight, x = ctx.saved_tensors
        total = (grad * x.sin()).sum().expand_as(weight)
        slope = weight.sum() * x.cos()
        return total, grad.mul_(slope) if owned_alone(grad) else grad * slope

    (finding,) = probed(GL602, op(forward, backward), torch.ones(2, 2), X).findings
    assert finding.input == "x"
    assert "`x + op(x)`" in finding.message


def test_backward_that_raises_beside_a_branch_is_found(probed: Probed) -> None:
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        if owned_alone(grad):
            raise ValueError("nobody holds grad_output")
        return cosine(ctx, grad)

    (finding,) = probed(GL602, op(sine, backward), X).findings
    assert finding.message.startswith("backward raises in a residual connection, `x + op(x)`:")


@pytest.mark.parametrize(
    "function",
    [
        op(sine, lambda ctx, grad: grad.clone().mul_(ctx.saved_tensors[0].cos())),
        op(lambda ctx, x: x.clone(), lambda ctx, grad: grad),  # hands on the very tensor
        op(lambda ctx, x: x.view_as(x), lambda ctx, grad: grad.view_as(grad)),
        op(sine, lambda ctx, grad: 3 * grad),  # wrong, but the same in the residual use: GL401
        op(sine, lambda ctx, grad: None),
        lambda x: x.mul_(2),
        torch.nn.ReLU(inplace=True),
    ],
)
def test_right_and_wrong_gradients_beside_a_branch_pass(probed: Probed, function: Any) -> None:
    assert probed(GL602, function, X).verdict == "pass"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64])
def test_rounding_of_the_sum_passes(subject: Callable[..., Subject], dtype: torch.dtype) -> None:
    x = torch.linspace(-3, 3, 1001).to(dtype).requires_grad_()
    bound = subject(lambda x: (x.sin() * 1e-3).cumsum(0), x, dtype=dtype)
    assert GL602.probe is not None
    assert GL602.probe(bound).verdict == "pass"
    assert bound.once(make_guarded).added == {"output": 0}


def test_sparse_gradients_are_added_to_dense_ones(probed: Probed) -> None:
    def looked_up(weight: torch.Tensor) -> torch.Tensor:
        index = torch.tensor([2, 0, 2])
        return torch.nn.functional.embedding(index, weight, sparse=True)

    assert probed(GL602, looked_up, torch.ones(3, 4)).verdict == "pass"


def test_outputs_of_another_shape_take_no_call_more(subject: Callable[..., Subject]) -> None:
    def calls(function: Callable[..., Any]) -> int:
        bound = subject(function, X)
        assert GL602.probe is not None
        assert GL602.probe(bound).verdict == "pass"
        return bound.problem.backward_calls

    assert calls(lambda x: x.sin()) == calls(lambda x: x.sin()[:2]) + 1


# -- GL603 -----------------------------------------------------------------------------------------


def test_saved_tensor_written_to_is_found(probed: Probed) -> None:
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x.cos())
        return x.sin()

    spoiled = op(forward, lambda ctx, grad: ctx.saved_tensors[0].mul_(grad))
    (finding,) = probed(GL603, spoiled, X).findings
    assert finding.message.startswith("backward writes to saved_tensors[0]: 3 of 3")
    kept = op(forward, lambda ctx, grad: ctx.saved_tensors[0] * grad)
    assert probed(GL603, kept, X).verdict == "pass"


def test_saved_input_written_to_is_named(probed: Probed) -> None:
    function = op(sine, lambda ctx, grad: grad * ctx.saved_tensors[0].data.cos_())
    (finding,) = probed(GL603, function, X).findings
    assert "the saved input `x`" in finding.message
    assert finding.input == "x"
    assert probed(GL601, function, X).findings == []  # told once


def test_output_kept_past_the_version_check_is_found(probed: Probed) -> None:
    def hides(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        ctx.save_for_backward(y.data)
        return y

    def saves(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def times(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.saved_tensors[0]

    (finding,) = probed(GL603, op(hides, times), X).findings
    assert "after an in-place operation on the output" in finding.message
    assert probed(GL603, op(saves, times), X).verdict == "pass"


# -- GL605 -----------------------------------------------------------------------------------------


def test_second_backward(probed: Probed) -> None:
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.left = 1
        return sine(ctx, x)

    def once(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        ctx.left, left = 0, ctx.left
        return cosine(ctx, grad) * left

    def deletes(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        del ctx.left
        return cosine(ctx, grad)

    (finding,) = probed(GL605, op(forward, once), X).findings
    assert finding.severity == "error"
    assert finding.evidence["elements"][0]["returned"] == 0.0
    (finding,) = probed(GL605, op(forward, deletes), X).findings
    assert finding.severity == "warning"
    assert "AttributeError" in finding.message
    assert probed(GL605, op(forward, cosine), X).verdict == "pass"


# -- GL610 -----------------------------------------------------------------------------------------


def masked(ctx: Any, x: torch.Tensor) -> torch.Tensor:
    mask = torch.rand(x.shape) > 0.5
    ctx.save_for_backward(mask)
    return x * mask


LONG = torch.linspace(-1.0, 1.0, 40)


def test_random_numbers_in_backward(probed: Probed) -> None:
    fresh = op(masked, lambda ctx, grad: grad * (torch.rand(grad.shape) > 0.5))
    saved = op(masked, lambda ctx, grad: grad * ctx.saved_tensors[0])
    assert [f.severity for f in probed(GL610, fresh, LONG).findings] == ["error"]
    assert probed(GL605, fresh, LONG).verdict == "pass"  # the same seed, the same mask
    assert probed(GL610, saved, LONG).verdict == "pass"
    assert probed(GL610, torch.nn.Dropout(0.5), LONG).verdict == "pass"


def test_random_estimate_is_a_warning(probed: Probed) -> None:
    estimate = op(lambda ctx, x: x * 2, lambda ctx, grad: 4 * grad * (torch.rand(grad.shape) > 0.5))
    assert [f.severity for f in probed(GL610, estimate, LONG).findings] == ["warning"]


def test_backward_that_brings_its_seed_back_passes(probed: Probed) -> None:
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.seed = int(torch.randint(1000, ()))
        return x * mask(ctx.seed, x)

    def mask(seed: int, like: torch.Tensor) -> torch.Tensor:
        return torch.rand(like.shape, generator=torch.Generator().manual_seed(seed)) > 0.5

    function = op(forward, lambda ctx, grad: grad * mask(ctx.seed, grad))
    assert probed(GL610, function, LONG).verdict == "pass"


# -- all -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [GL602, GL603, GL605, GL610], ids=lambda rule: rule.code)
def test_ops_that_raise_or_have_no_gradient_are_skipped(probed: Probed, rule: Any) -> None:
    def fails(ctx: Any, *args: Any) -> Any:
        raise ValueError("no")

    assert "GL003" in probed(rule, op(fails, cosine), X).note
    assert "GL004" in probed(rule, op(sine, fails), X).note
    assert probed(rule, lambda x: x > 0, X).verdict == "skipped"


def test_the_run_is_shared(subject: Callable[..., Subject]) -> None:
    bound = subject(op(sine, cosine), X)
    for rule in (GL601, GL602, GL603, GL605, GL610):
        assert rule.probe is not None
        assert rule.probe(bound).verdict == "pass"
    # The shared run: 2 calls, with a look at what is saved; 3 for the baseline; guard; in place.
    assert bound.problem.forward_calls == 7
    assert bound.problem.backward_calls == 8


def test_samples_are_never_handed_out(subject: Callable[..., Subject]) -> None:
    bound = subject(op(doubled_silently, twice), X)
    assert isinstance(bound.sample, Sample)
    assert GL601.probe is not None
    GL601.probe(bound)
    assert bound.problem.values()[0].tolist() == pytest.approx([0.7, -1.3, 2.1])
