"""The evidence of a wrong gradient, from the op to its cause: state, outputs, size and cost."""

from __future__ import annotations

import pytest
import torch

from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.value import wrong_gradient
from gradlint.targets.build import from_object


def make(forward, backward):
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Planted", (torch.autograd.Function,), methods)


def examine(op, *shapes, dtype=torch.float64):
    """The subject after GL401, and its one finding."""
    generator = torch.Generator().manual_seed(2)
    args = tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in shapes
    )
    subject = Subject(from_object(op), Sample("test", "--inputs", args), Settings(seed=3))
    (finding,) = wrong_gradient.probe(subject).findings
    return subject, finding


def exp_with(change):
    """exp, what its backward returns changed."""

    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    return make(forward, lambda ctx, g: change(g * ctx.saved_tensors[0]))


def test_an_answer_for_the_grad_output_of_the_call_before():
    earlier = []

    def stale(g):
        earlier.append(g.clone())
        return earlier[-2] if len(earlier) > 1 else g

    _, finding = examine(exp_with(stale), (5, 4))
    assert finding.cause == "stale"
    assert "grad_output of an earlier call" in finding.cause_text


def test_an_answer_for_the_inputs_of_the_call_before():
    kept = {}

    def forward(ctx, x):
        ctx.old = kept.get("x", x)
        kept["x"] = x.detach().clone()
        return x**2

    _, finding = examine(make(forward, lambda ctx, g: 2 * ctx.old * g), (5, 4))
    assert finding.cause == "stale"
    assert "inputs of an earlier call" in finding.cause_text


def test_the_output_whose_grad_output_is_ignored_is_named():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x.exp(), x**2

    def backward(ctx, first, second, third):
        (x,) = ctx.saved_tensors
        return first * x.cos() + 2 * third * x

    _, finding = examine(make(forward, backward), (4, 5))
    assert finding.cause == "ignores-one-grad-output"
    assert "`output[1]`" in finding.cause_text


def test_one_wrong_element_of_a_hundred_thousand_costs_few_calls():
    def zeroed(g):
        g = g.clone()
        g[123, 77] = 0.0
        return g

    subject, finding = examine(exp_with(zeroed), (500, 200))
    assert (finding.cause, finding.index) == ("one-element", [123, 77])
    assert subject.problem.forward_calls <= 250


@pytest.mark.parametrize("shape", [(), (1,), (30, 20)])
def test_a_scaled_gradient_of_any_size(shape):
    _, finding = examine(exp_with(lambda g: 2 * g), shape)
    assert finding.cause == "scaled"
    assert "times 1/2 agrees" in finding.cause_text
    assert "of" in finding.cause_text


def test_float32_alone_suffices():
    def forward(ctx, x):
        if x.dtype != torch.float32:
            raise TypeError("float32 only")
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        gradient = g * ctx.saved_tensors[0]
        gradient[1::2] = 0
        return gradient

    _, finding = examine(make(forward, backward), (40, 30), dtype=torch.float32)
    assert finding.cause == "periodic"
    assert "every odd row" in finding.cause_text


@pytest.mark.parametrize("refused", [(), (1,), (1, 2, 3, 4)], ids=["none", "some", "most"])
def test_elements_that_can_not_be_measured_alone_are_not_said_to_be_right(refused):
    """A forward that is not finite where few elements move, whose gradient is 1.5 times too large
    in the upper half of its elements."""
    start = []

    def forward(ctx, x):
        start.append(x.detach().clone())
        y = x.exp()
        ctx.save_for_backward(y)
        moved = int((x != start[0]).sum())
        return y * float("inf") if moved in refused and x.numel() > 4 else y

    def backward(ctx, g):
        found = g * ctx.saved_tensors[0]
        found[2:] *= 1.5
        return found

    _, finding = examine(make(forward, backward), (8,))
    said = {key: finding.evidence.get(key) for key in ("differing", "measured_elements", "numel")}
    if 1 in refused:
        assert said == {"differing": None, "measured_elements": None, "numel": 8}
        assert finding.evidence["measured"].startswith("no element could be measured alone")
        assert finding.index is None
        assert "table" not in finding.help
    else:
        assert said == {"differing": 6, "measured_elements": 8, "numel": 8}
        assert all(each["index"][0] >= 2 for each in finding.evidence["elements"])
        assert finding.index[0] >= 2


def test_right_elements_are_not_listed_among_the_worst():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, g):
        found = g * ctx.saved_tensors[0].cos()
        found[3] *= 1.5
        return found

    _, finding = examine(make(forward, backward), (8,))
    assert [each["index"] for each in finding.evidence["elements"]] == [[3]]
