"""Cases of this part: what is wrong where, and inputs that show it.

"inputs" names a zero-argument function of this file that gives the tuple of arguments
(of ``apply``, or of ``forward`` for a module).  "make", where present, takes the class
(right or wrong) and gives the module.  second_order_right: True, False (lost or wrong
in the right one too), None (once_differentiable).
"""

import torch

D = torch.float64


def _rand(*shape, lo=0.0, hi=1.0, grad=True):
    return (lo + (hi - lo) * torch.rand(*shape, dtype=D)).requires_grad_(grad)


def _randn(*shape, grad=True):
    return torch.randn(*shape, dtype=D).requires_grad_(grad)


def _crandn(*shape, grad=True):
    return torch.randn(*shape, dtype=torch.complex128).requires_grad_(grad)


def _leaf(x):
    return x.detach().clone(memory_format=torch.preserve_format).requires_grad_()


_EDGES = [[0, 1, 1, 2, 3, 3, 0], [1, 0, 2, 1, 1, 2, 3]]


def _edges():
    return torch.tensor(_EDGES)


# ---- graphnets


def inputs_GCNPropagate():
    torch.manual_seed(1)
    return (_randn(4, 3), _edges(), _rand(7, lo=0.2))


def inputs_SegmentSoftmax():
    torch.manual_seed(2)
    return (_randn(7, 2), torch.tensor([0, 2, 0, 1, 2, 2, 0]), 4)


def inputs_SegmentMaxPool():
    torch.manual_seed(3)
    return (_randn(5, 3), torch.tensor([0, 0, 2, 2, 2]), 4)


def inputs_CsrMatmul():
    torch.manual_seed(4)
    crow = torch.tensor([0, 2, 2, 5])
    col = torch.tensor([0, 3, 1, 2, 3])
    return (crow, col, _randn(5), _randn(4, 2))


def inputs_EdgeGatedMean():
    torch.manual_seed(5)
    return (_randn(7, 3), _randn(4, 3), _edges())


def inputs_EdgeLength():
    torch.manual_seed(6)
    return (_randn(4, 3), _edges())


def inputs_EquivariantNormGate():
    torch.manual_seed(7)
    v = _randn(4, 2, 3).detach()
    v[1, 0] = 0.0
    return (v.requires_grad_(), _randn(2))


def inputs_TopKNodes():
    torch.manual_seed(8)
    return (_randn(5, 3), _randn(5), 0.6)


def inputs_EdgeAttentionLogits():
    torch.manual_seed(9)
    return (_randn(4, 2, 5), _randn(4, 2, 5), _edges())


def inputs_GraphNorm():
    torch.manual_seed(10)
    return (_randn(6, 3), torch.tensor([0, 0, 0, 1, 1, 1]))


def make_GraphNorm(cls):
    torch.manual_seed(60)
    module = cls(3).double()
    for p in module.parameters():
        p.data.copy_(torch.rand(3) + 0.3)
    return module


# ---- finance


def inputs_BlackScholesPrice():
    torch.manual_seed(11)
    spot = _rand(3, 1, lo=80.0, hi=120.0)
    strike = torch.tensor([90.0, 110.0], dtype=D, requires_grad=True)
    vol = torch.tensor(0.25, dtype=D, requires_grad=True)
    return (spot, strike, vol, 0.75, 0.03, False)


def inputs_ExpectedShortfall():
    torch.manual_seed(12)
    return (_randn(20, 3), 0.8)


def inputs_ZeroCurveDiscount():
    torch.manual_seed(13)
    knots = torch.tensor([0.5, 1.0, 2.0, 5.0], dtype=D)
    times = torch.tensor([0.25, 0.7, 1.5, 1.8, 4.0, 7.5], dtype=D)
    return (_rand(4, lo=0.01, hi=0.05), knots, times)


def inputs_MinVarianceWeights():
    torch.manual_seed(14)
    a = torch.randn(4, 6, dtype=D)
    return ((a @ a.t() / 6).requires_grad_(), 0.2)


def inputs_EwmaVariance():
    torch.manual_seed(15)
    lam = torch.tensor(0.9, dtype=D, requires_grad=True)
    return (_randn(5, 2), lam, _rand(2, lo=0.5))


def inputs_SharpeRatio():
    torch.manual_seed(16)
    return (_randn(6, 2), 0.1, 12)


def inputs_BondPrice():
    torch.manual_seed(17)
    times = torch.tensor([0.5, 1.0, 1.5, 2.0], dtype=D)
    return (_rand(3, lo=0.02, hi=0.3), _rand(3, 4, lo=1.0, hi=5.0), times)


def inputs_ImpliedVolatility():
    spot = torch.tensor([95.0, 100.0, 108.0], dtype=D, requires_grad=True)
    price = torch.tensor([4.0, 8.5, 15.0], dtype=D, requires_grad=True)
    return (price, spot, 100.0, 0.8)


def inputs_MaxDrawdown():
    rows = [
        [1.0, 1.3, 1.1, 1.6, 0.9, 1.2],
        [2.0, 1.7, 1.9, 2.4, 2.6, 2.2],
        [1.0, 1.1, 1.2, 1.4, 1.7, 2.0],
    ]
    return (torch.tensor(rows, dtype=D, requires_grad=True),)


def inputs_LongOnlyProjection():
    torch.manual_seed(20)
    return (_randn(4, 5),)


# ---- medical


def inputs_CoilFourier():
    torch.manual_seed(21)
    mask = torch.rand(4, 3) > 0.3
    return (_crandn(4, 3), _crandn(2, 4, 3), mask)


def inputs_ParallelProjector():
    torch.manual_seed(22)
    return (_rand(3, 5), torch.tensor([0.1, 0.8, 2.0], dtype=D), 6)


def inputs_WarpImage():
    torch.manual_seed(23)
    return (_randn(2, 2, 4, 3), _rand(2, 2, 4, 3, lo=-1.4, hi=1.4))


def inputs_SoftDiceLoss():
    torch.manual_seed(24)
    return (_rand(2, 3, 5), (torch.rand(2, 3, 5) > 0.5).to(D))


def inputs_TverskyIndex():
    torch.manual_seed(25)
    return (_rand(3, 2, 4), (torch.rand(3, 2, 4) > 0.5).to(D), 0.3, 0.7)


def inputs_RichardsonLucyStep():
    torch.manual_seed(26)
    psf = torch.tensor([0.5, 0.3, 0.2], dtype=D)
    return (_rand(2, 8, lo=0.5, hi=2.0), _rand(2, 8, lo=0.5, hi=2.0), psf)


def inputs_CrossCorrelation():
    torch.manual_seed(27)
    return (_randn(2, 3, 4), _randn(2, 3, 4))


def inputs_RootSumSquares():
    torch.manual_seed(28)
    return (_crandn(3, 3, 4), 1)


def inputs_BiquadFilter():
    torch.manual_seed(29)
    a = torch.tensor([-0.6, 0.25], dtype=D, requires_grad=True)
    return (_randn(2, 7), _randn(3), a)


def inputs_KSpaceConsistency():
    torch.manual_seed(30)
    return (_crandn(2, 4, 3), _crandn(2, 4, 3), torch.rand(4, 3) > 0.5)


def make_KSpaceConsistency(cls):
    return cls(lam=0.7).double()


# ---- gamesim


def inputs_SpringForces():
    torch.manual_seed(31)
    springs = torch.tensor([[0, 1], [1, 2], [2, 0], [2, 3]])
    return (_randn(4, 3), springs, _rand(4, lo=0.3), 3.0)


def inputs_AdvectPeriodic():
    torch.manual_seed(32)
    return (_randn(4, 5), _rand(2, 4, 5, lo=-3.0, hi=3.0), 0.4)


def inputs_QuatRotate():
    torch.manual_seed(33)
    return (_randn(3, 4), _randn(3, 3))


def inputs_BallCollider():
    pos = [[0.3, 0.4, 0.2], [1.3, 0.1, 0.0], [2.0, 0.5, 1.0], [0.0, -1.02, 0.1]]
    vel = [[9.0, 4.0, 3.0], [-4.0, 0.5, 0.2], [-1.0, 0.0, 1.0], [0.0, 3.0, 0.1]]
    return (
        torch.tensor(pos, dtype=D, requires_grad=True),
        torch.tensor(vel, dtype=D, requires_grad=True),
    )


def make_BallCollider(cls):
    return cls(radius=1.0, substeps=3).double()


def inputs_BallisticTracker():
    torch.manual_seed(35)
    return (_randn(2, 3), _randn(2, 3))


def make_BallisticTracker(cls):
    return cls(frames=3, dt=0.3).double()


def inputs_SoftDiscs():
    torch.manual_seed(36)
    centers = _rand(2, 2, lo=0.5, hi=3.5)
    return (centers, _rand(2, lo=0.7, hi=1.6), (4, 5), 2.0)


def inputs_VolumeRender():
    torch.manual_seed(37)
    return (_rand(2, 5, hi=2.0), _rand(2, 5, 3), _rand(2, 5, grad=False), 1.0)


def inputs_BoxDistance():
    pts = [[1.4, -0.2], [-1.7, -1.9], [0.3, 0.1], [-0.8, 0.2], [0.2, -2.0]]
    half = torch.tensor([1.0, 1.2], dtype=D, requires_grad=True)
    return (torch.tensor(pts, dtype=D, requires_grad=True), half)


def inputs_JacobiPressure():
    torch.manual_seed(39)
    return (_randn(4, 5), (0.5, 1.0), 6)


def inputs_LambertShade():
    torch.manual_seed(40)
    return (_randn(6, 3), _randn(3), _rand(6, lo=0.2))


# ---- layers


def inputs_AddRMSNorm():
    torch.manual_seed(41)
    return (_randn(2, 3, 4), _randn(2, 3, 4), _rand(4, lo=0.5, hi=1.5))


def inputs_LeanELU():
    torch.manual_seed(42)
    return (_randn(3, 5),)


def make_LeanELU(cls):
    return cls(alpha=0.5)


def inputs_SeededDropout():
    torch.manual_seed(43)
    return (_randn(4, 5),)


def make_SeededDropout(cls):
    return cls(p=0.4, seed=5)


def inputs_CausalAttention():
    torch.manual_seed(44)
    return (_randn(2, 4, 3), _randn(2, 4, 3), _randn(2, 4, 2))


def inputs_WindowConv1d():
    torch.manual_seed(45)
    return (_randn(2, 3, 9), _randn(4, 3, 3), _randn(4), 2, 1)


def inputs_StripMaxPool():
    torch.manual_seed(46)
    return (_leaf(torch.randn(7, 3, dtype=D).t()), 3, 2)


def inputs_TokenBag():
    return (torch.tensor([[1, 3, 3, 0], [2, 0, 0, 0], [0, 0, 0, 0], [4, 1, 2, 3]]),)


def make_TokenBag(cls):
    torch.manual_seed(62)
    return cls(6, 3).double()


def inputs_MinimalGatedCell():
    torch.manual_seed(48)
    return (_randn(3, 4), _randn(3, 4), _randn(3, 4), _randn(4, 4), _randn(4, 4))


def inputs_PackedSwiGLU():
    torch.manual_seed(49)
    return (_randn(3, 8),)


def inputs_SoftQuantize():
    x = [-0.9, -0.31, -0.05, 0.08, 0.2, 0.44, 0.61, 0.93]
    return (torch.tensor(x, dtype=D, requires_grad=True), 0.25, 3.0)


_ROWS = [
    # group, name, kind, fault, when, shows, second_order_right
    (
        "graphnets",
        "GCNPropagate",
        "needs_input_grad",
        "asks needs_input_grad of edge_index, so edge_weight gets None",
        "edge_weight needs a gradient",
        "first",
        True,
    ),
    (
        "graphnets",
        "SegmentSoftmax",
        "repeated index",
        "index_copy in place of index_add for the sum over a segment",
        "two edges end at one node",
        "first",
        True,
    ),
    (
        "graphnets",
        "SegmentMaxPool",
        "mask",
        "gradient of an empty graph goes to row 0",
        "a graph without nodes",
        "first",
        None,
    ),
    (
        "graphnets",
        "CsrMatmul",
        "number of gradients",
        "three gradients for four inputs",
        "always (raises)",
        "both",
        True,
    ),
    (
        "graphnets",
        "EdgeGatedMean",
        "missing term",
        "the gates' part in the denominator is left out",
        "always",
        "first",
        True,
    ),
    (
        "graphnets",
        "EdgeLength",
        "second derivative",
        "difference vectors taken from pos.data",
        "double backward",
        "second",
        True,
    ),
    (
        "graphnets",
        "EquivariantNormGate",
        "NaN",
        "0/0 for a vector of length 0",
        "a zero vector",
        "both",
        True,
    ),
    (
        "graphnets",
        "TopKNodes",
        "chain rule",
        "derivative of tanh missing in the scores' gradient",
        "always",
        "first",
        True,
    ),
    (
        "graphnets",
        "EdgeAttentionLogits",
        "factor",
        "default scale from the number of heads instead of the dimension",
        "scale is None, heads != dim",
        "first",
        True,
    ),
    (
        "graphnets",
        "GraphNorm",
        "missing factor",
        "mean_scale missing in the path through the mean",
        "mean_scale != 1",
        "first",
        True,
    ),
    (
        "finance",
        "BlackScholesPrice",
        "option",
        "delta of the call for a put too",
        "is_call=False",
        "first",
        True,
    ),
    (
        "finance",
        "ExpectedShortfall",
        "sign",
        "loss is -pnl: minus forgotten",
        "always",
        "first",
        True,
    ),
    (
        "finance",
        "ZeroCurveDiscount",
        "clamp",
        "interpolation weight not clamped in backward",
        "times outside of the knots",
        "first",
        True,
    ),
    (
        "finance",
        "MinVarianceWeights",
        "option",
        "ridge left out of the adjoint solve",
        "ridge not tiny",
        "first",
        True,
    ),
    (
        "finance",
        "EwmaVariance",
        "off-by-one",
        "variance of step t in place of that of step t - 1",
        "more than one step",
        "first",
        True,
    ),
    (
        "finance",
        "SharpeRatio",
        "normaliser",
        "n in place of n - 1 for the unbiased deviation",
        "unbiased=True",
        "first",
        True,
    ),
    (
        "finance",
        "BondPrice",
        "chain rule",
        "Macaulay instead of modified duration (no division by 1 + y/f)",
        "yield not 0",
        "first",
        True,
    ),
    (
        "finance",
        "ImpliedVolatility",
        "ignores grad_output",
        "gradient of spot not multiplied by g",
        "g is not one",
        "first",
        None,
    ),
    (
        "finance",
        "MaxDrawdown",
        "repeated index",
        "scatter overwrites where peak and trough are one day",
        "a path that never falls",
        "first",
        True,
    ),
    (
        "finance",
        "LongOnlyProjection",
        "mask",
        "mean over the held assets sums the gradient of all assets",
        "an asset of weight 0",
        "first",
        True,
    ),
    (
        "medical",
        "CoilFourier",
        "conjugate",
        "image not conjugated in grad of the sensitivities",
        "complex image",
        "first",
        True,
    ),
    (
        "medical",
        "ParallelProjector",
        "non-square",
        "height and width swapped in the back projection",
        "image not square",
        "first",
        True,
    ),
    (
        "medical",
        "WarpImage",
        "clamp",
        "horizontal gradient masked by the vertical border test",
        "positions outside of the image",
        "first",
        True,
    ),
    (
        "medical",
        "SoftDiceLoss",
        "reduction",
        "mean divides by the batch only, not by batch times classes",
        "reduction mean, more than one class",
        "first",
        True,
    ),
    (
        "medical",
        "TverskyIndex",
        "swapped",
        "alpha and beta exchanged",
        "alpha != beta",
        "first",
        True,
    ),
    (
        "medical",
        "RichardsonLucyStep",
        "in place",
        "estimate, an input, is multiplied in place in backward",
        "always (the input changes)",
        "both",
        True,
    ),
    (
        "medical",
        "CrossCorrelation",
        "None for",
        "None for the fixed image",
        "fixed needs a gradient",
        "first",
        True,
    ),
    (
        "medical",
        "RootSumSquares",
        "option",
        "dim ignored where the axis is put back",
        "dim != 0 (raises unless the sizes are equal)",
        "first",
        True,
    ),
    (
        "medical",
        "BiquadFilter",
        "wrong saved tensor",
        "input in place of output in the feedback coefficients' gradient",
        "always",
        "first",
        None,
    ),
    (
        "medical",
        "KSpaceConsistency",
        "mask",
        "mask inverted in grad of the prediction",
        "lam != 0",
        "first",
        True,
    ),
    (
        "gamesim",
        "SpringForces",
        "missing term",
        "change of length left out of the stiffness",
        "always",
        "first",
        True,
    ),
    (
        "gamesim",
        "AdvectPeriodic",
        "missing factor",
        "dt missing in grad of the velocity",
        "dt != 1",
        "first",
        True,
    ),
    (
        "gamesim",
        "QuatRotate",
        "chain rule",
        "projection of the normalisation left out",
        "always",
        "first",
        True,
    ),
    (
        "gamesim",
        "BallCollider",
        "state",
        "hits read from a module-level cache that the last call wrote",
        "hits differ between substeps",
        "first",
        True,
    ),
    (
        "gamesim",
        "BallisticTracker",
        "unused output",
        "no gradient at all where one of the two outputs is not used",
        "the last velocity is not used",
        "first",
        True,
    ),
    (
        "gamesim",
        "SoftDiscs",
        "in place",
        "grad_output multiplied in place",
        "always (harm where the gradient is shared)",
        "both",
        True,
    ),
    (
        "gamesim",
        "VolumeRender",
        "off-by-one",
        "sum of what lies behind includes the sample itself",
        "always",
        "first",
        True,
    ),
    (
        "gamesim",
        "BoxDistance",
        "missing factor",
        "sign of the coordinate missing",
        "negative coordinates",
        "first",
        True,
    ),
    (
        "gamesim",
        "JacobiPressure",
        "option",
        "grid spacing taken as 1 in backward",
        "spacing != 1",
        "first",
        True,
    ),
    (
        "gamesim",
        "LambertShade",
        "second derivative",
        "length of the light vector cut off by .item()",
        "double backward",
        "second",
        True,
    ),
    (
        "layers",
        "AddRMSNorm",
        "second output",
        "gradient of the second output h ignored",
        "h is used",
        "first",
        True,
    ),
    (
        "layers",
        "LeanELU",
        "option",
        "alpha taken as 1 in backward",
        "alpha != 1",
        "first",
        True,
    ),
    (
        "layers",
        "SeededDropout",
        "factor",
        "1 / (1 - p) missing in backward",
        "training, p > 0",
        "first",
        True,
    ),
    (
        "layers",
        "CausalAttention",
        "wrong axis",
        "softmax term summed over queries instead of keys",
        "always",
        "first",
        True,
    ),
    (
        "layers",
        "WindowConv1d",
        "option",
        "padding not cut off on the left",
        "padding > 0",
        "first",
        True,
    ),
    (
        "layers",
        "StripMaxPool",
        "layout",
        "reshape of a strided buffer is a copy: the gradient stays zero",
        "x not contiguous",
        "first",
        True,
    ),
    (
        "layers",
        "TokenBag",
        "dtype",
        "buffer of the gradient is float32 whatever the weight is",
        "not float32 (raises)",
        "first",
        True,
    ),
    (
        "layers",
        "MinimalGatedCell",
        "transposed",
        "un in place of its transpose",
        "un not symmetric",
        "first",
        True,
    ),
    (
        "layers",
        "PackedSwiGLU",
        "second derivative",
        "input detached when it is unpacked in backward",
        "double backward",
        "second",
        True,
    ),
    (
        "layers",
        "SoftQuantize",
        "second derivative",
        "1 / step missing in the backward's own backward",
        "double backward, step != 1",
        "second",
        True,
    ),
]

CASES = []
for _group, _name, _kind, _fault, _when, _shows, _second in _ROWS:
    _row = {
        "group": _group,
        "name": _name,
        "kind": _kind,
        "fault": _fault,
        "shows": _shows,
        "when": _when,
        "inputs": f"inputs_{_name}",
        "second_order_right": _second,
    }
    if f"make_{_name}" in globals():
        _row["make"] = globals()[f"make_{_name}"]
    CASES.append(_row)
