"""Further inputs on which every operator of right/ must be right."""

import math

import torch

from cases import _c, _gen, _r, _u

F64 = torch.float64


def _t(*values, grad=True):
    return torch.tensor(values, dtype=F64).requires_grad_(grad)


def _turned(x):
    """The same numbers as a leaf that is not contiguous."""
    return x.detach().mT.contiguous().mT.requires_grad_(x.requires_grad)


def build(cls, sample):
    args = sample["args"]()
    if "make" in sample:
        return sample["make"](cls), args
    return cls.apply, args


def _s(args, **kw):
    return {"args": args, **kw}


def _parallel():
    p = _u(_gen(1), 2, 4, low=0.5, grad=False)
    return _turned(p.requires_grad_()), _r(_gen(2), 2, 4)


def _swath_off():
    g = _gen(3)
    return (
        _turned(_r(g, 1, 3, 4)),
        _t(-1.5, 0.4, 1.3, 5.0, 1.3),
        _t(0.2, 7.0, 1.6, -2.0, 1.6),
    )


def _sar_zero():
    z = _c(_gen(4), 2, 4, 4).detach()
    z[0, 0, 0] = 0
    return z.mT.contiguous().mT.requires_grad_(), 2, 2, False


def _stack(t, *shape):
    g = _gen(t)
    return _r(g, t, *shape), torch.rand(t, *shape, generator=g) > 0.4


def _velocity(zero):
    v = _r(_gen(5), 2, 2, 2, grad=False)
    if zero:
        v[0] = 0
    return (v.requires_grad_(),)


def _mirror(scale, seed, count, flip):
    g = _gen(seed)
    s = _r(g, count, 3, grad=False)
    t = s[:, [2, 0, 1]] * scale + 0.3 * _r(g, count, 3, grad=False)
    if flip:
        t[:, 0] = -t[:, 0]
    return s.requires_grad_(), _turned(t.requires_grad_())


def _quats(seed, spread, *shape):
    g = _gen(seed)
    q0 = torch.nn.functional.normalize(_r(g, *shape, 4, grad=False), dim=-1)
    q1 = torch.nn.functional.normalize(q0 + spread * _r(g, *shape, 4, grad=False), dim=-1)
    return q0.requires_grad_(), q1.requires_grad_(), _u(g, *shape)


def _near_ninety():
    q0 = _t([1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0])
    return q0, _t([0.1, 0.99498743710662, 0.0, 0.0], [0.3, -0.2, 0.9327379053088815, 0.0]), _t(0, 1)


def _rot(scale, *shape):
    return (_r(_gen(6), *shape, 3, scale=scale),)


def _coincident():
    g = _gen(7)
    p = _r(g, 4, 3, grad=False, scale=0.5)
    p[2] = p[0]
    return p.requires_grad_(), _u(g, 4), 0.7


def _states():
    left = _t([1.0, 0.3], [2.0, -0.8], [0.7, 0.2])
    return left, left.detach().clone().requires_grad_()


def _dry():
    g = _gen(8)
    left = torch.stack([_u(g, 2, 3, low=0.05, high=0.3, grad=False), _r(g, 2, 3, grad=False)], -1)
    right = torch.stack([_u(g, 2, 3, low=3.0, high=6.0, grad=False), _r(g, 2, 3, grad=False)], -1)
    return left.requires_grad_(), right.requires_grad_(), 1.6


def _segments(squared, zero=False):
    g = _gen(9)
    p, a, b = _r(g, 2, 4, 2), _r(g, 2, 4, 2, grad=False), _r(g, 2, 4, 2, grad=False)
    if zero:
        with torch.no_grad():
            p[0, 0] = 0.5 * (a[0, 0] + b[0, 0])
    return p, _turned(a.requires_grad_()), b.requires_grad_(), squared


def _isolated_mesh(unit):
    g = _gen(10)
    faces = torch.tensor([[0, 1, 2], [2, 1, 3]])
    return _turned(_r(g, 3, 4, 3)), faces, unit


def _clockwise():
    angle = -torch.arange(7, dtype=F64) * (2 * math.pi / 7)
    ring = torch.stack([2 * angle.cos(), angle.sin()], -1) + 5
    return ((ring + 0.1 * _r(_gen(11), 1, 7, 2, grad=False)).requires_grad_(),)


def _ids(*values):
    return torch.tensor(values)


SAMPLES = {
    "SpectralAngle": [
        _s(_parallel),
        _s(lambda: (_u(_gen(1), 2, 3, 5, low=0.1), _u(_gen(2), 2, 5, low=0.1), True)),
        _s(lambda: (_r(_gen(3), 5, scale=1e2), _r(_gen(4), 3, 5, scale=1e-1))),
    ],
    "RidgeUnmix": [
        _s(lambda: (_turned(_u(_gen(1), 4, 5)), _turned(_u(_gen(2), 2, 5)), 1.0)),
        _s(lambda: (_r(_gen(3), 1, 3), _r(_gen(4), 5, 3), 0.5)),
    ],
    "BilinearSwath": [
        _s(_swath_off),
        _s(lambda: (_r(_gen(1), 3, 2, 2), _u(_gen(2), 6), _u(_gen(3), 6))),
    ],
    "ToaReflectance": [
        _s(
            lambda: (
                _turned(_u(_gen(1), 2, 3, low=20, high=40)),
                _t(4.0),
                _u(_gen(2), 3, low=0.5),
                _u(_gen(3), 2, 1, high=0.3),
                900.0,
            )
        ),
        _s(
            lambda: (
                _u(_gen(1), 3, low=20, high=40),
                _u(_gen(4), 2, 3, low=20, high=40),
                torch.tensor(0.8, dtype=F64, requires_grad=True),
                _t(0.0, 0.1, 0.2),
                1300.0,
                0.0,
            )
        ),
    ],
    "SarMultilook": [
        _s(_sar_zero),
        _s(lambda: (_c(_gen(1), 4, 3), 1, 3)),
        _s(lambda: (_c(_gen(2), 2, 2, 5), 2, 2, True)),
    ],
    "WindowedCoherence": [
        _s(lambda: (_c(_gen(1), 7), _c(_gen(2), 7), 3)),
        _s(lambda: (_c(_gen(1), 2, 2, 4), _c(_gen(2), 2, 2, 4), 2)),
        _s(lambda: (_c(_gen(1), 5), _c(_gen(2), 5), 9)),
    ],
    "TemporalComposite": [
        _s(lambda: (*_stack(4, 3), "median")),
        _s(lambda: (*_stack(3, 2, 4), "mean", 7.0)),
        _s(lambda: (*_stack(1, 5), "median")),
        _s(lambda: (_r(_gen(1), 6, 4), torch.ones(6, 4, dtype=torch.bool), "median")),
    ],
    "DarkObjectSubtract": [
        _s(lambda: (_r(_gen(1), 1, 3, 3), 1)),
        _s(lambda: (_turned(_r(_gen(2), 3, 2, 4, scale=100.0)), 8)),
        _s(lambda: (_r(_gen(2), 3, 2, 4), 4)),
    ],
    "HillShade": [
        _s(lambda: (_u(_gen(1), 2, 3, 3, high=3.0), 10.0, 60.0, 1.0)),
        _s(lambda: (_turned(_u(_gen(2), 4, 2, high=1.0)), 120.0, 30.0, 2.0)),
        _s(lambda: (_u(_gen(2), 1, 5, high=1.0),)),
        _s(lambda: (torch.zeros(3, 4, dtype=F64, requires_grad=True),)),
    ],
    "PlanckInversion": [
        _s(
            lambda: (_u(_gen(1), 2, 2, low=0.1, high=2.0), _t(1.0)),
            make=lambda c: c([3.9]),
        ),
        _s(
            lambda: (_u(_gen(2), 3, low=12.0, high=20.0), _t(0.1, 0.5, 0.6, 0.2)),
            make=lambda c: c([11.5, 11.9, 12.1, 12.4], start=320.0),
        ),
    ],
    "TripletRankLoss": [
        _s(lambda: (_r(_gen(1), 2, 2), _r(_gen(2), 3, 2), _ids([0, 1, 1], [1, 2, 0]), 0.1, "sum")),
        _s(lambda: (_turned(_r(_gen(3), 4, 3)), _r(_gen(4), 3, 3), _ids([3, 1, 0]), 0.0, "none")),
        _s(lambda: (_r(_gen(3), 4, 3), _r(_gen(4), 3, 3), _ids([3, 1, 0], [3, 1, 0]), 0.5, "none")),
    ],
    "SampledSoftmaxLoss": [
        _s(lambda: (_r(_gen(1), 2, 3), _turned(_r(_gen(2), 4, 3)), _ids(1, 1), _ids(1, 1, 0))),
        _s(lambda: (_r(_gen(3), 3, 2), _r(_gen(4), 5, 2), _ids(0, 4, 2), _ids(2), _r(_gen(5), 5))),
    ],
    "PackedFactorScore": [
        _s(
            lambda: (
                _r(_gen(1), 4),
                _ids(1, 1, 1, 0),
                _ids(0, 0, 3, 4),
                _r(_gen(2), 2),
                _r(_gen(3), 2, 2),
            )
        ),
        _s(
            lambda: (
                _t(0.0, 1.0, 0.0),
                _ids(2, 0, 1),
                _ids(0, 3),
                _r(_gen(4), 3),
                _turned(_r(_gen(5), 3, 4)),
            )
        ),
    ],
    "FieldPairScore": [
        _s(lambda: (_r(_gen(1), 1, 2, 2, 3), _turned(_r(_gen(2), 2, 2)))),
        _s(lambda: (_turned(_r(_gen(3), 3, 4, 4, 1)), _r(_gen(4), 4, 4, grad=False))),
    ],
    "ListRelevanceLoss": [
        _s(lambda: (_r(_gen(1), 1, 3), _turned(_r(_gen(2), 1, 3)), _ids(3))),
        _s(lambda: (_r(_gen(3), 4, 2, scale=8.0), _r(_gen(4), 4, 2), _ids(1, 2, 2, 1), 3.0)),
    ],
    "SmoothNdcg": [
        _s(
            lambda: (
                _turned(_r(_gen(1), 3, 5)),
                _t([0, 0, 0, 0, 0], [3, 0, 2, 0, 1], [1, 1, 1, 1, 1], grad=False),
            )
        ),
        _s(lambda: (_r(_gen(2), 1, 3, scale=3.0), _u(_gen(3), 1, 3, low=0.1), 2.0)),
        _s(lambda: (torch.zeros(2, 3, dtype=F64, requires_grad=True), _u(_gen(3), 2, 3, low=0.1))),
    ],
    "AlsRowSolve": [
        _s(lambda: (_r(_gen(1), 4, 2), _r(_gen(2), 3, 4), _u(_gen(3), 3, 4), 1.0)),
        _s(
            lambda: (
                _turned(_r(_gen(4), 2, 3)),
                _u(_gen(5), 1, 2),
                torch.ones(1, 2, dtype=F64),
                0.3,
            )
        ),
    ],
    "WeightedBag": [
        _s(lambda: (_r(_gen(1), 5, 2), _ids(1, 1, 4, 0), _ids(0, 0, 3))),
        _s(lambda: (_turned(_r(_gen(2), 3, 4)), _ids(2, 0, 2), _ids(0, 1, 3), None, "mean")),
        _s(lambda: (_r(_gen(3), 3, 2), _ids(2, 0, 2, 1), _ids(0, 1), _r(_gen(4), 4), "sum", 0)),
        _s(
            lambda: (
                _r(_gen(3), 3, 2),
                _ids(0, 0, 2, 1),
                _ids(0, 2),
                _u(_gen(4), 4, low=0.1),
                "mean",
                0,
            )
        ),
    ],
    "InBatchTowerLoss": [
        _s(lambda: (_r(_gen(1), 2, 5), _r(_gen(2), 2, 5)), make=lambda c: c(2.0)),
        _s(lambda: (_turned(_r(_gen(3), 5, 2)), _r(_gen(4), 5, 2)), make=lambda c: c(30.0, 0.1)),
    ],
    "RecencyPool": [
        _s(lambda: (_r(_gen(1), 3, 2, 1), _u(_gen(2), 3, 2)), make=lambda c: c(1.0, 0.0)),
        _s(
            lambda: (_turned(_r(_gen(3), 1, 5, 2)), _u(_gen(4), 1, 5, high=90.0)),
            make=lambda c: c(30.0),
        ),
    ],
    "ScalarTransportStep": [
        _s(lambda: (_r(_gen(1), 5), _r(_gen(2), 2, 5), 0.2)),
        _s(lambda: (_turned(_r(_gen(3), 3, 4)), _r(_gen(4), 3, 4), 0.5, "central")),
        _s(lambda: (_r(_gen(5), 2, 2, 3), _r(_gen(6), 1, 3), 0.5, "lax_wendroff")),
        _s(lambda: (_r(_gen(5), 2, 3), _r(_gen(6), 1), 0.5, "upwind")),
        _s(
            lambda: (
                _r(_gen(5), 6),
                torch.zeros(6, dtype=F64, requires_grad=True),
                0.5,
                "lax_wendroff",
            )
        ),
    ],
    "HelmholtzPeriodic": [
        _s(lambda: (_turned(_r(_gen(1), 3, 4)), torch.tensor(0.2, dtype=F64, requires_grad=True))),
        _s(
            lambda: (
                _r(_gen(2), 2, 2, 3),
                torch.tensor(30.0, dtype=F64, requires_grad=True),
                0.1,
                2.0,
            )
        ),
        _s(lambda: (_r(_gen(2), 1, 5), torch.tensor(3.0, dtype=F64), 0.3)),
    ],
    "ImplicitDiffusionStep": [
        _s(lambda: (_r(_gen(1), 4), _u(_gen(2), 3), _t(1, 1, 1, 1, grad=False), 1.0)),
        _s(lambda: (_turned(_r(_gen(3), 3, 2)), _t(0.0), _t(0.1, 4.0, grad=False), 5.0)),
        _s(lambda: (_r(_gen(4), 2, 2, 3), _u(_gen(5), 2), _t(0.1, 4.0, 0.6, grad=False), 5.0)),
    ],
    "ArakawaJacobian": [
        _s(lambda: (_turned(_r(_gen(1), 2, 3, 4)), _r(_gen(2), 2, 3, 4))),
        _s(lambda: (_r(_gen(3), 6, 3, scale=10.0), _r(_gen(4), 6, 3, scale=0.1), 0.2, 0.5)),
    ],
    "BacktraceAdvect": [
        _s(
            lambda: (
                _r(_gen(1), 3, 3),
                _turned(_r(_gen(2), 3, 3, scale=8.0)),
                _r(_gen(3), 3, 3, scale=8.0),
            )
        ),
        _s(
            lambda: (_r(_gen(4), 2, 5), _u(_gen(5), 2, 5, low=0.1), _u(_gen(6), 2, 5, low=0.1), 0.5)
        ),
    ],
    "ParticleDensity": [
        _s(_coincident),
        _s(lambda: (_turned(_r(_gen(1), 6, 2, scale=2.0)), _r(_gen(2), 6), 2.0)),
        _s(lambda: (_r(_gen(3), 4, 1), _u(_gen(4), 4))),
    ],
    "ShallowRusanov": [_s(_states, twice=False), _s(_dry)],
    "LogLawFriction": [
        _s(
            lambda: (
                torch.tensor(8.0, dtype=F64, requires_grad=True),
                _u(_gen(1), 2, 3, low=0.5),
                _t(1e-2),
            )
        ),
        _s(
            lambda: (
                _turned(_u(_gen(2), 3, 2, low=0.5)),
                _u(_gen(3), 2, low=2.0, high=9.0),
                _u(_gen(4), 3, 1, low=0.1),
                0.4,
                7.0,
            )
        ),
    ],
    "SmagorinskyStress": [
        _s(lambda: _velocity(True), make=lambda c: c(1.0, traceless=True)),
        _s(lambda: _velocity(False), make=lambda c: c(3.0, 0.3)),
        _s(lambda: (_turned(_r(_gen(1), 3, 3)),), make=lambda c: c(2.0, traceless=True)),
    ],
    "BurgersRollout": [
        _s(lambda: (_r(_gen(1), 5),), make=lambda c: c(4), twice=True),
        _s(lambda: (_turned(_r(_gen(2), 2, 4)),), make=lambda c: c(1, recompute=True)),
        _s(
            lambda: (_r(_gen(2), 2, 4), _r(_gen(3), 2, 4)),
            make=lambda c: c(5, viscosity=0.2, recompute=True),
        ),
    ],
    "PartialRotary": [
        _s(lambda: (_r(_gen(1), 1, 3, 1, 4), _ids(5, 0, 700), 4, 10.0, True)),
        _s(lambda: (_turned(_r(_gen(2), 2, 2, 2, 5)), _ids([0, 3], [9, 1]), 2)),
        _s(lambda: (_r(_gen(2), 2, 2, 2, 6), _ids([0, 3], [9, 1]), 4, 50.0, True)),
    ],
    "CausalFeatureAttention": [
        _s(lambda: (_r(_gen(1), 1, 1, 2), _r(_gen(2), 1, 1, 2), _r(_gen(3), 1, 1, 3))),
        _s(
            lambda: (
                _turned(_r(_gen(1), 2, 5, 2)),
                _r(_gen(2), 2, 5, 2, scale=3.0),
                _turned(_r(_gen(3), 2, 5, 1)),
                0.1,
            )
        ),
    ],
    "GatedStateScan": [
        _s(
            lambda: (
                _r(_gen(1), 1, 3, 2),
                _u(_gen(2), 1, 3, 2),
                _r(_gen(3), 1, 3, 1),
                _r(_gen(4), 1, 3, 1),
            )
        ),
        _s(
            lambda: (
                _turned(_r(_gen(1), 2, 1, 2)),
                _turned(_r(_gen(2), 2, 1, 2)),
                _r(_gen(3), 2, 1, 3),
                _r(_gen(4), 2, 1, 3),
                _turned(_r(_gen(5), 2, 2, 3)),
            )
        ),
    ],
    "SmoothedCrossEntropy": [
        _s(lambda: (_turned(_r(_gen(1), 3, 4)), _ids(0, 3, 0), 0.0, -100, "sum")),
        _s(lambda: (_r(_gen(2), 2, 3, scale=20.0), _ids(2, 0), 0.4, 0)),
        _s(lambda: (_r(_gen(2), 2, 3), _ids(0, 0), 0.4, 0)),
    ],
    "GatedRmsNorm": [
        _s(lambda: (_turned(_r(_gen(1), 2, 3)), _r(_gen(2), 3), _r(_gen(3), 2, 3))),
        _s(lambda: (_r(_gen(4), 5, scale=1e-1), _r(_gen(5), 5), _r(_gen(6), 5), 1e-1)),
        _s(lambda: (torch.zeros(2, 3, dtype=F64, requires_grad=True), _r(_gen(5), 3), None, 1e-1)),
    ],
    "DistanceBiasSoftmax": [
        _s(lambda: (_turned(_r(_gen(1), 1, 2, 3, 3)), _r(_gen(2), 2))),
        _s(lambda: (_r(_gen(3), 2, 1, 1, 5), _u(_gen(4), 1), True)),
        _s(lambda: (_r(_gen(3), 2, 1, 3, 3), _u(_gen(4), 1), False)),
    ],
    "CausalChannelConv": [
        _s(lambda: (_turned(_r(_gen(1), 1, 4, 2)), _turned(_r(_gen(2), 2, 2)))),
        _s(lambda: (_r(_gen(3), 2, 3, 1), _r(_gen(4), 4, 1), _r(_gen(5), 1), 3)),
        _s(lambda: (_r(_gen(3), 2, 8, 2), _r(_gen(4), 3, 2), None, 2)),
    ],
    "TopKGate": [
        _s(lambda: (_turned(_r(_gen(1), 4, 3)), 1, False)),
        _s(lambda: (_r(_gen(2), 2, 6), 3, False)),
        _s(lambda: (_r(_gen(2), 2, 3), 3)),
    ],
    "TiledHeadLoss": [
        _s(
            lambda: (_turned(_r(_gen(1), 4, 2)), _r(_gen(2), 3, 2), _ids(0, 1, 2, 0)),
            make=lambda c: c(),
        ),
        _s(
            lambda: (_r(_gen(3), 3, 2), _turned(_r(_gen(4), 5, 2)), _ids(0, 4, 0)),
            make=lambda c: c(1, 0),
        ),
    ],
    "BalancedMixer": [
        _s(lambda: (_r(_gen(1), 4, 4), _r(_gen(2), 4, 1)), make=lambda c: c()),
        _s(
            lambda: (_turned(_r(_gen(1), 1, 2, 2)), _turned(_r(_gen(2), 3, 2, 3))),
            make=lambda c: c(1, 0.5),
        ),
    ],
    "VertexNormals": [
        _s(lambda: _isolated_mesh(False)),
        _s(lambda: _isolated_mesh(True)),
        _s(lambda: (_r(_gen(1), 1, 3, 3, scale=0.1), _ids([0, 1, 2], [0, 1, 2]), True)),
    ],
    "RodriguesMatrix": [
        _s(lambda: _rot(1e-4, 2)),
        _s(lambda: _rot(2.0, 2, 2)),
        _s(lambda: (_turned(_r(_gen(1), 3, 3, scale=6.0)),)),
        _s(lambda: (torch.zeros(3, dtype=F64, requires_grad=True),)),
    ],
    "RigidAlign": [
        _s(lambda: _mirror(2.0, 1, 5, False)),
        _s(lambda: _mirror(0.5, 2, 4, True)),
        _s(lambda: (*_mirror(1.0, 3, 7, False), _u(_gen(4), 7, low=0.1))),
        _s(
            lambda: (_t([0, 0, 0], [1, 0, 0], [0, 1.5, 0]), _t([0, 0, 1], [0, 1.2, 0], [0.3, 0, 2]))
        ),
    ],
    "PolygonMoments": [
        _s(_clockwise),
        _s(lambda: (_turned(_t([[0, 0], [2, 0], [0, 1]], [[5, 5], [5, 4], [9, 1]])),)),
    ],
    "TrimmedChamfer": [
        _s(lambda: (_turned(_r(_gen(1), 2, 2)), _r(_gen(2), 4, 2))),
        _s(lambda: (_r(_gen(3), 6, 3, scale=3.0), _r(_gen(4), 2, 3), 2.5, "sum")),
        _s(lambda: (_t([0, 0], [1, 1]), _t([0, 0], [3, 3]), 2.0, "sum")),
    ],
    "SegmentDistance": [
        _s(lambda: _segments(True)),
        _s(lambda: _segments(True, zero=True)),
        _s(lambda: _segments(False)),
    ],
    "ShortSlerp": [
        _s(lambda: _quats(1, 1e-5, 2)),
        _s(lambda: _quats(2, 3.0, 2, 2)),
        _s(lambda: _quats(3, 0.0, 3)),
        _s(_near_ninety),
    ],
    "RationalBezier": [
        _s(lambda: (_turned(_r(_gen(1), 3, 3)), _t(0.0, 0.3, 1.0))),
        _s(lambda: (_r(_gen(2), 1, 2), _t(0.4), _t(2.0))),
        _s(lambda: (_r(_gen(3), 6, 1), _u(_gen(4), 2), _u(_gen(5), 6, low=0.1))),
    ],
    "NeighbourSmoother": [
        _s(lambda: (_turned(_r(_gen(1), 2, 3, 2)),), make=lambda c: c(_ids([0, 1], [1, 2]), 3)),
        _s(lambda: (_r(_gen(2), 2, 1),), make=lambda c: c(_ids([0, 1]), 2, 1.0, 1)),
    ],
    "TrilinearVoxels": [
        _s(lambda: (_u(_gen(1), 4, 3), _r(_gen(2), 4, 1)), make=lambda c: c()),
        _s(
            lambda: (_turned(_r(_gen(3), 6, 3, scale=3.0)), _turned(_r(_gen(4), 6, 3))),
            make=lambda c: c((2, 5, 3), -2.0, 4.0),
        ),
    ],
}
