"""Faults that the first sample hides are found at further ones; right operators stay green."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import gradlint
from gradlint.experiments.judge_at_other_inputs import RIGHT, WRONG, judge_at_other_inputs
from gradlint.experiments.subject import Subject
from gradlint.model.report import TargetReport
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

F = torch.nn.functional


def op(forward: Any, backward: Any, name: str = "Op") -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    members["__doc__"] = forward.__doc__
    return type(name, (torch.autograd.Function,), members)


def check(thing: Any, inputs: Any = None, **flags: Any) -> TargetReport:
    flags = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"], **flags}
    return gradlint.check(thing, inputs, **flags).targets[0]


def red(report: TargetReport) -> list[tuple[str, str]]:
    return [
        (item.code, item.message)
        for item in report.findings
        if item.severity in ("error", "warning")
    ]


def conv(ctx, x, weight, stride=1):
    ctx.save_for_backward(x, weight)
    ctx.stride = stride
    return F.conv1d(x, weight, stride=stride)


def conv_right(ctx, g):
    x, w = ctx.saved_tensors
    grad = torch.nn.grad
    return (
        grad.conv1d_input(x.shape, w, g, stride=ctx.stride),
        grad.conv1d_weight(x, w.shape, g, stride=ctx.stride),
        None,
    )


def conv_wrong(ctx, g):
    of_x, of_weight, _ = conv_right(ctx, g)
    return of_x, of_weight / ctx.stride, None


def normed(ctx, x, eps=1e-8):
    ctx.save_for_backward(x)
    ctx.eps = eps
    return x * (x * x + eps).rsqrt()


def normed_right(ctx, g):
    (x,) = ctx.saved_tensors
    return g * ctx.eps * (x * x + ctx.eps) ** -1.5, None


def smooth(ctx, x, eps=1e-8):
    ctx.save_for_backward(x)
    ctx.eps = eps
    return (x * x + eps).sqrt()


def smooth_right(ctx, g):
    (x,) = ctx.saved_tensors
    return g * x / (x * x + ctx.eps).sqrt(), None


def smooth_wrong(ctx, g):
    (x,) = ctx.saved_tensors
    return g * x.sign(), None


def loss(ctx, pred, target, reduction="mean"):
    ctx.save_for_backward(pred, target)
    ctx.reduction = reduction
    each = (pred - target) ** 2
    return each.mean() if reduction == "mean" else each.sum() if reduction == "sum" else each


def loss_right(ctx, g):
    pred, target = ctx.saved_tensors
    of = 2 * (pred - target) * g / (pred.numel() if ctx.reduction == "mean" else 1)
    return of, -of, None


def loss_wrong(ctx, g):
    pred, target = ctx.saved_tensors
    of = 2 * (pred - target) * g / (1 if ctx.reduction == "sum" else pred.numel())
    return of, -of, None


def scatter(ctx, src, index):
    ctx.save_for_backward(index)
    rows = int(index.max()) + 1
    return src.new_zeros(rows, *src.shape[1:]).index_add(0, index, src)


def scatter_right(ctx, g):
    return g[ctx.saved_tensors[0]], None


def scatter_wrong(ctx, g):
    (index,) = ctx.saved_tensors
    counts = torch.bincount(index, minlength=g.shape[0]).clamp(min=1).to(g.dtype)
    return (g / counts.view(-1, *[1] * (g.dim() - 1)))[index], None


def relu6(ctx, x):
    ctx.save_for_backward(x)
    return x.clamp(0, 6)


def relu6_right(ctx, g):
    (x,) = ctx.saved_tensors
    return g * ((x > 0) & (x < 6))


def relu6_wrong(ctx, g):
    return g * (ctx.saved_tensors[0] > 0)


def multiply(ctx, a, b):
    ctx.save_for_backward(a, b)
    return a * b


def multiply_right(ctx, g):
    a, b = ctx.saved_tensors
    return (g * b).sum_to_size(a.shape), (g * a).sum_to_size(b.shape)


def multiply_wrong(ctx, g):
    a, b = ctx.saved_tensors
    of_a = g * b
    if of_a.shape != a.shape and a.shape[0] == 1:
        of_a = of_a.mean(0, keepdim=True)
    return of_a.sum_to_size(a.shape), (g * a).sum_to_size(b.shape)


#: Name → forward, right and wrong backward, and where the wrong one shows.
TWINS = {
    "stride": (conv, conv_right, conv_wrong, "with stride=2"),
    "eps": (smooth, smooth_right, smooth_wrong, "with eps=0.1"),
    "reduction": (loss, loss_right, loss_wrong, "with reduction='none'"),
    "threshold": (relu6, relu6_right, relu6_wrong, "where values are on both sides of 0, 6"),
    "broadcast": (multiply, multiply_right, multiply_wrong, "where `a` is broadcast along axis 0"),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_fault_that_the_first_sample_hides_is_found(name):
    forward, _, wrong, where = TWINS[name]
    report = check(op(forward, wrong))
    assert "GL401" in {code for code, _ in red(report)}
    messages = [message for _, message in red(report)]
    assert any(message.endswith(where) for message in messages), messages
    found = next(item for item in report.findings if item.message.endswith(where))
    assert found.sample == where
    assert where in [item.label for item in report.samples]
    assert "GL401" in found.reproduce


@pytest.mark.parametrize("name", TWINS)
def test_the_right_twin_passes_in_few_calls(name):
    forward, right, _, where = TWINS[name]
    report = check(op(forward, right))
    assert red(report) == []
    tried = {item.label: item for item in report.tried}
    assert tried[where].verdict == "right"
    assert tried[where].forward_calls + tried[where].backward_calls <= 8
    assert sum(item.forward_calls + item.backward_calls for item in tried.values()) <= 100
    assert len(report.samples) <= 3  # those on which every rule ran


def test_repeated_indices_are_in_the_first_sample_already():
    assert [code for code, _ in red(check(op(scatter, scatter_wrong)))][:1] == ["GL401"]
    assert red(check(op(scatter, scatter_right))) == []


def test_a_small_difference_that_is_there_is_no_fault():
    assert red(check(op(normed, normed_right))) == []


def test_a_wrong_gradient_is_told_once():
    def backward(ctx, g):
        return tuple(2 * item if item is not None else None for item in loss_right(ctx, g))

    report = check(op(loss, backward))
    assert [code for code, _ in red(report)] == ["GL401", "GL401"]  # of pred and of target
    assert all("with" not in message for _, message in red(report))


def test_forward_that_broadcasts_by_accident_blames_nobody():
    report = check(op(loss, loss_right))
    accidents = [item for item in report.tried if item.verdict == "accepted by accident"]
    assert accidents
    assert red(report) == []


def test_a_loud_backward_at_a_number_that_was_chosen_is_no_fault():
    def forward(ctx, x, n=1):
        ctx.n = n
        return x * n

    def backward(ctx, g):
        if ctx.n != 1:
            raise RuntimeError("only n=1")
        return g, None

    report = check(op(forward, backward), select=["GL0", "GL4"])
    assert red(report) == []
    assert "raised" in {item.verdict for item in report.tried}


def test_a_loud_backward_at_a_flag_is_one():
    def forward(ctx, x, keepdim=False):
        ctx.keepdim = keepdim
        return (x * 2).sum(-1, keepdim=keepdim)

    def backward(ctx, g):
        if ctx.keepdim:
            raise RuntimeError("unsupported")
        return (2 * g).unsqueeze(-1).expand(*g.shape, 4), None

    report = check(op(forward, backward), select=["GL004"])
    assert [item.code for item in report.findings] == ["GL004"]
    assert report.findings[0].sample == "with keepdim=True"


class _Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, training, factor):
        ctx.factor = 1.0 if training else factor
        return x * (1.0 if training else 0.5)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None, None


class Halving(torch.nn.Module):
    """Halves in evaluation mode; its gradient there is ``factor``."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return _Halved.apply(x, self.training, self.factor)


def test_modules_run_in_both_modes():
    report = check(Halving(0.7))
    assert [message for _, message in red(report)] == ["wrong gradient for `x` in evaluation mode"]
    report = check(Halving(0.5))
    assert red(report) == []
    assert "in evaluation mode" in {item.label for item in report.tried}


def test_arguments_that_were_given_stay():
    x = torch.ones(3, 4, dtype=torch.float64).requires_grad_()
    assert "with eps=0.1" not in {
        i.label for i in check(op(smooth, smooth_right), [(x, 0.3)]).tried
    }


def test_options_are_moved_for_given_inputs_too_and_values_are_not():
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    report = check(op(smooth, smooth_wrong), [(x.requires_grad_(),)])
    assert [message for _, message in red(report)] == ["wrong gradient for `x` with eps=0.1"]
    labels = {item.label for item in check(op(smooth, smooth_right), [(x,)]).tried}
    assert labels == {"with eps=0.1"}


def test_a_budget_of_calls_leaves_further_samples_out():
    report = check(op(smooth, smooth_right), max_calls=20)
    assert not report.tried


def logit(ctx, p, eps=1e-6):
    ctx.save_for_backward(p)
    ctx.eps = eps
    z = p.clamp(eps, 1 - eps)
    return z.log() - (1 - z).log()


def logit_right(ctx, g):
    (p,) = ctx.saved_tensors
    z = p.clamp(ctx.eps, 1 - ctx.eps)
    return torch.where(z == p, g / (z * (1 - z)), 0.0), None


def logit_wrong(ctx, g):
    (p,) = ctx.saved_tensors
    z = p.clamp(ctx.eps, 1 - ctx.eps)
    return g / (z * (1 - z)), None


def test_an_epsilon_is_large_enough_to_be_passed():
    (found,) = {code for code, _ in red(check(op(logit, logit_wrong)))}
    assert found == "GL401"
    assert red(check(op(logit, logit_right))) == []
    tried = [item.label for item in check(op(logit, logit_right)).tried]
    assert "with eps=0.1, where values are on both sides of 0.1, 0.9" in tried


def windowed(ctx, x, size=5, alpha=1e-4):
    ctx.save_for_backward(x)
    ctx.size, ctx.alpha = size, alpha
    return x + alpha * x * x * (size % 2 + 1)


def windowed_right(ctx, g):
    (x,) = ctx.saved_tensors
    return g * (1 + 2 * ctx.alpha * x * (ctx.size % 2 + 1)), None, None


def windowed_wrong(ctx, g):
    """No cause explains it, so that only its size tells how grave it is."""
    (x,) = ctx.saved_tensors
    return g * (1 + (4 if ctx.size % 2 else 3.3) * ctx.alpha * x), None, None


def test_numbers_are_moved_together_where_one_hides_another():
    """The error at another size is 1e-4 of the gradient while alpha is at its default."""
    found = red(check(op(windowed, windowed_wrong)))
    assert any("alpha=0.1" in message for _, message in found)
    assert red(check(op(windowed, windowed_right))) == []


def sampled(ctx, x, hard=False):
    ctx.save_for_backward(x)
    y = torch.sigmoid(x)
    return y.round() if hard else y


def sampled_right(ctx, g):
    y = torch.sigmoid(ctx.saved_tensors[0])
    return g * y * (1 - y), None


def two_options(ctx, x, reduction="mean", squared=False):
    ctx.save_for_backward(x)
    ctx.options = reduction, squared
    value = x * x if squared else x.sin()
    return {"mean": value.mean, "sum": value.sum, "none": value.clone}[reduction]()


def two_options_right(ctx, g):
    (x,) = ctx.saved_tensors
    reduction, squared = ctx.options
    grad = g * (2 * x if squared else x.cos())
    return grad / x.numel() if reduction == "mean" else grad, None, None


def two_options_wrong(ctx, g):
    grad = two_options_right(ctx, g)[0]
    return grad / 2 if ctx.options == ("sum", True) else grad, None, None


def test_a_fault_at_two_options_together_is_found():
    report = check(op(two_options, two_options_wrong))
    (found,) = red(report)
    assert found == ("GL401", "wrong gradient for `x` with reduction='sum', squared=True")
    right = check(op(two_options, two_options_right))
    assert not red(right)
    together = [item.label for item in right.tried if item.label.count("=") > 1]
    assert together == [
        "with reduction='none', squared=True",
        "with reduction='sum', squared=True",
    ]


def of_a_kind(ctx, x, alpha=1.0):
    ctx.save_for_backward(x)
    ctx.alpha = alpha
    if alpha == 0.0:
        return x.square().log1p()
    if alpha == 2:
        return x.sin()
    return x if alpha == float("inf") else x * x * alpha


def of_a_kind_right(ctx, g):
    (x,) = ctx.saved_tensors
    if ctx.alpha == 0.0:
        return 2 * g * x / (1 + x * x), None
    if ctx.alpha == 2:
        return g * x.cos(), None
    return g if ctx.alpha == float("inf") else 2 * g * x * ctx.alpha, None


def of_a_kind_wrong(ctx, g):
    (x,) = ctx.saved_tensors
    return (g * x / (1 + x * x), None) if ctx.alpha == 0.0 else of_a_kind_right(ctx, g)


def test_numbers_that_have_code_of_their_own_are_tried():
    tried = {item.label: item.verdict for item in check(op(of_a_kind, of_a_kind_right)).tried}
    assert [tried[f"with alpha={value}"] for value in ("0.0", "2.0", "inf")] == ["right"] * 3
    (found, *_) = red(check(op(of_a_kind, of_a_kind_wrong)))
    assert found == ("GL401", "wrong gradient for `x` with alpha=0.0")


def weighted(ctx, x, target, weight=None, reduction="mean"):
    rows = torch.arange(len(target))
    scale = torch.ones_like(x[0]) if weight is None else weight
    ctx.save_for_backward(x, target, scale)
    ctx.options = reduction, weight is not None
    loss = -scale[target] * x.log_softmax(1)[rows, target]
    return {"mean": lambda: loss.sum() / scale[target].sum(), "sum": loss.sum}[reduction]()


def weighted_right(ctx, g):
    x, target, scale = ctx.saved_tensors
    one = F.one_hot(target, x.shape[1]).to(x)
    grad = g * (x.softmax(1) - one) * scale[target, None]
    return grad / scale[target].sum() if ctx.options[0] == "mean" else grad, None, None, None


def weighted_wrong(ctx, g):
    _, target, scale = ctx.saved_tensors
    grad = weighted_right(ctx, g)[0]
    return grad / scale[target, None] if ctx.options == ("sum", True) else grad, None, None, None


def test_a_fault_at_an_option_with_an_optional_tensor_is_found():
    (found, *_) = red(check(op(weighted, weighted_wrong)))
    assert found == ("GL401", "wrong gradient for `x` with weight given, reduction='sum'")
    assert not red(check(op(weighted, weighted_right)))


def shifted(ctx, x, weight=None, bias=None, cap=0.5):
    weight = torch.ones_like(x) if weight is None else weight
    ctx.save_for_backward(x, weight)
    ctx.cap, ctx.with_bias = cap, bias is not None
    near = x.abs() <= cap
    y = weight * torch.where(near, x.square() / (2 * cap), x.abs() - cap / 2)
    return y if bias is None else y + bias


def shifted_right(ctx, g):
    x, weight = ctx.saved_tensors
    near = x.abs() <= ctx.cap
    value = torch.where(near, x.square() / (2 * ctx.cap), x.abs() - ctx.cap / 2)
    slope = torch.where(near, x / ctx.cap, x.sign())
    needed = ctx.needs_input_grad
    return (
        g * weight * slope,
        g * value if needed[1] else None,
        g if needed[2] else None,
        None,
    )


def shifted_wrong(ctx, g):
    of_x, of_weight, of_bias, _ = shifted_right(ctx, g)
    without_weight = not ctx.needs_input_grad[1]
    return of_x, of_weight, 2 * of_bias if without_weight and ctx.with_bias else of_bias, None


def test_inputs_keep_their_names_where_one_before_them_is_left_out():
    x, weight, bias = (torch.randn(4, dtype=torch.float64) for _ in range(3))
    subject = Subject(
        from_object(op(shifted, shifted_wrong)),
        Sample("given", "given", tuple(t.requires_grad_() for t in (x, weight, bias))),
        Settings(),
    )
    there = replace(subject.sample, args=(x, None, bias))
    seen = judge_at_other_inputs(subject, there)
    assert seen.verdict == WRONG
    assert [seen.subject.problem.inputs[k].name for k in seen.positions] == ["bias"]
    right = Subject(from_object(op(shifted, shifted_right)), subject.sample, Settings())
    assert judge_at_other_inputs(right, there).verdict == RIGHT


def test_an_option_that_asks_for_a_surrogate_is_no_fault():
    report = check(op(sampled, sampled_right))
    assert red(report) == []
    (finding,) = [item for item in report.findings if item.code == "GL401"]
    assert (finding.severity, finding.cause) == ("info", "straight-through")
    assert finding.sample == "hard=True"


def phase(ctx, z, eps=1e-20, scale=1.0):
    ctx.save_for_backward(z)
    ctx.eps, ctx.scale = eps, scale
    return scale * torch.atan2(z, z.new_ones(()))


def phase_right(ctx, g):
    """Like many, it guards the division in backward alone."""
    (z,) = ctx.saved_tensors
    return ctx.scale * g / (1 + z * z).clamp_min(10 * ctx.eps + 0.5), None, None


def phase_wrong(ctx, g):
    (z,) = ctx.saved_tensors
    return g / (1 + z * z).clamp_min(10 * ctx.eps + 0.5), None, None


def test_an_epsilon_of_backward_alone_is_information():
    def larger(ctx, g):
        (z,) = ctx.saved_tensors
        return ctx.scale * g / (1 + z * z).clamp_min(20 * ctx.eps), None, None

    report = check(op(phase, larger))
    assert red(report) == []
    (finding,) = [item for item in report.findings if item.code == "GL401"]
    assert (finding.severity, finding.sample) == ("info", "with eps=0.1")
    assert finding.grounds.explained == "backward-only"
    tried = [item.label for item in report.tried]
    assert not any("eps=0.1" in label and "," in label for label in tried)  # never with others


def test_an_argument_that_forward_depends_on_stays_a_fault():
    assert red(check(op(phase, phase_right))) == []
    found = red(check(op(phase, phase_wrong)))
    assert [code for code, _ in found] == ["GL401"]


def test_a_given_epsilon_of_backward_alone_is_information():
    """The measurement at other values of float arguments, at the sample itself."""

    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return ctx.scale * g / (1 + z * z).clamp_min(ctx.eps), None, None

    def wrong(ctx, g):
        return backward(ctx, g / ctx.scale)

    z = torch.linspace(0.1, 2.0, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    report = check(op(phase, backward), [(z, 0.5, 1.0)])
    assert red(report) == []
    report = check(op(phase, backward), [(z, -1.0, 1.0)])
    assert red(report) == []
    report = check(op(phase, wrong), [(z, 0.5, 1.0)])
    (message,) = [message for _, message in red(report)]
    assert message == "wrong gradient for `z` where `scale` is 0.63"


def fir(ctx, x, taps, stride=1):
    ctx.save_for_backward(x, taps)
    ctx.stride = stride
    return x.unfold(1, taps.numel(), stride) @ taps


def fir_backward(step):
    def backward(ctx, g):
        x, taps = ctx.saved_tensors
        of_x = torch.zeros_like(x)
        for k in range(taps.numel()):
            at = step(ctx.stride) * torch.arange(g.shape[1]) + k
            of_x.index_add_(1, at, g * taps[k])
        windows = x.unfold(1, taps.numel(), ctx.stride)
        return of_x, torch.einsum("bi,bik->k", g, windows), None

    return backward


def embedding(ctx, table, ids, pad_id=-100):
    mask = (ids != pad_id).to(table.dtype)
    ctx.save_for_backward(ids, mask)
    ctx.rows = table.shape[0]
    return (table[ids.clamp(min=0)] * mask[:, None]).sum(0) / mask.sum().clamp(min=1)


def embedding_backward(count):
    def backward(ctx, g):
        ids, mask = ctx.saved_tensors
        each = mask[:, None] * g / count(mask)
        return g.new_zeros(ctx.rows, g.shape[0]).index_add(0, ids.clamp(min=0), each), None, None

    return backward


def looked_up(ctx, table, ids, padding_idx=None):
    """As torch.nn.functional.embedding does, gives no gradient to one row."""
    ctx.save_for_backward(ids)
    ctx.rows, ctx.padding_idx = table.shape[0], padding_idx
    return table[ids]


def looked_up_right(ctx, g):
    (ids,) = ctx.saved_tensors
    if ctx.padding_idx is not None:
        g = g * (ids != ctx.padding_idx).reshape(*ids.shape, 1)
    rows = g.reshape(-1, g.shape[-1])
    return g.new_zeros(ctx.rows, g.shape[-1]).index_add(0, ids.reshape(-1), rows), None, None


def pooled(ctx, x, lengths):
    mask = torch.arange(x.shape[1]) < lengths[:, None]
    ctx.save_for_backward(mask, lengths)
    return (x * mask).sum(1) / lengths.clamp(min=1)


def pooled_backward(least):
    def backward(ctx, g):
        mask, lengths = ctx.saved_tensors
        return (g / lengths.clamp(min=least).to(g.dtype))[:, None] * mask, None

    return backward


def spectral(ctx, a):
    """Logarithm of a symmetric positive definite matrix."""
    w, q = torch.linalg.eigh((a + a.mT) / 2)
    ctx.save_for_backward(w, q)
    return (q * w.log()) @ q.mT


def spectral_backward(near):
    def backward(ctx, g):
        w, q = ctx.saved_tensors
        gap = w[:, None] - w[None, :]
        same = torch.eye(len(w), dtype=torch.bool) | (gap.abs() < near)
        slope = (w.log()[:, None] - w.log()[None, :]) / gap.masked_fill(same, 1.0)
        slope = torch.where(same, (1 / w)[:, None].expand_as(gap), slope)
        slope = slope if near else torch.where(gap == 0, gap / gap, slope)
        slope = torch.where(torch.eye(len(w), dtype=torch.bool), (1 / w)[:, None], slope)
        return q @ (slope * (q.mT @ ((g + g.mT) / 2) @ q)) @ q.mT

    return backward


def exponential(ctx, a):
    """The exponential of a real or complex number."""
    out = a.exp()
    ctx.save_for_backward(out)
    return out


def exponential_right(ctx, g):
    return g * ctx.saved_tensors[0].conj()


def exponential_wrong(ctx, g):
    return g * ctx.saved_tensors[0]


def determinant(ctx, a):
    """The sum of squares of each of a batch of matrices."""
    ctx.save_for_backward(a)
    return (a * a).sum((-2, -1))


def determinant_right(ctx, g):
    return 2 * g[..., None, None] * ctx.saved_tensors[0]


def determinant_wrong(ctx, g):
    return 2 * g * ctx.saved_tensors[0]


#: Name → forward, right and wrong backward, and where the wrong one shows.
KINDS = {
    "stride": (fir, fir_backward(lambda s: s), fir_backward(lambda s: 1), "with stride=2"),
    "padding": (
        embedding,
        embedding_backward(lambda mask: mask.sum().clamp(min=1)),
        embedding_backward(lambda mask: mask.numel()),
        "where pad_id=-100 occurs in `ids`",
    ),
    "lengths": (pooled, pooled_backward(1), pooled_backward(0), "where one of `lengths` is 0"),
    "eigenvalues": (
        spectral,
        spectral_backward(1e-9),
        spectral_backward(0.0),
        "where the eigenvalues of `a` are equal",
    ),
    "complex": (exponential, exponential_right, exponential_wrong, "with complex numbers"),
    "batch": (determinant, determinant_right, determinant_wrong, "with a batch of 4"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_fault_at_samples_of_another_kind_is_found(name):
    forward, right, wrong, where = KINDS[name]
    codes = ["GL1", "GL2", "GL302", "GL4"]
    messages = [message for _, message in red(check(op(forward, wrong), select=codes))]
    assert any(where in message for message in messages), messages
    report = check(op(forward, right), select=codes)
    assert red(report) == []
    assert where in {item.label for item in report.tried if item.verdict == "right"}


def test_a_row_without_gradient_by_design_is_no_fault():
    report = check(op(looked_up, looked_up_right))
    assert red(report) == []
    (moved,) = [item for item in report.tried if item.label.startswith("with padding_idx")]
    assert moved.verdict == "refused"  # outputs say nothing about it


def test_backward_has_to_run_in_float64_where_forward_does():
    def forward(ctx, x):
        values, at = x.sort(dim=-1)
        ctx.save_for_backward(at)
        return values

    def right(ctx, g):
        (at,) = ctx.saved_tensors
        return torch.zeros_like(g).scatter(-1, at, g)

    def wrong(ctx, g):
        (at,) = ctx.saved_tensors
        return torch.zeros(g.shape).scatter(-1, at, g)

    codes = ["GL004", "GL4"]
    (message,) = [message for _, message in red(check(op(forward, wrong), select=codes))]
    assert message.startswith("backward raised RuntimeError")
    assert message.endswith("in float64")
    assert red(check(op(forward, right), select=codes)) == []


def gain(ctx, z, w):
    """Multiplies a spectrum z by a real gain w."""
    ctx.save_for_backward(z, w)
    return z * w


def gain_right(ctx, g):
    z, w = ctx.saved_tensors
    return g * w, (g * z.conj()).real


def gain_wrong(ctx, g):
    z, w = ctx.saved_tensors
    return g.conj() * w, (g * z.conj()).real


def delayed(ctx, spectrum, tau):
    """Delay a complex spectrum (B, F) by tau (B,) samples."""
    turned = spectrum * torch.exp(-1j * torch.arange(spectrum.shape[-1]) * tau[:, None])
    ctx.save_for_backward(turned, tau)
    return turned


def delayed_right(ctx, g):
    turned, tau = ctx.saved_tensors
    steps = torch.arange(turned.shape[-1])
    back = torch.exp(1j * steps * tau[:, None])
    return g * back, (g.conj() * -1j * steps * turned).real.sum(-1)


def delayed_wrong(ctx, g):
    of_spectrum, of_tau = delayed_right(ctx, g)
    return of_spectrum, -of_tau


def test_a_real_number_beside_complex_ones_stays_real():
    report = check(op(delayed, delayed_right))
    assert report.samples[0].args[0].dtype == "complex128"
    assert red(report) == []
    assert ("GL401", "wrong gradient for `tau`") in red(check(op(delayed, delayed_wrong)))


def test_an_input_whose_gradient_is_real_stays_real_where_others_are_complex():
    codes = ["GL1", "GL2", "GL302", "GL4"]
    report = check(op(gain, gain_right), select=codes)
    assert red(report) == []
    assert "with complex numbers" in {t.label for t in report.tried if t.verdict == "right"}
    (message,) = [message for _, message in red(check(op(gain, gain_wrong), select=codes))]
    assert message == "wrong gradient for `z` with complex numbers"


def shrunk(ctx, z, bias):
    r = z.abs()
    active = r + bias > 0  # which no complex bias is
    unit = z / r.clamp_min(1e-12)
    ctx.save_for_backward(r, unit, active, bias)
    return torch.where(active, (r + bias) * unit, torch.zeros_like(z))


def shrunk_right(ctx, g):
    r, unit, active, bias = ctx.saved_tensors
    g = torch.where(active, g, torch.zeros_like(g))
    along, ratio = (g * unit.conj()).real, bias / r.clamp_min(1e-12)
    return g * (1 + ratio) - ratio * along * unit, along.sum(0)


def shrunk_wrong(ctx, g):
    r, unit, active, bias = ctx.saved_tensors
    g = torch.where(active, g, torch.zeros_like(g))
    along, ratio = (g * unit.conj()).real, bias / r.clamp_min(1e-12)
    return g * (1 + ratio) - ratio * along * unit.conj(), along.sum(0)


def shrunk_refusing(ctx, g):
    _, unit, active, _ = ctx.saved_tensors
    if unit.is_complex():
        raise NotImplementedError("complex numbers")
    return torch.where(active, g, torch.zeros_like(g)), (g * unit.conj() * active).sum(0)


def test_an_input_that_forward_compares_stays_real_where_others_are_complex():
    codes = ["GL1", "GL2", "GL302", "GL4"]
    report = check(op(shrunk, shrunk_right), select=codes)
    assert red(report) == []
    assert "with complex numbers" in {t.label for t in report.tried if t.verdict == "right"}
    (message,) = [message for _, message in red(check(op(shrunk, shrunk_wrong), select=codes))]
    assert message == "wrong gradient for `z` with complex numbers"
    assert red(check(op(shrunk, shrunk_refusing), select=codes)) == []


def shrunk_without_conjugate(ctx, g):
    r, unit, active, bias = ctx.saved_tensors
    g = torch.where(active, g, torch.zeros_like(g))
    along, ratio = (g * unit).real, bias / r.clamp_min(1e-12)
    return g * (1 + ratio) - ratio * along * unit, along.sum(0)


def turned(ctx, x, angle):
    """Takes the real part of real numbers that it turns."""
    ctx.save_for_backward(x, angle)
    return (x * torch.exp(1j * angle)).real


def turned_right(ctx, g):
    x, angle = ctx.saved_tensors
    return g * torch.exp(1j * angle).real, -g * x * torch.exp(1j * angle).imag


def polarised(ctx, x, angle):
    ctx.save_for_backward(x, angle)
    return torch.polar(x.abs(), angle).real


def polarised_right(ctx, g):
    x, angle = ctx.saved_tensors
    return g * x.sign() * angle.cos(), -g * torch.polar(x.abs(), angle).imag


@pytest.mark.parametrize(
    ("forward", "backward"), [(turned, turned_right), (polarised, polarised_right)]
)
def test_a_real_part_of_what_is_made_complex_says_nothing_of_inputs(forward, backward):
    report = check(op(forward, backward), select=["GL1", "GL2", "GL302", "GL4"])
    assert red(report) == []
    assert not any("complex" in item.label for item in report.tried)


def test_a_real_part_that_backward_takes_tells_of_complex_inputs():
    codes = ["GL1", "GL2", "GL302", "GL4"]
    found = red(check(op(shrunk, shrunk_without_conjugate), select=codes))
    assert {message for _, message in found} == {
        f"wrong gradient for `{name}` with complex numbers" for name in ("z", "bias")
    }


def blended(ctx, k, measured, lam):
    ctx.save_for_backward(k, measured, lam)
    return (k + lam * measured) / (1 + lam)


def blended_right(ctx, g):
    k, measured, lam = ctx.saved_tensors
    keep = 1 / (1 + lam)  # real, as the weight is
    pull = (g.conj() * (measured - k)).real * keep**2
    return g * keep, g * lam * keep, pull.sum_to_size(lam.shape)


def blended_wrong(ctx, g):
    of_k, of_measured, of_lam = blended_right(ctx, g)
    return of_k, of_measured.conj(), of_lam


def multiplied(ctx, z, w):
    ctx.save_for_backward(z, w)
    return z * w


def multiplied_wrong(ctx, g):
    z, w = ctx.saved_tensors
    return g * w, g * z.conj()  # right where w is real


def test_an_input_that_gets_a_real_gradient_once_it_is_real_stays_real():
    codes = ["GL1", "GL2", "GL302", "GL4"]
    report = check(op(blended, blended_right), select=codes)
    assert red(report) == []
    assert "with complex numbers" in {t.label for t in report.tried if t.verdict == "right"}
    (message,) = [message for _, message in red(check(op(blended, blended_wrong), select=codes))]
    assert message == "wrong gradient for `measured` with complex numbers"
    (message,) = [m for _, m in red(check(op(multiplied, multiplied_wrong), select=codes))]
    assert message == "wrong gradient for `z` with complex numbers"


def power_of_sigmoid(ctx, x, alpha=2):
    alpha = torch.tensor(float(alpha), dtype=x.dtype)
    ctx.save_for_backward(x, alpha)
    return torch.sigmoid(x) ** (1 / (alpha - 1))  # zero at alpha = 1


def power_of_sigmoid_right(ctx, g):
    x, alpha = ctx.saved_tensors
    y, power = torch.sigmoid(x), 1 / (alpha - 1)
    return g * power * y**power * (1 - y), None


def shifted_sigmoid(ctx, x, alpha=2):
    alpha = torch.tensor(float(alpha), dtype=x.dtype)
    ctx.save_for_backward(x, alpha)
    return torch.sigmoid(x) * (alpha - 1)


def shifted_sigmoid_wrong(ctx, g):
    x, alpha = ctx.saved_tensors
    y = torch.sigmoid(x)
    return g * y * (1 - y) * (alpha - 1) ** 2 / (alpha - 1), None


def test_a_number_that_was_chosen_and_forward_divides_by_is_no_fault():
    report = check(op(power_of_sigmoid, power_of_sigmoid_right), select=["GL1", "GL3", "GL4"])
    assert red(report) == []
    tried = {item.label: item.verdict for item in report.tried}
    assert tried["with alpha=1"] == "refused"
    assert "right" in (verdict for label, verdict in tried.items() if "alpha" in label)


def test_a_number_that_only_backward_divides_by_is_one():
    report = check(op(shifted_sigmoid, shifted_sigmoid_wrong), select=["GL1", "GL3", "GL4"])
    ((code, message),) = red(report)
    assert code == "GL302"
    assert message.endswith("where the function has a finite derivative with alpha=1")


def soft_round_grad(factor):
    """The backward of tanh(sharp·x / step) as a Function, whose own backward multiplies with
    ``factor`` of the step."""

    class SoftRoundGrad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, g, x, step):
            th = torch.tanh(x / step)
            ctx.save_for_backward(g, x)
            ctx.step = step
            return g * (1 - th * th) / step

        @staticmethod
        def backward(ctx, gg):
            g, x = ctx.saved_tensors
            th = torch.tanh(x / ctx.step)
            slope = (1 - th * th) / ctx.step
            return gg * slope, gg * g * -2 * th * slope * factor(ctx.step), None

    return SoftRoundGrad


def soft_round(factor):
    inner = soft_round_grad(factor)

    def forward(ctx, x, step=1.0):
        ctx.save_for_backward(x)
        ctx.step = step
        return torch.tanh(x / step)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return inner.apply(g, x, ctx.step), None

    return op(forward, backward)


def test_the_backward_of_a_backward_is_judged_with_other_numbers_too():
    flags = {"order": 2, "select": ["GL4", "GL5"]}
    (found,) = check(soft_round(lambda step: 1.0), **flags).findings
    assert (found.code, found.severity) == ("GL501", "error")
    assert found.message.endswith("with respect to `x` with step=3.25, at second order")
    assert red(check(soft_round(lambda step: 1 / step), **flags)) == []
    # Without a Function of its own, backward is differentiated by PyTorch.
    plain = check(op(normed, normed_right), **flags)
    assert not any("second order" in tried.label for tried in plain.tried)


class Bend(torch.autograd.Function):
    """elu(x, alpha), from its output."""

    @staticmethod
    def forward(ctx, x, alpha, share):
        y = torch.where(x > 0, x, alpha * torch.expm1(x))
        ctx.save_for_backward(y)
        ctx.share = share
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, g, g * (y + ctx.share)), None, None


class RightBend(torch.nn.Module):
    def __init__(self, alpha: float = 1.0):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return Bend.apply(x, self.alpha, self.alpha)


class WrongBend(RightBend):
    def forward(self, x):
        return Bend.apply(x, self.alpha, 1.0)


class Derived(RightBend):
    """Right, with a number that the constructor makes of its argument."""

    def __init__(self, alpha: float = 1.0):
        super().__init__(alpha)
        self.share = float(alpha)

    def forward(self, x):
        return Bend.apply(x, self.alpha, self.share)


class Picky(WrongBend):
    """It takes its default only."""

    def __init__(self, alpha: float = 1.0):
        if alpha != 1.0:
            raise ValueError("alpha must be 1")
        super().__init__(alpha)


def test_a_number_of_the_constructor_is_moved():
    ((code, message),) = red(check(WrongBend))
    assert code == "GL401"
    assert message.endswith("with alpha=0.7 in the constructor")
    for right in (RightBend, Derived, Picky):
        assert red(check(right)) == []


def bag(dtype):
    class Bag(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight, ids):
            ctx.save_for_backward(ids)
            ctx.rows = weight.size(0)
            return weight[ids].sum(1)

        @staticmethod
        def backward(ctx, g):
            (ids,) = ctx.saved_tensors
            rows = g.unsqueeze(1).expand(*ids.shape, -1).flatten(0, 1)
            found = torch.zeros(ctx.rows, g.size(1), dtype=dtype or g.dtype)
            return found.index_add(0, ids.reshape(-1), rows), None

    class TokenBag(torch.nn.Module):
        def __init__(self, vocab, dim):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(vocab, dim))

        def forward(self, ids):
            return Bag.apply(self.weight, ids)

    return TokenBag


def test_the_parameters_of_a_module_are_tried_in_float64():
    flags = {"select": ["GL0", "GL2", "GL4"]}
    ((code, message),) = red(check(bag(torch.float32), **flags))
    assert code == "GL004"
    assert message.endswith("in float64")
    assert red(check(bag(None), **flags)) == []


def root_of_squares(axis):
    def forward(ctx, x, dim=0):
        out = x.square().sum(dim).sqrt()
        ctx.save_for_backward(x, out)
        ctx.dim = dim
        return out

    def backward(ctx, g):
        x, out = ctx.saved_tensors
        return (g / out).unsqueeze(axis(ctx.dim)) * x, None

    return op(forward, backward)


def test_backward_has_to_run_along_the_axis_that_an_argument_names():
    flags = {"select": ["GL0", "GL2", "GL4"]}
    assert {code for code, _ in red(check(root_of_squares(lambda dim: 0), **flags))} == {"GL004"}
    assert red(check(root_of_squares(lambda dim: dim), **flags)) == []


# Numbers of which only the order counts.


def risk_sets(ctx, score, time):
    """Σᵢ log Σⱼ exp(scoreⱼ) over all j whose time is not before that of i."""
    later = (time[None, :] >= time[:, None]).to(score.dtype)
    ctx.save_for_backward(score, time)
    return (later @ score.exp()).log().sum()


def risk_sets_right(ctx, g):
    score, time = ctx.saved_tensors
    later = (time[None, :] >= time[:, None]).to(score.dtype)
    shares = score.exp() * (later / (later @ score.exp())[:, None]).sum(0)
    return g * shares, None


def risk_sets_wrong(ctx, g):
    """Sums in sorted order: of two equal times, one is taken for earlier than the other."""
    score, time = ctx.saved_tensors
    order = time.argsort()
    hazard = score.exp()[order]
    total = hazard.flip(0).cumsum(0).flip(0)
    sorted_shares = hazard * (1 / total).cumsum(0)
    return g * torch.empty_like(sorted_shares).scatter(0, order, sorted_shares), None


def decayed(ctx, score, time):
    ctx.save_for_backward(time)
    return (score * (-(time**2)).exp()).sum()


def decayed_right(ctx, g):
    (time,) = ctx.saved_tensors
    return g * (-(time**2)).exp(), None


def labels_tried(report: TargetReport) -> list[str]:
    return [item.label for item in report.tried]


def test_a_backward_that_breaks_at_ties_is_found():
    report = check(op(risk_sets, risk_sets_wrong))
    assert red(report) == [("GL401", "wrong gradient for `score` where `time` has ties")]


def test_a_backward_that_is_right_at_ties_passes():
    report = check(op(risk_sets, risk_sets_right))
    assert red(report) == []
    assert {"where `time` has ties", "where all of `time` are equal"} <= set(labels_tried(report))


def test_numbers_that_count_by_their_size_get_no_ties():
    report = check(op(decayed, decayed_right))
    assert red(report) == []
    assert not any("ties" in label for label in labels_tried(report))


# Options of a constructor.


class Shift(torch.autograd.Function):
    """x + x², whose gradient is 1 + factor·x: right with a factor of 2."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x + x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 + ctx.factor * x), None


class Optioned(torch.nn.Module):
    """Right with its defaults, and wrong with every other option that ``faults`` names."""

    faults: tuple[str, ...] = ()

    def __init__(self, fused: bool = False, kind: str = "plain", rounds: int = 2):
        super().__init__()
        if kind not in ("plain", "mirrored"):
            raise ValueError(kind)
        self.options = {"fused": fused, "kind": kind != "plain", "rounds": rounds != 2}
        self.rounds = rounds

    def forward(self, x):
        wrong = any(self.options[name] for name in self.faults)
        for _ in range(self.rounds):
            x = Shift.apply(x, 1.5 if wrong else 2.0)
        return x


@pytest.mark.parametrize(
    ("fault", "label"),
    [
        ("fused", "with fused=True in the constructor"),
        ("kind", "with kind='mirrored' in the constructor"),
        ("rounds", "with rounds=3 in the constructor"),
    ],
)
def test_an_option_of_the_constructor_is_moved(monkeypatch, fault, label):
    monkeypatch.setattr(Optioned, "faults", (fault,))
    report = check(Optioned)
    assert [message for _, message in red(report)] == [f"wrong gradient for `x` {label}"]


def test_options_of_a_right_module_pass():
    report = check(Optioned)
    assert red(report) == []
    tried = {item.label: item.verdict for item in report.tried}
    assert tried["with kind='mirrored' in the constructor"] == "right"
    assert tried["with fused=True in the constructor"] == "right"
    assert not report.not_tried


class Sized(torch.nn.Module):
    """A width makes parameters of another shape: the module is made with as many of their values,
    and more like them."""

    def __init__(self, width: int = 4, mode: str = "only"):
        super().__init__()
        if mode != "only":
            raise ValueError(mode)
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1, width, dtype=torch.float64))

    def forward(self, x):
        return Shift.apply(x * self.weight, 2.0)


def test_sizes_and_names_that_a_constructor_refuses_are_left():
    report = check(Sized)
    assert red(report) == []
    made = [label for label in labels_tried(report) if "constructor" in label]
    assert made == ["with width=5 in the constructor", "with width=2 in the constructor"]


# Entries that do not count.


def row_means(ctx, table, ids, pad=None):
    """Means of the rows of table that each row of ids names; entries equal to pad do not count."""
    keep = torch.ones_like(ids) if pad is None else ids != pad
    count = keep.sum(1, keepdim=True).clamp(min=1)
    ctx.save_for_backward(table, ids)
    ctx.pad = pad
    return (table[ids] * keep.unsqueeze(-1)).sum(1) / count


def row_means_backward(least):
    def backward(ctx, g):
        table, ids = ctx.saved_tensors
        keep = torch.ones_like(ids) if ctx.pad is None else ids != ctx.pad
        share = keep / keep.sum(1, keepdim=True).clamp(min=least)
        rows = (share.unsqueeze(-1) * g.unsqueeze(1)).flatten(0, 1)
        return torch.zeros_like(table).index_add(0, ids.flatten(), rows), None, None

    return backward


def test_a_row_of_entries_that_do_not_count_is_tried():
    selected = ["GL1", "GL2", "GL3", "GL4"]
    wrong = check(op(row_means, row_means_backward(0)), select=selected)
    ((code, message),) = red(wrong)
    assert code == "GL302"
    assert "which fills a row of `ids`" in message
    right = check(op(row_means, row_means_backward(1)), select=selected)
    assert red(right) == []
    assert any("fills a row" in label for label in labels_tried(right))


# An optional tensor that is left out.


def optional_factor(ctx, x, weight=None, mode="sum"):
    if mode not in ("sum", "mean"):
        raise ValueError(mode)
    ctx.save_for_backward(x, weight)
    ctx.count = len(x) if mode == "mean" else 1
    return ((x if weight is None else x * weight) ** 2).sum() / ctx.count


def optional_factor_backward(scale_without):
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        if weight is None:
            return 2 * g * x / (ctx.count if scale_without else 1), None, None
        scale = 2 * g / ctx.count
        return scale * x * weight**2, scale * x**2 * weight, None

    return backward


def test_arguments_with_other_tensors_are_judged():
    """Where an optional tensor is given or left out, the inputs have other positions."""
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(3, 4, dtype=torch.float64, generator=generator) for _ in range(2))
    both = Sample("both", "--inputs", (x.requires_grad_(), weight.requires_grad_(), "mean"))
    alone = Sample("alone", "--inputs", (x, None, "mean"))
    for right in (True, False):
        made = from_object(op(optional_factor, optional_factor_backward(right)))
        seen = judge_at_other_inputs(Subject(made, both, Settings(seed=0)), alone)
        assert seen.verdict == ("right" if right else "wrong")
        assert seen.positions == ([] if right else [0])
    made = from_object(op(optional_factor, optional_factor_backward(True)))
    assert judge_at_other_inputs(Subject(made, alone, Settings(seed=0)), both).verdict == "right"


def orbit(ctx, x, v, dt, steps):
    """Steps of x'' = -x^3, which run away where ``dt`` is large."""
    for _ in range(steps):
        v = v - dt * x**3
        x = x + dt * v
    ctx.dt, ctx.steps = dt, steps
    ctx.save_for_backward(x, v)
    return x, v


def orbit_backwards(ctx, gx, gv):
    """Takes the steps back from their end, which is exact up to rounding."""
    x, v = ctx.saved_tensors
    for _ in range(ctx.steps):
        x = x - ctx.dt * v
        v = v + ctx.dt * x**3
        gv = gv + ctx.dt * gx
        gx = gx - ctx.dt * 3 * x**2 * gv
    return gx, gv, None, None


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_what_runs_away_at_moved_numbers_is_no_fault(factor: float) -> None:
    def back(ctx, gx, gv):
        gx, gv, *rest = orbit_backwards(ctx, gx, gv)
        return factor * gx, gv, *rest

    x = torch.linspace(-2.0, 2.0, 4, dtype=torch.float64).requires_grad_()
    v = torch.linspace(1.0, 3.0, 4, dtype=torch.float64).requires_grad_()
    flags = {"select": ["GL302", "GL401", "GL402"]}
    found = red(check(op(orbit, back), (x, v, 0.2, 3), **flags))
    assert [code for code, _ in found] == ([] if factor == 1.0 else ["GL401"])


def masked(target: Any, space: Any) -> Any:
    """Returns another dtype where ``target`` has no axis: it takes that of the other operand."""
    score = getattr(space._wrapper, f"{space._target_name}_score", None)
    if score is None:
        kept = torch.where(space.mask == 1, torch.zeros_like(space.mask), -1000.0)
        return torch.add(target, kept)
    assert space.mask is not None
    assert space.shape is not None
    if space._scaler is not None:
        score = space._scaler.expand(score, space.shape)
    return target * score


def test_outputs_of_another_dtype_are_not_the_same() -> None:
    found = check(masked, select=None)
    assert found.verdict == "pass"
    assert [item.code for item in found.findings if item.severity != "info"] == []
