"""GL110: inputs that do not require grad, and one tensor passed for two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.contract.requires_grad_subsets import MOST, subsets
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code
from gradlint.rules.contract.gradients_depend_on_requires_grad import RULE

Probed = Callable[..., Outcome]

A = torch.tensor([0.7, -1.3, 2.1])
B = torch.tensor([1.1, 0.4, -0.8])


def product(backward: Callable[..., Any], forward: Callable[..., None] | None = None) -> type:
    """(a, b) ↦ a·b with the given ``backward(ctx, a, b, grad)``."""

    class Op(Function):
        @staticmethod
        def forward(ctx, a, b):
            if forward is not None:
                forward(ctx, a, b)
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad):
            return backward(ctx, *ctx.saved_tensors, grad)

    return Op


def right(ctx: Any, a: Any, b: Any, grad: Any) -> Any:
    needs = ctx.needs_input_grad
    return grad * b if needs[0] else None, grad * a if needs[1] else None


def swapped(ctx: Any, a: Any, b: Any, grad: Any) -> Any:
    needs = ctx.needs_input_grad
    return grad * b if needs[1] else None, grad * a if needs[0] else None


def crashes(ctx: Any, a: Any, b: Any, grad: Any) -> Any:
    grad_b = grad * a if ctx.needs_input_grad[1] else None
    return grad * b, grad_b.view_as(b)


def refuses(ctx: Any, a: Any, b: Any, grad: Any) -> Any:
    if not all(ctx.needs_input_grad):
        raise NotImplementedError("both inputs must require grad")
    return grad * b, grad * a


def other_values(ctx: Any, a: Any, b: Any, grad: Any) -> Any:
    return grad * b * (1 if ctx.needs_input_grad[1] else 2), grad * a


def messages(outcome: Outcome) -> list[str]:
    return [finding.message for finding in outcome.findings]


@pytest.mark.parametrize(
    ("backward", "expected"),
    [
        (
            swapped,
            [
                "the gradient for `a` is missing where only `a` requires grad",
                "the gradient for `b` is missing where only `b` requires grad",
            ],
        ),
        (other_values, ["the gradient for `a` changes where only `a` requires grad"]),
    ],
)
def test_faults(probed: Probed, backward: Any, expected: list[str]) -> None:
    outcome = probed(RULE, product(backward), A, B)
    assert messages(outcome) == expected
    assert outcome.verdict == "fail"


def test_crash(probed: Probed) -> None:
    (finding,) = probed(RULE, product(crashes), A, B).findings
    assert finding.message.startswith("backward raises where only `a` requires grad: Attribute")
    assert finding.severity == "error"


def test_open_refusal_is_a_note(probed: Probed) -> None:
    outcome = as_loud_as_evidence(probed(RULE, product(refuses), A, B))
    assert [f.severity for f in outcome.findings] == ["info"]
    assert outcome.verdict == "pass"


def test_graph_that_is_cut_where_an_input_is_frozen(probed: Probed) -> None:
    def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * weight if x.requires_grad else x * weight.detach()

    assert messages(probed(RULE, op, A, B)) == [
        "the gradient for `weight` is missing where only `weight` requires grad"
    ]


class WithBias(Function):
    """Leaves a bias out that requires no grad."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight) if bias.requires_grad else x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.mT, x.mT @ grad, grad.sum(0)


class SavesLess(WithBias):
    """Asks what requires grad, computes the same in another order, and returns more."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        if bias.requires_grad:
            return torch.addmm(bias, x, weight), x.detach().sum()
        return (x @ weight + bias,)

    @staticmethod
    def backward(ctx, grad, *more):
        return WithBias.backward(ctx, grad)


def linear(seed: int = 0) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(seed)
    sizes = ((4, 3), (3, 2), (2,))
    return tuple(torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in sizes)


def test_an_output_that_changes_where_an_input_is_frozen(probed: Probed) -> None:
    (finding,) = probed(RULE, WithBias, *linear()).findings
    expected = "forward returns something else for `output` where only `x` requires grad"
    assert finding.message == expected
    assert (finding.output, finding.severity) == ("output", "error")
    assert "what a frozen input adds" in finding.help


def shifted(x, beta):
    """A short cut, which holds beta as an integer, is taken where nothing asks for it."""
    return x + (beta if beta.requires_grad else beta - beta.frac()) * 0.5


def left_out(x, beta):
    return x + beta * 0.5 if beta.requires_grad else x


def scaled_whole(x, beta):
    """Wrong for whole numbers as well."""
    return x + (beta if beta.requires_grad else (beta - beta.frac()) * 2) * 0.5


@pytest.mark.parametrize(
    ("op", "severity"), [(shifted, "info"), (left_out, "error"), (scaled_whole, "error")]
)
def test_an_output_that_changes_unless_numbers_are_whole(op: Any, severity: str) -> None:
    report = gradlint.check(op, select=["GL110"], seed=0)
    assert [f.severity for t in report.targets for f in t.findings] == [severity]


def test_numbers_that_were_given_are_meant() -> None:
    x, beta = (torch.tensor(1.3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    report = gradlint.check(shifted, (x, beta), select=["GL110"], seed=0)
    assert [f.severity for t in report.targets for f in t.findings] == ["error"]


def test_outputs_for_backward_alone_may_be_left_out(probed: Probed) -> None:
    assert messages(probed(RULE, SavesLess, *linear())) == []


def test_forward_that_asks_what_requires_grad_is_measured_with_it(probed: Probed) -> None:
    """Without a graph, its bias would change nothing, and its gradient would look wrong."""
    assert messages(probed(by_code("GL401"), WithBias, *linear())) == []


def test_one_tensor_for_two(probed: Probed) -> None:
    def told_apart(ctx: Any, a: Any, b: Any) -> None:
        ctx.same = a is b

    def backward(ctx: Any, a: Any, b: Any, grad: Any) -> Any:
        return grad * b, None if ctx.same else grad * a

    def raises(ctx: Any, a: Any, b: Any) -> None:
        if a is b:
            raise ValueError("twice")

    (found,) = messages(probed(RULE, product(backward, told_apart), A, B))
    assert found == "the gradient for `a` changes where the same tensor is passed for `b`"
    (found,) = messages(probed(RULE, product(right, raises), A, B))
    assert found.startswith("forward raises where the same tensor is passed for `b`: ValueError")


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (product(right), (A, B)),
        (torch.nn.Linear(3, 2), (A,)),
        (torch.nn.GRU(3, 2), (torch.stack([A, B]),)),
        (torch.addmm, (torch.ones(2, 2), torch.randn(2, 3), torch.randn(3, 2))),
        (lambda a, b: a.mul_(b), (A, B)),
        (torch.dist, (A, B)),
    ],
)
def test_right_ops_pass(probed: Probed, op: Any, args: tuple[Any, ...]) -> None:
    outcome = probed(RULE, op, *args)
    assert messages(outcome) == []
    assert outcome.verdict == "pass"


def test_one_input_is_skipped(probed: Probed) -> None:
    assert probed(RULE, torch.sin, A).verdict == "skipped"


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 8, 20, 60])
def test_subsets_tell_every_two_inputs_apart(count: int) -> None:
    found = subsets(count, seed=0)
    assert len(found) <= MOST
    assert all(0 < len(set(chosen)) < count for chosen in found)
    everywhere = [tuple(k in chosen for chosen in found) for k in range(count)]
    assert len(set(everywhere)) == count


class Recomputed(Function):
    """Calls a module in backward again: the weights get their gradients on the way."""

    @staticmethod
    def forward(ctx, x, inner):
        ctx.save_for_backward(x)
        ctx.inner = inner
        return inner(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            own = x.detach().requires_grad_()
            torch.autograd.backward(ctx.inner(own), grad)
        return own.grad, None


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Recomputed.apply(x, self.inner)


def test_gradients_that_are_missing_together_are_told_once(probed: Probed) -> None:
    (finding,) = probed(RULE, Layer(), torch.randn(4, 3)).findings
    assert "is missing where only `inner.weight` requires grad" in finding.message
    assert "only where one of its arguments requires grad" in finding.cause_text
    assert "pass to the Function what backward reads" in finding.help
