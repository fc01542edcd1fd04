"""torch's verdict beside ours: why they disagree where they do."""

from __future__ import annotations

import itertools
import sys

import pytest
import torch

from gradlint.checking import torch_verdict as _torch_verdict
from gradlint.checking.examine import examine
from gradlint.checking.severity import as_loud_as_evidence
from gradlint.checking.torch_verdict import SEEN_AS_INFORMATION, WRITES_TO_INPUT, torch_verdict
from gradlint.experiments.subject import Subject
from gradlint.model.events import Event, TorchVerdictMade
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code
from gradlint.targets.build import from_object

GL401 = by_code("GL401")


class Doubled(torch.autograd.Function):
    """sin 2x, which doubles its input."""

    @staticmethod
    def forward(ctx, x):
        x *= 2
        ctx.save_for_backward(x.cos())
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (slope,) = ctx.saved_tensors
        return 2 * g * slope


class Untouched(Doubled):
    @staticmethod
    def forward(ctx, x):
        return Doubled.forward(ctx, x.clone())


class OffByLittle(Untouched):
    """Wrong by more than gradlint tolerates, and less than gradcheck does."""

    @staticmethod
    def backward(ctx, g):
        return Doubled.backward(ctx, g) * (1 + 1e-4)


class Centred(torch.nn.Module):
    """x − m, where m is a moving average of x that no gradient goes through."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros((), dtype=torch.float64))

    def forward(self, x):
        with torch.no_grad():
            self.mean += 0.5 * (x.mean() - self.mean)
        return Minus.apply(x, self.mean.clone())


class Minus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean):
        return x - mean

    @staticmethod
    def backward(ctx, g):
        return g, -g.sum()


class LostTwice(torch.autograd.Function):
    """sin x, whose second derivative is lost: its slope is saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.cos())
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (slope,) = ctx.saved_tensors
        return g * slope


def test_a_second_derivative_that_is_lost_is_no_confirmation():
    x = torch.tensor([0.3, -1.1, 0.9], dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(LostTwice), Sample("test", "given", (x,)), Settings(seed=1))
    assert GL401.probe(subject).verdict == "pass"
    assert by_code("GL502").probe(subject).verdict == "fail"
    found = torch_verdict(subject, "gradgradcheck", "fail", ["GL502"])
    assert (found.verdict, found.agreement) == ("fail", "agrees")


def test_what_is_held_constant_is_not_said_to_be_confirmed():
    x = torch.tensor([0.3, -1.1, 0.9], dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(Centred()), Sample("test", "given", (x,)), Settings(seed=1))
    assert as_loud_as_evidence(GL401.probe(subject)).verdict == "pass"
    found = torch_verdict(subject, "gradcheck", "pass")
    assert (found.verdict, found.agreement) == ("fail", SEEN_AS_INFORMATION)


@pytest.mark.parametrize(
    ("op", "ours", "verdict", "agreement"),
    [
        (Doubled, "pass", "fail", WRITES_TO_INPUT),
        (Untouched, "pass", "pass", "agrees"),
        (OffByLittle, "fail", "pass", "gradlint is right: with atol=1e-07, rtol=1e-05 it fails"),
    ],
)
def test_why_torch_says_otherwise(op, ours, verdict, agreement):
    x = torch.tensor([0.3, -1.1, 0.9, 0.2], dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(op), Sample("test", "given", (x,)), Settings(seed=1))
    failing = ["GL401"] if GL401.probe(subject).verdict == "fail" else []
    found = torch_verdict(subject, "gradcheck", ours, failing)
    assert (found.verdict, found.sample) == (verdict, "test")
    assert found.agreement.startswith(agreement)
    assert x.tolist() == [0.3, -1.1, 0.9, 0.2]


@pytest.mark.parametrize("where", [torch.autograd, sys.modules["torch.autograd.gradcheck"]])
def test_torch_is_asked_whatever_the_op_puts_in_its_place(monkeypatch, where):
    """A suite on the drop-ins does so on import: what speaks for torch must not be gradlint."""

    def swapped(*_, **__):
        raise AssertionError("this is not torch's check")

    for name in ("gradcheck", "gradgradcheck"):
        monkeypatch.setattr(where, name, swapped)
    x = torch.tensor([0.3, -1.1, 0.9], dtype=torch.float64, requires_grad=True)
    assert asked(Untouched, x, "pass").agreement == "agrees"
    found = asked(Wrong, x, "fail", "GL401")
    assert (found.verdict, found.agreement) == ("fail", "agrees")
    assert "Jacobian mismatch" in found.message
    subject = Subject(from_object(torch.sin), Sample("test", "given", (x,)), Settings(seed=1))
    assert torch_verdict(subject, "gradgradcheck", "pass").agreement == "agrees"


def asked(op, x: torch.Tensor, ours: str, *failing: str):
    subject = Subject(from_object(op), Sample("test", "given", (x,)), Settings(seed=1))
    return torch_verdict(subject, "gradcheck", ours, failing)


def test_no_word_on_who_is_right_without_numbers_of_our_own():
    """A check that was suppressed or left out has no verdict, so nothing was confirmed."""
    x = torch.tensor([0.3, -1.1, 0.9], dtype=torch.float64, requires_grad=True)
    assert asked(Wrong, x, "skipped").agreement == ""
    assert asked(Untouched, x, "fail", "GL402").agreement == (
        "GL402: seen outside of what gradcheck was run on"
    )


def test_what_was_not_judged_is_not_called_right():
    """One input's gradient is None (GL103, perhaps accepted in a comment): the pass of GL401 says
    nothing about it."""
    x = torch.tensor([0.3, -1.1, 0.9], dtype=torch.float64, requires_grad=True)
    sample = Sample("test", "given", (x, x.detach().clone().requires_grad_()))
    subject = Subject(from_object(OneLeftOut), sample, Settings(seed=1))
    assert GL401.probe(subject).verdict == "pass"
    found = torch_verdict(subject, "gradcheck", "pass")
    assert (found.verdict, found.agreement) == ("fail", "")


class OneLeftOut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None


class RightForPositive(torch.autograd.Function):
    """x², with a gradient that is right where x is not negative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * torch.where(x < 0, 2 * x, x)


def test_torch_is_asked_on_the_sample_that_fails():
    right = torch.tensor([0.3, 1.1, 0.9], dtype=torch.float64, requires_grad=True)
    wrong = torch.tensor([0.4, -1.2, 0.8], dtype=torch.float64, requires_grad=True)
    samples = [Sample(f"s{k}", "given", (x,)) for k, x in enumerate((right, wrong, wrong))]
    events: list[Event] = []
    examine(
        from_object(RightForPositive), samples, Settings(seed=1, select=("GL401",)), events.append
    )
    said = [event.verdict for event in events if isinstance(event, TorchVerdictMade)]
    assert [(one.sample, one.verdict, one.agreement) for one in said] == [
        ("s0", "pass", "agrees"),
        ("s1", "fail", "agrees"),
    ]


@pytest.mark.parametrize(("elements", "step_s", "mode"), [(4, 0.02, "slow"), (40, 0.02, "fast")])
def test_the_mode_for_few_elements_does_not_change_with_the_load(
    monkeypatch: pytest.MonkeyPatch, elements: int, step_s: float, mode: str
) -> None:
    """On a clock that goes on by as much as a busy machine may take for a call."""
    clock = itertools.count()
    monkeypatch.setattr(_torch_verdict, "had_seconds", lambda: step_s * next(clock))
    x = torch.linspace(-1.0, 1.0, elements, dtype=torch.float64).requires_grad_()
    subject = Subject(from_object(Untouched), Sample("test", "given", (x,)), Settings(seed=1))
    found = torch_verdict(subject, "gradcheck", "pass")
    assert (found.mode, found.verdict) == (mode, "pass")


class Wrong(Untouched):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Wrong.calls += 1
        return Doubled.forward(ctx, x.clone())

    @staticmethod
    def backward(ctx, g):
        return Doubled.backward(ctx, g) * 3


def test_fast_mode_is_not_followed_into_slow_mode():
    sample = Sample("test", "--inputs", (torch.rand(3000, dtype=torch.float64).requires_grad_(),))
    subject = Subject(from_object(Wrong), sample, Settings(seed=1))
    Wrong.calls = 0
    said = torch_verdict(subject, "gradcheck", "fail")
    assert (said.mode, said.verdict, said.agreement) == ("fast", "fail", "agrees")
    assert "Jacobian mismatch" in said.message
    assert Wrong.calls < 300  # slow mode calls twice an element


class Reversible(torch.autograd.Function):
    """x + f(x); its backward calls f once more, from the module that it belongs to."""

    @staticmethod
    def forward(ctx, x, module, *weights):
        with torch.no_grad():
            y = x + module.inner(x)
        ctx.save_for_backward(x)
        ctx.module = module
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            weights = tuple(ctx.module.inner.parameters())
            own, *others = torch.autograd.grad(ctx.module.inner(x), (x, *weights), g)
        return g + own, None, *others


class ReversibleLayer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x):
        return Reversible.apply(x, self, *self.inner.parameters())


def test_a_backward_that_reads_its_module_finds_the_weights_of_the_call():
    """They are of float64 in the call, and of float32 in the module itself."""
    x = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    subject = Subject(
        from_object(ReversibleLayer()), Sample("test", "given", (x,)), Settings(seed=1)
    )
    verdict = torch_verdict(subject, "gradcheck", "pass")
    assert (verdict.verdict, verdict.message) == ("pass", "")
