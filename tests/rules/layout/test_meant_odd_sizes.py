"""Whether documentation or code say that odd sizes are meant."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.experiments.layout.meant_odd_sizes import odd_sizes_are_meant
from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


class Spectrum(Function):
    """Magnitudes of a spectrum."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.fft.rfft(x).abs()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.fft.irfft(g * torch.fft.rfft(x).sgn(), n=x.shape[-1])


class EvenSpectrum(Spectrum):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.fft.irfft(g * torch.fft.rfft(x).sgn())


class Parity(EvenSpectrum):
    @staticmethod
    def forward(ctx, x):
        return x[..., 1:] if x.shape[-1] % 2 == 1 else x


class Refuses(EvenSpectrum):
    @staticmethod
    def forward(ctx, x):
        if x.shape[-1] % 2:
            raise ValueError
        return x


class Pads(EvenSpectrum):
    @staticmethod
    def forward(ctx, x):
        H, W = x.shape[-2:]
        return torch.nn.functional.pad(x, (0, W % 2, 0, H % 2))


class PadsInBranch(EvenSpectrum):
    @staticmethod
    def forward(ctx, x):
        if x.size(-1) % 2:
            x = torch.cat([x, x[..., -1:]], -1)
        return x


class OddLayers(EvenSpectrum):
    @staticmethod
    def forward(ctx, x, layer=0):
        return -x if layer % 2 else x


def subject(op) -> Subject:
    return Subject(from_object(op), Sample("given", "given", (torch.randn(4),)), Settings())


@pytest.mark.parametrize(
    ("op", "meant"),
    [
        (Spectrum, True),
        (Parity, True),
        (Pads, True),
        (PadsInBranch, True),
        (EvenSpectrum, False),
        (Refuses, False),
        (OddLayers, False),
    ],
)
def test_code_that_treats_odd_sizes(op, meant):
    assert odd_sizes_are_meant(subject(op)) is meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("x: (..., N), any N", True),
        ("Works for any length.", True),
        ("Odd and even sizes.", True),
        ("Odd sides are extended by repeating the last row.", True),
        ("Odd sides are not supported.", False),
        ("Pairs of any kind.", False),
        ("N must be even.", False),
    ],
)
def test_documentation_that_allows_them(text, meant):
    op = type("Op", (EvenSpectrum,), {"__doc__": text})
    assert odd_sizes_are_meant(subject(op)) is meant
