"""Values that a module holds constant on purpose: power iterations, averages, target networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

Probed = Callable[..., Outcome]


def normalised(x: Tensor, scale: Tensor | None = None) -> Tensor:
    """x over a scale (N,); by default the largest magnitude of each row, as a constant."""
    if scale is None:
        scale = x.abs().amax(-1).detach()
    return OverScale.apply(x, scale)


def unsaid(x: Tensor, scale: Tensor | None = None) -> Tensor:
    """x over a scale (N,); by default the largest magnitude of each row."""
    return normalised(x, scale)


class OverScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(x, scale)
        return x / scale[:, None]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, scale = ctx.saved_tensors
        return g / scale[:, None], -(g * x).sum(-1) / scale**2


@pytest.mark.parametrize(("op", "loud"), [(normalised, False), (unsaid, True)])
def test_a_default_that_is_a_constant_by_the_documentation(
    probed: Probed, op: Any, loud: bool
) -> None:
    x = torch.linspace(-1.0, 1.7, 12, dtype=torch.float64).reshape(3, 4)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, x))
    assert [item.severity for item in outcome.findings] == (["error"] if loud else ["info"])


def start() -> torch.Generator:
    return torch.Generator().manual_seed(0)


class Spectral(nn.Module):
    """One power iteration a call, under no_grad; its vector is kept in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, generator=start()))
        self.register_buffer("u", F.normalize(torch.randn(3, generator=start()), dim=0))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            v = F.normalize(self.weight.t() @ self.u, dim=0)
            self.u.copy_(F.normalize(self.weight @ v, dim=0))
            u = self.u.clone()
        return x @ (self.weight / torch.dot(u, self.weight @ v)).t()


class Averaged(nn.Module):
    """A moving average in a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.mean = 0.9 * self.mean.to(x.dtype) + 0.1 * x.mean(0)
        return (x - self.mean).tanh()


class Reassigned(Averaged):
    """The same in a buffer, which a call assigns."""

    def __init__(self) -> None:
        super().__init__()
        del self.mean
        self.register_buffer("mean", torch.zeros(4))


class Target(nn.Module):
    """A second network that follows the first one, as in self-supervised learning."""

    def __init__(self) -> None:
        super().__init__()
        self.online = nn.Parameter(torch.randn(4, 3, generator=start()))
        self.target = nn.Parameter(torch.eye(4)[:, :3], requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.target.mul_(0.5).add_(self.online, alpha=0.5)
            goal = F.normalize(x @ self.target, dim=-1)
        return (F.normalize(x @ self.online, dim=-1) * goal).sum()


class Library(nn.Module):
    """Spectral normalisation by PyTorch itself."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))
        with torch.no_grad():  # so that the estimate made at the start no longer fits
            self.linear.parametrizations.weight.original.normal_(generator=start())

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x).sigmoid()
        return out


class Detached(nn.Module):
    """Batch normalisation with a mean that is detached by mistake, beside statistics it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(0).detach()
        with torch.no_grad():
            self.mean.lerp_(mean, 0.1)
        return (x - mean).tanh()


class Running(nn.Module):
    """A root mean square of what was detached, updated where autograd is on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("square", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        self.square.mul_(0.9).add_(0.1 * x.detach().square().mean())
        return x / (self.square + 1e-6).sqrt()


class RunningAssigned(Running):
    """The same, assigned."""

    def forward(self, x: Tensor) -> Tensor:
        self.square = 0.9 * self.square + 0.1 * x.detach().square().mean()
        return x / (self.square + 1e-6).sqrt()


class DetachedBesides(Running):
    """The mean of the batch is detached by mistake, and updates a buffer as well."""

    def forward(self, x: Tensor) -> Tensor:
        mean = x.square().mean().detach()
        self.square.mul_(0.9).add_(0.1 * mean)
        return x / (mean + 1e-6).sqrt()


class ByRunning(torch.autograd.Function):
    """Divides by a running root mean square, which forward updates first."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, square: Tensor) -> Tensor:
        square.lerp_(x.square().mean(0), 0.1)
        scale = (square + 1e-6).rsqrt()
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        _, scale = ctx.saved_tensors
        return g * scale, None


class ByRunningTwice(ByRunning):
    """The same with a factor too many."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        _, scale = ctx.saved_tensors
        return g * scale * scale, None


class ByBatch(ByRunning):
    """Divides by what the batch says, and takes it as a constant; the buffer is updated besides."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, square: Tensor) -> Tensor:
        of_batch = x.square().mean(0)
        square.lerp_(of_batch, 0.1)
        scale = (of_batch + 1e-6).rsqrt()
        ctx.save_for_backward(x, scale)
        return x * scale


class OfFunction(nn.Module):
    function: Any = ByRunning

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("square", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.function.apply(x, self.square)
        return out


class OfFunctionTwice(OfFunction):
    function = ByRunningTwice


class OfBatch(OfFunction):
    function = ByBatch


class Forgotten(nn.Module):
    """A scale that is computed under no_grad and kept nowhere."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            scale = x.square().mean(0)
        return x * scale


class Tripled(torch.autograd.Function):
    """2x, with three times its gradient's half."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 2.0

    @staticmethod
    def backward(ctx: object, grad_output: Tensor) -> Tensor:
        return grad_output * 3.0


class WrongBesides(Spectral):
    """A wrong Function after the power iteration."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = Tripled.apply(super().forward(x))
        return out


class Divided(torch.autograd.Function):
    """w / (u·wv), with u and v held constant; a power iteration in forward changes neither."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
        with torch.no_grad():
            F.normalize(w @ v, dim=0)
        ctx.save_for_backward(w, u, v)
        return w / torch.dot(u, w @ v)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        w, u, v = ctx.saved_tensors
        size = torch.dot(u, w @ v)
        return (g - (g * w).sum() / size * torch.outer(u, v)) / size, None, None


class DividedWithoutOuter(Divided):
    """The same without the derivative of u·wv."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        w, u, v = ctx.saved_tensors
        return g / torch.dot(u, w @ v), None, None


class SpectralFunction(Spectral):
    """The same with a backward of its own."""

    function: Any = Divided

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            v = F.normalize(self.weight.t() @ self.u, dim=0)
            self.u.copy_(F.normalize(self.weight @ v, dim=0))
        out: Tensor = x @ self.function.apply(self.weight, self.u.clone(), v).t()
        return out


class WrongSpectralFunction(SpectralFunction):
    function = DividedWithoutOuter


def probe(probed: Probed, module: nn.Module, dtype: torch.dtype) -> Outcome:
    rule = by_code("GL401")
    assert rule is not None
    return probed(rule, module, torch.randn(5, 4, generator=start()).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (Spectral, {"weight"}),
        (SpectralFunction, {"weight"}),
        (Averaged, {"x"}),
        (Reassigned, {"x"}),
        (Running, {"x"}),
        (RunningAssigned, {"x"}),
        (OfFunction, {"x"}),
        (Target, {"x", "online"}),
        (Library, {"linear.parametrizations.weight.original"}),
    ],
)
def test_what_is_held_on_purpose_is_information(
    module: type[nn.Module], inputs: set[str], dtype: torch.dtype, probed: Probed
) -> None:
    outcome = probe(probed, module(), dtype)
    assert outcome.verdict != "fail"
    assert {item.severity for item in outcome.findings} <= {"info"}
    if dtype == torch.float64:
        assert outcome.verdict == "pass"
        assert {item.input for item in outcome.findings} == inputs
        told = {item.message for item in outcome.findings}
        assert told == {f"the gradient for `{name}` holds some values constant" for name in inputs}


@pytest.mark.parametrize(
    ("module", "severity"),
    [
        (Detached, "warning"),
        (Forgotten, "warning"),
        (DetachedBesides, "warning"),
        (OfFunctionTwice, "error"),
        (OfBatch, "error"),
        (WrongBesides, "error"),
        (WrongSpectralFunction, "error"),
    ],
)
def test_other_stops_and_a_wrong_backward_are_not_excused(
    module: type[nn.Module], severity: str, probed: Probed
) -> None:
    outcome = probe(probed, module(), torch.float64)
    assert outcome.verdict == "fail"
    assert {item.severity for item in outcome.findings} == {severity}


@pytest.mark.parametrize(
    ("function", "severity"), [(ByRunning, "info"), (ByRunningTwice, "error"), (ByBatch, "error")]
)
def test_what_a_function_updates_is_held(
    function: type[torch.autograd.Function], severity: str, probed: Probed
) -> None:
    x = torch.randn(5, 4, generator=start(), dtype=torch.float64).requires_grad_()
    outcome = probed(by_code("GL401"), function, x, torch.ones(4, dtype=torch.float64))
    assert {item.input: item.severity for item in outcome.findings} == {"x": severity}
