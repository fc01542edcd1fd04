"""GL008: global state changed by forward or backward is told by phase, and put back."""

from __future__ import annotations

import os

import pytest
import torch

from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.loading import process_state_changed
from gradlint.targets.build import from_object


def planted(in_forward=None, in_backward=None):
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if in_forward:
                in_forward()
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            if in_backward:
                in_backward()
            return grad_output * 2

    return Op


def to_half():
    torch.set_default_dtype(torch.float16)


def reseed():
    torch.manual_seed(1234)


@pytest.mark.parametrize(
    ("op", "phases"),
    [
        (planted(), []),
        (planted(lambda: torch.rand(3), lambda: torch.rand(3)), []),
        (planted(to_half), ["forward"]),
        (planted(None, to_half), ["backward"]),
        (planted(reseed, reseed), ["forward", "backward"]),
    ],
)
def test_phases(op, phases):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(op), Sample("t", "--inputs", (x,)), Settings(seed=1))
    before = torch.get_default_dtype()
    found = process_state_changed.probe(subject)
    assert [finding.evidence["phase"] for finding in found.findings] == phases
    assert torch.get_default_dtype() == before
    assert {finding.severity for finding in found.findings} <= {"warning"}
    assert subject.problem.preserve_state == bool(phases)


def test_grad_mode_left_off_by_a_callable():
    def op(x):
        y = x * 2
        torch.set_grad_enabled(False)
        return y

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(op), Sample("t", "--inputs", (x,)), Settings(seed=1))
    (finding,) = process_state_changed.probe(subject).findings
    assert "grad mode" in finding.message
    assert torch.is_grad_enabled()


def _probe(op):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(op), Sample("t", "--inputs", (x,)), Settings(seed=1))
    return process_state_changed.probe(subject)


def test_descriptors_left_open_by_every_call():
    opened = []
    try:
        for phases in (("forward",), ("backward",)):
            leak = {f"in_{phase}": lambda: opened.append(open(os.devnull)) for phase in phases}  # noqa: SIM115
            (finding,) = _probe(planted(**leak)).findings
            assert finding.evidence["phase"] == phases[0]
            assert "file descriptor" in finding.message
    finally:
        for file in opened:
            file.close()


def test_descriptors_opened_now_and_then_are_a_cache():
    opened = []

    def pool():
        if len(opened) < 3:
            opened.append(os.open(os.devnull, os.O_RDONLY))

    try:
        assert _probe(planted(pool)).findings == []
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_a_descriptor_that_goes_with_the_graph_is_closed():
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.file = open(os.devnull)  # noqa: SIM115
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2

    assert _probe(Op).findings == []
