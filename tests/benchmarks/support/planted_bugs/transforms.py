"""Program transforms: vmap, torch.func, torch.compile, export, tensor-likes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from tests.benchmarks.support.planted_bugs import Bug


def _randn(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(7)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def _matrix() -> tuple[Tensor]:
    return (_randn(3, 4),)


def _pair() -> tuple[Tensor, Tensor]:
    return _randn(3, 4), _randn(3, 4) + 0.5


# -- vmap --------------------------------------------------------------------------------------


class _Softmax(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.softmax(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))


class SoftmaxOverTheBatch(_Softmax):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        return SoftmaxOverTheBatch.apply(x), in_dims[0]


class SoftmaxBeforeTheBatch(_Softmax):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        return SoftmaxBeforeTheBatch.apply(x.movedim(in_dims[0], 0)), 0


class _Mul(Function):
    @staticmethod
    def forward(x: Tensor, w: Tensor) -> Tensor:
        return x * w

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        x, w = ctx.saved_tensors
        return grad_output * w, grad_output * x


class MulSharedAtAnotherAxis(_Mul):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, w: Tensor) -> Any:
        x, w = (
            t.unsqueeze(1).expand(-1, info.batch_size, -1) if dim is None else t.movedim(dim, 0)
            for t, dim in zip((x, w), in_dims, strict=True)
        )
        return MulSharedAtAnotherAxis.apply(x, w), 0


class MulSharedExpanded(_Mul):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor, w: Tensor) -> Any:
        x, w = (
            t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)
            for t, dim in zip((x, w), in_dims, strict=True)
        )
        return MulSharedExpanded.apply(x, w), 0


class _Normalize(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x / x.norm()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return (grad_output - y * (y * grad_output).sum()) / x.norm()


class NormOfTheWholeBatch(_Normalize):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        return NormOfTheWholeBatch.apply(x), in_dims[0]


class NormOfEachSample(_Normalize):
    generate_vmap_rule = True


class SineOutDimAsIn(Function):
    """Its vmap returns the batch at the front, and says that it is where it came in."""

    front = False

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()

    @classmethod
    def vmap(cls, info: Any, in_dims: Any, x: Tensor) -> Any:
        moved = x.movedim(in_dims[0], 0)
        return cls.apply(moved), 0 if cls.front else in_dims[0]


class SineOutDimFront(SineOutDimAsIn):
    front = True


# -- torch.func --------------------------------------------------------------------------------


class SineAside(Function):
    aside: list[Tensor] = []  # noqa: RUF012

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        SineAside.aside[:] = [x]
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return grad_output * SineAside.aside[0].cos()


class SineSaved(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class TanhFastUnlessTraining(Function):
    """Takes a rational approximation where it thinks that nobody differentiates."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.tanh() if x.requires_grad else x * (27 + x * x) / (27 + 9 * x * x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * (1 - x.tanh() ** 2)


class TanhAlways(TanhFastUnlessTraining):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.tanh()


class CubeTangentByLevel(Function):
    """Its tangent is another inside of a functorch transform."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        inside = torch._C._functorch.peek_interpreter_stack() is not None
        return tangent * (2 if inside else 3) * x**2


class CubeTangent(CubeTangentByLevel):
    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return tangent * 3 * x**2


# -- torch.compile -----------------------------------------------------------------------------


@torch.library.custom_op("planted::double_quietly", mutates_args=())
def double_quietly(x: Tensor) -> None:
    """Writes to x, and does not say so."""
    x.mul_(2)


@torch.library.custom_op("planted::double_openly", mutates_args={"x"})
def double_openly(x: Tensor) -> None:
    """Writes to x, and says so."""
    x.mul_(2)


double_quietly.register_fake(lambda x: None)
double_openly.register_fake(lambda x: None)


class SinTwiceUndeclared(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = x.sin()
        double_quietly(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.cos()


class SinTwiceDeclared(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        y = x.sin()
        double_openly(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.cos()


def _registered(name: str, fake: Any) -> Any:
    """exp(xᵀ) as a registered operator with the fake kernel ``fake``."""

    @torch.library.custom_op(f"planted::{name}", mutates_args=())
    def exp_of_transpose(x: Tensor) -> Tensor:
        return x.mT.exp()

    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(output)

    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return (grad_output * y).mT

    exp_of_transpose.register_autograd(backward, setup_context=setup_context)
    exp_of_transpose.register_fake(fake)
    return exp_of_transpose


exp_fake_untransposed = _registered("exp_fake_untransposed", lambda x: torch.empty_like(x))
exp_fake_float32 = _registered(
    "exp_fake_float32", lambda x: torch.empty_like(x.mT, dtype=torch.float32)
)
exp_fake_right = _registered("exp_fake_right", lambda x: torch.empty_like(x.mT))


class SoftplusWhenCompiling(Function):
    """The path for the compiler left out the stable form, and then the factor too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        if torch.compiler.is_compiling():
            return x.exp().log1p()
        return torch.nn.functional.softplus(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        if torch.compiler.is_compiling():
            return grad_output / (1 + x.exp())
        return grad_output * x.sigmoid()


class SoftplusAlways(SoftplusWhenCompiling):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.sigmoid()


# -- export ------------------------------------------------------------------------------------


class HardSigmoidWhenTraced(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if torch.jit.is_tracing() or torch.compiler.is_exporting():
            return (0.2 * x + 0.5).clamp(0, 1)
        return x.sigmoid()


class SigmoidAlways(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sigmoid()


class GeluWhenExported(torch.nn.Module):
    """Exports the approximation by tanh in place of the error function."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 0.5, 1.5]))

    def forward(self, x: Tensor) -> Tensor:
        form = "tanh" if torch.compiler.is_compiling() else "none"
        return torch.nn.functional.gelu(self.scale * x, approximate=form)


class GeluAlways(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 0.5, 1.5]))

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.gelu(self.scale * x)


class MeanLeftOutInTrace(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        if torch.jit.is_tracing() or torch.compiler.is_exporting():
            mean = torch.zeros_like(mean)
        return (x - mean).tanh()


class MeanAlways(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)).tanh()


# -- tensor-likes ------------------------------------------------------------------------------


class SineOfExactTensors(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if type(x) is not torch.Tensor:
            x = torch.tensor(x.tolist(), dtype=x.dtype)
        return x.sin()


class SineOfTensors(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x)


def detaches_subclasses(x: Tensor, w: Tensor) -> Tensor:
    """x·exp(w), but takes what it does not know as data."""
    if type(w) not in (torch.Tensor, torch.nn.Parameter):
        w = w.detach()
    return x * w.exp()


def takes_subclasses(x: Tensor, w: Tensor) -> Tensor:
    """x·exp(w)."""
    return x * w.exp()


def hands_over_swapped(x: Tensor, y: Tensor) -> Any:
    """x·sin(y), handed over with the arguments swapped."""
    if torch.overrides.has_torch_function((x, y)):
        return torch.overrides.handle_torch_function(hands_over_swapped, (x, y), y, x)
    return x * y.sin()


def hands_over(x: Tensor, y: Tensor) -> Any:
    """x·sin(y)."""
    if torch.overrides.has_torch_function((x, y)):
        return torch.overrides.handle_torch_function(hands_over, (x, y), x, y)
    return x * y.sin()


class _Relu6(Function):
    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * ((x > 0) & (x < 6))


class SubclassSkipsTheBound(_Relu6):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        # The "fast path" for plain tensors is the only complete one.
        return x.clamp(0, 6) if type(x) is torch.Tensor else x.relu() * 1.5


class SubclassAsTensor(_Relu6):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(0, 6)


_VMAP = "vmap rules of custom Functions"
_FUNC = "ops under torch.func"
_CLASS = "class 14: fake kernel, schema, aliasing"
_EXPORT = "exported forwards"
_LIKE = "tensor-likes"

BUGS = [
    Bug(
        "vmap reduces over the batch axis",
        "GL901",
        SoftmaxOverTheBatch,
        SoftmaxBeforeTheBatch,
        _matrix,
        _VMAP,
    ),
    Bug(
        "vmap expands a shared input at another axis",
        "GL901",
        MulSharedAtAnotherAxis,
        MulSharedExpanded,
        lambda: (_randn(2, 4), _randn(2, 4) + 0.5),
        _VMAP,
    ),
    Bug(
        "vmap normalizes the whole batch",
        "GL901",
        NormOfTheWholeBatch,
        NormOfEachSample,
        _matrix,
        _VMAP,
    ),
    Bug("vmap names the wrong out_dim", "GL901", SineOutDimAsIn, SineOutDimFront, _matrix, _VMAP),
    Bug(
        "puts tensors aside in the class",
        "GL902",
        SineAside,
        SineSaved,
        _matrix,
        _FUNC,
        also=("GL604", "GL608", "GL609", "GL901", "GL903", "GL905"),
    ),
    Bug(
        "asks requires_grad what to compute",
        "GL902",
        TanhFastUnlessTraining,
        TanhAlways,
        _matrix,
        _FUNC,
        also=("GL110", "GL401", "GL609", "GL903", "GL905", "GL402"),
    ),
    Bug(
        "tangent depends on the transform", "GL902", CubeTangentByLevel, CubeTangent, _matrix, _FUNC
    ),
    Bug(
        "undeclared mutation is dropped",
        "GL903",
        SinTwiceUndeclared,
        SinTwiceDeclared,
        _matrix,
        "KellerJordan/modded-nanogpt#83",
        also=("GL905", "GL601"),
    ),
    Bug(
        "fake kernel forgets the transposition",
        "GL903",
        exp_fake_untransposed,
        exp_fake_right,
        _matrix,
        "NVIDIA/cuEquivariance#223",
        also=("GL905",),
    ),
    Bug(
        "fake kernel has another dtype",
        "GL903",
        exp_fake_float32,
        exp_fake_right,
        _matrix,
        _CLASS,
        also=("GL905",),
    ),
    Bug(
        "another backward when compiling",
        "GL903",
        SoftplusWhenCompiling,
        SoftplusAlways,
        _matrix,
        "special paths for the compiler",
    ),
    Bug(
        "another formula while traced",
        "GL905",
        HardSigmoidWhenTraced,
        SigmoidAlways,
        _matrix,
        _EXPORT,
    ),
    Bug(
        "an approximation is exported",
        "GL905",
        GeluWhenExported,
        GeluAlways,
        _matrix,
        _EXPORT,
        also=("GL903",),
    ),
    Bug(
        "a statistic is left out while traced",
        "GL905",
        MeanLeftOutInTrace,
        MeanAlways,
        _matrix,
        _EXPORT,
    ),
    Bug(
        "copies what is no exact Tensor", "GL906", SineOfExactTensors, SineOfTensors, _matrix, _LIKE
    ),
    Bug("detaches subclasses", "GL906", detaches_subclasses, takes_subclasses, _pair, _LIKE),
    # Exporters hand over subclasses too.
    Bug(
        "hands over swapped arguments",
        "GL906",
        hands_over_swapped,
        hands_over,
        _pair,
        _LIKE,
        also=("GL905",),
    ),
    Bug(
        "a branch for exact Tensors only",
        "GL906",
        SubclassSkipsTheBound,
        SubclassAsTensor,
        _matrix,
        _LIKE,
        also=("GL905",),
    ),
]
