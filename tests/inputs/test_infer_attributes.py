"""Arguments that are objects: what the code reads from them is searched for."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional as F

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs.not_found import NoInputsFound
from gradlint.inputs.stand_ins import Attributes
from gradlint.reproduction.literal import Literals
from gradlint.targets.build import from_object


class Affine(Function):
    @staticmethod
    def forward(ctx, x, cfg):
        ctx.cfg = cfg
        return x * cfg.scale + cfg.shift

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.cfg.scale, None


class WrongAffine(Affine):
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.cfg.shift, None


class Convolution(Function):
    @staticmethod
    def forward(ctx, x, w, args):
        ctx.args = args
        ctx.save_for_backward(x, w)
        return F.conv2d(x, w, stride=args.stride, padding=args.padding)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        stride, padding = ctx.args.stride, ctx.args.padding
        return (
            nn.grad.conv2d_input(x.shape, w, grad, stride, padding),
            nn.grad.conv2d_weight(x, w.shape, grad, stride, padding),
            None,
        )


class Pooled(Function):
    """Its conditions are met by repairs of single attributes."""

    @staticmethod
    def forward(ctx, x, spec):
        if spec.width % 2 == 0 or spec.width < 5:
            raise ValueError("width")
        if spec.form not in ("hann", "box"):
            raise ValueError("form")
        assert x.shape[-1] >= spec.width
        ctx.width = spec.width
        return F.avg_pool1d(x, spec.width, 1)

    @staticmethod
    def backward(ctx, grad):
        weight = grad.new_ones(grad.shape[1], 1, ctx.width) / ctx.width
        return F.conv_transpose1d(grad, weight, groups=grad.shape[1]), None


class Edges(Function):
    """Attributes that are tensors, and indices."""

    @staticmethod
    def forward(ctx, x, graph):
        ctx.graph, ctx.count = graph, len(x)
        return x[graph.src] * graph.weight[:, None]

    @staticmethod
    def backward(ctx, grad):
        zeros = grad.new_zeros(ctx.count, grad.shape[1])
        return zeros.index_add(0, ctx.graph.src, grad * ctx.graph.weight[:, None]), None


class Clipped(Function):
    """Attributes that are named like methods of texts."""

    @staticmethod
    def forward(ctx, x, bounds):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = bounds.lower, bounds.upper
        return x.clamp(bounds.lower, bounds.upper)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x >= ctx.low) & (x <= ctx.high)), None


class Helped(Function):
    """The object is passed on, and taken apart elsewhere."""

    @staticmethod
    def forward(ctx, x, options):
        ctx.options = options
        return _scaled(x, options)

    @staticmethod
    def backward(ctx, grad):
        return _scaled(grad, ctx.options), None


def _scaled(x, given):
    return x * given.alpha * given.beta


class Apart(Function):
    """Only the caller knows how the two slopes belong together."""

    @staticmethod
    def forward(ctx, x, act):
        ctx.act = act
        return x * act.slope

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.act.grad_slope, None


class Space:
    """Not made without arguments."""

    def __init__(self, parent):
        self.scale, self.scaler = parent.scale, parent.scaler


class Annotated(Function):
    """Its object is of a class; an attribute may be None, and is an object itself otherwise."""

    @staticmethod
    def forward(ctx, x, space: Space):
        ctx.scale = space.scale
        if space.scaler is not None:
            ctx.scale = space.scaler.expand(space.scale)
        return x * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


Annotated.forward.__annotations__["space"] = Space


def with_keyword(x, *, cfg):
    return (x * cfg.temperature).tanh()


RIGHT = [Affine, Convolution, Pooled, Edges, Helped, Annotated]


def object_of(op) -> Attributes:
    sample = infer(from_object(op), 0)[0]
    (found,) = (v for v in (*sample.args, *sample.kwargs.values()) if isinstance(v, Attributes))
    return found


@pytest.mark.parametrize("op", RIGHT)
def test_right_ones_pass(op):
    report = gradlint.check(op, order=1, seed=0)
    assert [f for f in report.findings if f.severity != "info"] == []
    assert report.targets[0].verdict == "pass"


def test_a_wrong_gradient_is_found():
    [finding] = gradlint.check(WrongAffine, select="GL401", seed=0).findings
    assert (finding.code, finding.severity, finding.input) == ("GL401", "error", "x")


def test_attributes_fit_what_the_code_asks_for():
    assert vars(object_of(Affine)).keys() == {"scale", "shift"}
    assert object_of(Affine).scale != object_of(Affine).shift
    pooled = object_of(Pooled)
    assert pooled.width >= 5
    assert pooled.width % 2 == 1
    assert pooled.form in ("hann", "box")
    edges = object_of(Edges)
    assert edges.src.dtype == torch.int64
    assert edges.weight.shape == edges.src.shape
    assert not edges.weight.requires_grad
    assert vars(object_of(Clipped)).keys() == {"lower", "upper"}
    assert vars(object_of(Helped)).keys() == {"alpha", "beta"}
    assert object_of(with_keyword).temperature > 0


def test_the_report_names_the_attributes():
    [target] = gradlint.check(Affine, select="GL401", seed=0).targets
    values = {argument.name: argument.value for argument in target.samples[0].args}
    assert values["cfg"] == "Attributes(scale=0.7, shift=0.63)"
    assert "cfg.scale = 0.7, chosen: it has no default" in target.samples[0].notes


def test_what_backward_alone_reads_is_not_held_against_it():
    [finding] = gradlint.check(Apart, select="GL401", seed=0).findings
    assert (finding.severity, finding.grounds.explained) == ("info", "called")


class Methods(Function):
    @staticmethod
    def forward(ctx, x, graph):
        ctx.graph = graph
        return graph.spread(x) * graph.weight

    @staticmethod
    def backward(ctx, grad):
        return ctx.graph.gather(grad), None


class Counted(Function):
    @staticmethod
    def forward(ctx, x, state):
        state.calls = state.calls + 1
        return x * state.weird

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@pytest.mark.parametrize("op", [Methods, Counted])
def test_objects_with_methods_or_state_are_not_made_up(op):
    with pytest.raises(NoInputsFound):
        infer(from_object(op), 0)


class Never(Function):
    @staticmethod
    def forward(ctx, x, cfg, dim=0):
        raise RuntimeError(f"no {cfg.scale} {cfg.weight}")

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


def test_the_line_to_add_makes_an_object():
    with pytest.raises(NoInputsFound) as caught:
        infer(from_object(Never), 0)
    assert "# x, cfg\n" in caught.value.line_to_add
    assert "SimpleNamespace(scale=0.5, weight=torch.randn(3, 4))" in caught.value.line_to_add


class Scaled(nn.Module):
    """Methods that it calls are passed the module first."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.scaled(x)

    def scaled(self, x):
        return x * self.weight


def chosen(x, how: Literal["up", "down"]):
    return {"up": x.exp, "down": x.neg}[how]()


@pytest.mark.parametrize("op", [Scaled(), chosen])
def test_methods_of_tensors_and_of_the_module_are_no_attributes(op):
    assert isinstance(infer(from_object(op), 0)[0].args[0], torch.Tensor)


class Shaped(Function):
    @staticmethod
    def forward(ctx, x, like):
        ctx.shape = x.shape
        return x.expand(like.shape).to(like.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad.sum_to_size(ctx.shape), None


def test_a_tensor_of_which_only_the_shape_is_read_stays_one():
    """A near miss: tensors have these attributes, too."""
    assert isinstance(infer(from_object(Shaped), 0)[0].args[1], torch.Tensor)


def test_a_script_can_write_it():
    literals = Literals()
    text = literals.of(object_of(Edges))
    script = "import torch\n" + "\n".join(literals.lines) + f"\nprint({text}.src.tolist())"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(object_of(Edges).src.tolist())
