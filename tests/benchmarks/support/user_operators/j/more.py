"""Two or more further samples for every right operator: name -> list of (inputs, maker)."""

import math

import torch

from cases import F64, _leaf, _module, _rand, _randn, _soft, _spd


def _s(value):
    return torch.tensor(value, dtype=F64, requires_grad=True)


def _nc(x):
    """The same values with transposed strides."""
    return x.detach().mT.contiguous().mT.requires_grad_(x.requires_grad)


nan = math.nan
MORE = {
    "SmoothGlobalAlign": [
        lambda: (_nc(_randn(1, 2, 5, seed=1)), _s(0.0), 0.1),
        lambda: (_randn(3, 3, 3, seed=2, scale=5), _s([0.4]), 2.0, torch.tensor([[1, 1], [2, 3], [0, 2]])),
    ],
    "PruningLikelihood": [
        lambda: (_soft(4, 2, 4, seed=1), _nc(_soft(4, 4, 4, seed=2)), _soft(4, seed=3), torch.tensor([4] * 4)),
        lambda: (_soft(4, 3, 2, seed=4), _soft(6, 2, 2, seed=5), _soft(2, seed=6), torch.tensor([4, 4, 5, 5, 6, 6])),
    ],
    "HmmForwardLogLik": [
        lambda: (_randn(2, seed=1), _nc(_randn(2, 2, seed=2, scale=3)), _randn(2, 2, seed=3), torch.tensor([[0], [1]])),
        lambda: (_randn(3, seed=1), _randn(3, 3, seed=2), _randn(3, 2, seed=3), torch.tensor([[0, 0, 0, 0, 0]] * 3), torch.tensor([1, 5, 3])),
    ],
    "KmerSpectrum": [
        lambda: (_nc(_soft(1, 6, 2, seed=1)), 3),
        lambda: (torch.eye(3, dtype=F64)[torch.tensor([[0, 1, 2, 0, 0, 1, 1]])].requires_grad_(), 2, 4, False),
        lambda: (_randn(2, 5, 4, seed=3), 1, 3, True),
    ],
    "MotifScan": [
        lambda: (_nc(_randn(3, 6, 2, seed=1)), _nc(_randn(2, 6, 2, seed=2)), False),
        lambda: (_randn(1, 9, 4, seed=3, scale=10), _randn(5, 2, 4, seed=4), True),
    ],
    "HillDiversity": [
        lambda: (_leaf(torch.tensor([[3.0, 0, 1], [0, 2, 5]])).double().detach().requires_grad_(), 2.0),
        lambda: (_rand(3, 2, 4, seed=2, low=0.5, high=100), 0.5, 1),
        lambda: (_rand(4, 2, seed=2, low=1e-3, high=1), 1.0, 0),
    ],
    "ZeroInflatedNB": [
        lambda: (torch.tensor([[0.0, 7.0]], dtype=F64), _rand(3, 1, seed=1, low=0.1), _s(2.0), _randn(1, 2, seed=2, scale=4), "none"),
        lambda: (torch.tensor([0, 0, 300, 1]), _rand(4, seed=3, low=1, high=200), _rand(1, seed=4, low=20, high=60), _s(-3.0), "sum"),
    ],
    "WeightedUniFrac": [
        lambda: (_rand(2, 3, seed=1), _rand(2, seed=2), torch.tensor([0, 1, 2, 2]), torch.tensor([0, 0, 1, 0]), False),
        lambda: (_nc(_rand(4, 3, seed=3, high=100)), _rand(3, seed=4), torch.tensor([0, 1, 2]), torch.tensor([2, 0, 1]), True),
    ],
    "ReversibleTransition": [
        lambda: (_rand(6, seed=1, low=0.2, high=3), _soft(4, seed=2), _s([0.5, 0.0001 + 0.3, 6.0])),
        lambda: (_s([1.0, 2.0, 1.0]), _s([0.2, 0.3, 0.5]), _s([1.0])),
        lambda: (torch.ones(10, dtype=F64, requires_grad=True), _soft(5, seed=3), _s([0.7])),
    ],
    "ApcContactHead": [
        (lambda: (_nc(_rand(1, 3, 5, 5, seed=1, low=0.1, high=4)),), lambda c: _module(c, 1, 3, False)),
        (lambda: (_soft(2, 1, 2, 2, seed=2),), lambda c: _module(c, 1, 1, True, 0.1)),
    ],
    "DiscreteLyapunov": [
        lambda: (_nc(_randn(2, 2, seed=1, scale=0.4)), _randn(3, 2, 2, seed=2)),
        lambda: (_randn(2, 1, 3, 3, seed=3, scale=0.2), _spd(3, seed=4)),
    ],
    "RiccatiGain": [
        lambda: (_nc(_randn(2, 2, seed=1)), _randn(2, 1, seed=2), _spd(2, seed=3), _s([[2.0]])),
        lambda: (_randn(4, 4, seed=4, scale=0.3), _randn(4, 3, seed=5), _randn(4, 4, seed=6, scale=0.1).detach().add(torch.eye(4)).requires_grad_(), _leaf(_spd(3, seed=7) + torch.tensor([[0, 0.2, 0], [0, 0, 0], [0, 0, 0]]))),
    ],
    "KalmanUpdate": [
        lambda: (_randn(2, seed=1), _leaf(_spd(2, seed=2) + torch.tensor([[0, 0.1], [0, 0]])), _randn(1, 2, seed=3), _s([[0.5]]), _randn(3, 1, seed=4)),
        lambda: (_randn(2, 1, 4, seed=5), _spd(4, seed=6), _nc(_randn(3, 4, seed=7)), _spd(3, seed=8), _randn(3, seed=9)),
    ],
    "LinearRollout": [
        lambda: (_nc(_randn(2, 2, seed=1)), _randn(2, 3, seed=2), _randn(1, 2, seed=3), _randn(1, 1, 3, seed=4)),
        lambda: (_randn(4, 4, seed=5, scale=0.5), _randn(4, 1, seed=6), _randn(3, 4, seed=7), _randn(6, 3, 1, seed=8), None),
    ],
    "BoxQp": [
        lambda: (_nc(_spd(3, seed=1)), _randn(3, seed=2), _s([-9.0] * 3), _s([9.0] * 3)),
        lambda: (_leaf(_spd(5, seed=3) + torch.ones(5, 5).triu(1) * 0.1), _randn(5, seed=4, scale=4), _s([-0.1] * 5), _s([0.2] * 5)),
    ],
    "ZohDiscretize": [
        lambda: (torch.zeros(2, 2, dtype=F64, requires_grad=True), _randn(2, 1, seed=1), _s(2.0)),
        lambda: (_nc(_randn(4, 4, seed=2)), _nc(_randn(4, 3, seed=3)), _s(0.01)),
    ],
    "AntiWindupPid": [
        (lambda: (_nc(_randn(3, 7, seed=1, scale=3)),), lambda c: _module(c, 1, 2.0, 0.0, 0.1, dt=0.2, limit=0.5)),
        (lambda: (_randn(1, 1, seed=2),), lambda c: _module(c, 1, 0.2)),
    ],
    "RelaxedBarrier": [
        lambda: (_rand(2, 1, seed=1, low=-1, high=1), _randn(1, 3, seed=2), 0.05, "mean"),
        lambda: (_nc(_rand(3, 4, seed=3, high=100)), None, 1.0, "none"),
    ],
    "AttitudeStep": [
        lambda: (_randn(4, seed=1), _randn(3, 3, seed=2, scale=40), 0.1),
        lambda: (_nc(_randn(2, 4, seed=3)), _randn(2, 3, seed=4, scale=1e-4), 1.0),
        lambda: (_randn(2, 1, 4, seed=3), _s([[0.05, 0.05, 0.06], [0.06, 0.06, 0.06]]), 1.0),
    ],
    "FrequencyResponse": [
        lambda: (_nc(_randn(3, 3, seed=1, scale=0.3)), _randn(3, 1, seed=2), _nc(_randn(2, 3, seed=3)), None, _rand(2, seed=4, high=3), True),
        lambda: (_s([[-1.0]]), _randn(1, 2, seed=5), _randn(1, 1, seed=6), _randn(1, 2, seed=7), _s([0.0, 10.0, -1.0]), False),
    ],
    "DeEmphasis": [
        lambda: (_nc(_randn(3, 4, seed=1)), _randn(3, seed=2)),
        lambda: (_randn(2, 3, 6, seed=3), _randn(3, seed=4), _randn(3, seed=5)),
        lambda: (_randn(5, seed=3), _s(0.5), _s(0.0)),
    ],
    "OverlapAdd": [
        lambda: (_nc(_randn(1, 3, 4, seed=1)), _rand(4, seed=2, low=0.3), 1, True),
        lambda: (_randn(2, 3, 3, seed=3), _randn(3, seed=4), 3, False),
        lambda: (_randn(2, 3, 3, seed=3), _randn(3, seed=4), 5, True, 0.5),
    ],
    "LevinsonLpc": [
        lambda: (_s([[1.0, 0.2]]), 0.0),
        lambda: (_nc(_leaf(torch.tensor([[4.0, 1, 0.5, -0.6, 0.1, 0.2], [3.0, -1, 0.1, 0.2, 0, 0]], dtype=F64))), 0.5),
    ],
    "LogMel": [
        lambda: (_nc(_randn(1, 3, 4, seed=1, dtype=torch.complex128)), _rand(3, 3, seed=2), 1.0, 1e-3),
        lambda: (_leaf(_randn(2, 3, 2, seed=3, dtype=torch.complex128) * torch.tensor([[1.0], [0.0], [2.0]])), _rand(2, 3, seed=4), 2.0, 1e-2),
        lambda: (_randn(2, 3, 2, seed=3, dtype=torch.complex128), _rand(5, 3, seed=4), 3.0, 1.0),
    ],
    "MaskedCmvn": [
        lambda: (_nc(_randn(3, 4, 2, seed=1, scale=9)), torch.tensor([1, 4, 2]), True, 0.1),
        lambda: (_randn(1, 6, 1, seed=2), torch.tensor([4]), False),
    ],
    "BoundedRatioMask": [
        lambda: (_randn(2, 3, seed=1, dtype=torch.complex128), _leaf(torch.tensor([[0j, 1e-4 + 1e-4j, 8.0], [2j, -1.0, 0j]], dtype=torch.complex128)), 1.0, 1.0),
        lambda: (_nc(_randn(1, 3, 4, seed=2, dtype=torch.complex128)), _nc(_randn(2, 3, 4, seed=3, dtype=torch.complex128)), 10.0, 0.1),
    ],
    "ScaleInvariantSdr": [
        lambda: (_nc(_randn(3, 5, seed=1)), _randn(3, 5, seed=2, scale=10), False),
        lambda: (_randn(2, 2, 6, seed=3, scale=0.1), _leaf(_randn(2, 2, 6, seed=3, scale=0.1) + 0.05 * _randn(2, 2, 6, seed=5)), True, 1e-2),
    ],
    "SincBank": [
        (lambda: (_nc(_randn(1, 5, seed=1)),), lambda c: _module(c, 1, 2, kernel=5, lowest=300.0)),
        (lambda: (_randn(2, 20, seed=2), _rand(4, seed=3)), lambda c: _module(c, 1, 4, 11, 8000.0)),
    ],
    "AttentiveStats": [
        (lambda: (_nc(_randn(2, 2, 6, seed=1)), torch.tensor([6, 3])), lambda c: _module(c, 3, 2)),
        (lambda: (_randn(1, 4, 2, seed=2, scale=4),), lambda c: _module(c, 3, 4, 2, 0.1)),
    ],
    "LagCorrelation": [
        lambda: (_nc(_randn(3, 4, seed=1)), torch.tensor([3, 1]), False),
        lambda: (_randn(1, 12, seed=2, scale=5), torch.tensor([2, 0, 7]), True, 1.0),
    ],
    "ObliviousTree": [
        lambda: (_nc(_randn(3, 2, seed=1)), _randn(1, 2, seed=2), _randn(1, seed=3), _randn(2, 1, seed=4)),
        lambda: (_randn(5, 4, seed=5), _randn(3, 4, seed=6), _randn(3, seed=7), _nc(_randn(8, 3, seed=8)), 3.0),
    ],
    "ScaledSimplex": [
        lambda: (_nc(_randn(3, 5, seed=1)), _rand(3, seed=2, low=0.2, high=6)),
        lambda: (_randn(2, 3, 4, seed=3, scale=0.2), _rand(2, 4, seed=4, low=0.5), 1),
        lambda: (_randn(2, 3, seed=3, scale=10), _s(0.1), -2),
    ],
    "TargetEncode": [
        lambda: (_randn(3, seed=1), torch.tensor([0, 0, 0]), _s(-1.0), 0.5, False),
        lambda: (_randn(4, seed=1), torch.tensor([3, 1, 3, 0]), _s(2.0), 10.0, True, 7),
    ],
    "SparseFmInteraction": [
        lambda: (_s([0.0, 2.0]), torch.tensor([1, 1]), torch.tensor([0]), _nc(_randn(2, 2, seed=1))),
        lambda: (_randn(5, seed=2), torch.tensor([0, 1, 2, 3, 3]), torch.tensor([0, 0, 2, 5]), _randn(4, 1, seed=3)),
    ],
    "PinballHuber": [
        lambda: (_nc(_randn(3, 2, seed=1)), _randn(3, seed=2), torch.tensor([0.3, 0.9], dtype=F64), 1.5, None, "mean"),
        lambda: (_randn(5, 1, seed=3, scale=10), _randn(5, seed=4), torch.tensor([0.5], dtype=F64), 0.1, _rand(5, seed=5, low=0.1), "none"),
        lambda: (_randn(5, 1, seed=3), _randn(5, seed=4), torch.tensor([0.5], dtype=F64), 0.1, _rand(5, seed=5, low=0.1), "sum"),
    ],
    "WeightedIsotonic": [
        lambda: (_s([5.0, 4, 3, 2, 1]), _rand(5, seed=1, low=0.5)),
        lambda: (_s([1.0, 2, 3]), _rand(3, seed=2, low=0.5)),
        lambda: (_s([1.0]), _s([2.0])),
    ],
    "GhostNorm": [
        (lambda: (_nc(_randn(8, 2, seed=1)),), lambda c: _module(c, 1, 2, ghost=4, affine=False)),
        (lambda: (_randn(5, 2, seed=2, scale=9),), lambda c: _module(c, 1, 2, eps=0.1)),
        (lambda: (_randn(5, 2, seed=2, scale=9),), lambda c: _module(c, 1, 2).eval()),
        (lambda: (_randn(5, 2, seed=2),), lambda c: _module(c, 1, 2, ghost=2, eps=0.2)),
    ],
    "RidgeReadout": [
        (lambda: (_nc(_randn(3, 2, seed=1)), _randn(3, 1, seed=2), _randn(1, 2, seed=3)), lambda c: _module(c, 1, 2)),
        (lambda: (_randn(5, 3, seed=4), _nc(_randn(5, 2, seed=5)), _randn(2, 3, seed=6)), lambda c: _module(c, 1, 3, 1.0, 2.0)),
    ],
    "DecayImpute": [
        lambda: (_nc(_randn(3, 2, seed=1)), _rand(2, seed=2, low=0.1), _randn(2, seed=3)),
        lambda: (_s([[nan], [2.0], [nan], [nan], [nan], [1.0], [nan]]), _s([0.3]), _s([0.0]), torch.tensor([0, 0.5, 0.7, 2, 3, 3.5, 9], dtype=F64)),
    ],
    "CoxLoss": [
        lambda: (_randn(4, seed=1, scale=5), torch.tensor([1.0, 1.0, 1.0, 1.0]), torch.tensor([True] * 4), "breslow", "mean"),
        lambda: (_randn(5, seed=2), torch.tensor([5, 4, 4, 1, 2]), torch.tensor([False, True, True, True, False]), "efron", "mean"),
    ],
    "BlockDctScale": [
        lambda: (_nc(_randn(1, 4, 4, seed=1)), _nc(_randn(4, 4, seed=2, scale=3))),
        lambda: (_randn(3, 2, 6, seed=3, scale=50), _rand(2, 2, seed=4, low=0.3)),
        lambda: (_randn(1, 2, 1, seed=3), _s([[2.0]])),
    ],
    "LowRankProject": [
        lambda: (_nc(_randn(5, 3, seed=1)), 1),
        lambda: (_randn(3, 3, seed=2), 3),
        lambda: (_randn(2, 6, seed=2, scale=10), 2),
        lambda: (_leaf(_randn(4, 2, seed=2) @ _randn(2, 4, seed=3)), 2),
    ],
    "LiftingWavelet": [
        lambda: (_nc(_randn(3, 2, seed=1)), _randn(2, seed=2), _randn(2, seed=3)),
        lambda: (_randn(1, 16, seed=1), _s([0.5, 0.5]), _s([0.25, 0.25]), 3),
        lambda: (_randn(2, 5, seed=1), _randn(2, seed=2), _randn(2, seed=3), 0),
    ],
    "SoftCodebook": [
        lambda: (_randn(3, seed=1), _nc(_randn(2, 3, seed=2)), 2.0),
        lambda: (_nc(_randn(2, 3, 2, seed=3)), _randn(4, 2, seed=4), 0.2),
    ],
    "DeltaRunDecode": [
        lambda: (_randn(1, seed=1), _randn(2, 1, seed=2), torch.tensor([1, 4])),
        lambda: (_randn(3, seed=3), _nc(_randn(5, 3, seed=4)), torch.tensor([0, 0, 2, 0, 1])),
    ],
    "SoftHistogramEntropy": [
        lambda: (_nc(_randn(3, 2, seed=1)), _randn(2, seed=2)),
        lambda: (_randn(1, 5, seed=3, scale=2), _s([-2.0, 0.0, 1.0]), 1.5, 10.0),
        lambda: (_randn(4, seed=3), _s([-2.0, 0.0, 1.0]), 0.5, 0.5),
    ],
    "TrainEntry": [
        lambda: (torch.tensor([[0], [1], [0]]), _randn(1, 2, 1, seed=1)),
        lambda: (torch.tensor([[0, 1, 2, 0], [1, 1, 2, 0]]), *(_randn(a, 3, b, seed=a + b) for a, b in ((1, 2), (2, 4), (4, 2), (2, 1)))),
    ],
    "PackedSymSolve": [
        lambda: (_s([2.0, 0.3, 0.1, 3.0, 0.2, 4.0]), _randn(3, seed=1), True),
        lambda: (_s([2.0, 0.3, -3.0, 0.5, 0.2, 4.0]), _nc(_randn(3, 2, seed=2)), False),
    ],
    "GroupShrinkage": [
        (lambda: (_nc(_randn(2, 3, 4, seed=1, scale=3)),), lambda c: _module(c, 1, 4, 0.7)),
        (lambda: (_leaf(torch.tensor([[0.0, 0, 3, 4]], dtype=F64)),), lambda c: _module(c, 1, 2, 1.0)),
    ],
    "MuLawCompand": [
        (lambda: (_nc(_randn(1, 3, 2, seed=1)),), lambda c: _module(c, 1, 3)),
        (lambda: (_randn(2, 1, 4, seed=2, scale=10),), lambda c: _module(c, 1, 1, 0.5, 3.0)),
    ],
}  # fmt: skip
