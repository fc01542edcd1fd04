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


def _tensor(data, grad=True):
    return torch.tensor(data, dtype=D).requires_grad_(grad)


# ---- vision3d


def _points(n, near, deep):
    """Points of which the first few lie in front of the clamped depth."""
    p = torch.randn(n, 3, dtype=D)
    p[:, 2] = torch.linspace(0.5 * near, deep, n, dtype=D)
    return p.requires_grad_()


def inputs_PinholeProject():
    torch.manual_seed(1)
    return (_points(6, 0.5, 3.0), _tensor([1.5, 1.4, 0.2, -0.1]), 0.5)


def _flow(b, h, w):
    """Displacements that keep away from whole pixels."""
    whole = torch.randint(-1, 2, (b, 2, h, w)).to(D)
    return (whole + 0.2 + 0.6 * torch.rand(b, 2, h, w, dtype=D)).requires_grad_()


def inputs_BilinearFlowWarp():
    torch.manual_seed(2)
    return (_randn(2, 2, 3, 5), _flow(2, 3, 5))


def inputs_VoxelMeanPool():
    torch.manual_seed(3)
    return (_randn(7, 3), torch.tensor([0, 2, 2, -1, 0, 0, 3]), 5)


def inputs_FaceNormalArea():
    torch.manual_seed(4)
    faces = torch.tensor([[0, 1, 2], [3, 1, 0], [2, 1, 4], [4, 3, 0]])
    return (_randn(5, 3), faces)


def inputs_ChamferNearest():
    torch.manual_seed(5)
    return (_randn(6, 3), _randn(4, 3))


def inputs_TsdfTruncate():
    torch.manual_seed(6)
    sdf = _tensor([[-0.4, -0.15, 0.02, 0.1], [0.25, -0.01, 0.5, 0.19]])
    return (sdf, _rand(2, 1, lo=0.5), 0.2)


def inputs_EikonalPenalty():
    torch.manual_seed(7)
    g = torch.randn(5, 3, dtype=D)
    g[3:] = 0.0
    return (g.requires_grad_(), torch.tensor([True, True, True, False, False]))


def inputs_QuaternionRotate():
    torch.manual_seed(8)
    return (_randn(2, 4), _randn(2, 3, 3))


def inputs_AlphaComposite():
    torch.manual_seed(9)
    return (_rand(3, 5, lo=0.1, hi=2.0), _rand(3, 5, lo=0.2), _rand(3, 5, 3), _rand(3))


def inputs_RadialDistortion():
    torch.manual_seed(10)
    return (_randn(4, 2),)


def make_RadialDistortion(cls):
    return cls(0.2, -0.05).double()


# ---- probability


def inputs_HeteroscedasticNLL():
    torch.manual_seed(11)
    return (_randn(4, 4), _randn(4, 4), _randn(4))


def inputs_KLDiagGaussian():
    torch.manual_seed(12)
    return (_randn(3, 4), _randn(3, 4), _randn(3, 4), _randn(3, 4), "batchmean")


def inputs_RelaxedCategorical():
    torch.manual_seed(13)
    return (_randn(3, 5), _rand(3, 5, lo=0.05, hi=0.95, grad=False), 0.7)


def inputs_StudentTLogProb():
    torch.manual_seed(14)
    return (_randn(4, 3), _rand(3, lo=1.5, hi=6.0))


def _log_simplex(*shape):
    return torch.log_softmax(torch.randn(*shape, dtype=D), -1).requires_grad_()


def inputs_HmmLogLikelihood():
    torch.manual_seed(15)
    obs = torch.tensor([0, 2, 2, 1, 3, 0])
    return (_log_simplex(3), _log_simplex(3, 3), _log_simplex(3, 4), obs)


def _corr(n):
    a = torch.randn(n, n, dtype=D)
    c = a @ a.t() + n * torch.eye(n, dtype=D)
    s = c.diagonal().rsqrt()
    return (c * s[:, None] * s[None]).requires_grad_()


def inputs_GaussianCopulaLogDensity():
    torch.manual_seed(16)
    return (_rand(4, 3, lo=0.1, hi=0.9), _corr(3))


def inputs_TruncNormRsample():
    torch.manual_seed(17)
    u = _rand(4, 3, lo=0.1, hi=0.9)
    return (u, _randn(3), _rand(3, lo=0.6, hi=1.5), -1.0, 1.5)


def inputs_DirichletLogNorm():
    torch.manual_seed(18)
    return (_rand(3, 4, lo=0.5, hi=3.0), 0)


def inputs_ZeroInflatedPoissonNLL():
    torch.manual_seed(19)
    counts = torch.tensor([0, 3, 1, 0, 5, 0], dtype=D)
    return (_randn(6), _randn(6), counts)


def _crandn(*shape):
    return torch.randn(*shape, dtype=torch.complex128).requires_grad_()


def inputs_ComplexNormalLogProb():
    torch.manual_seed(20)
    return (_crandn(4, 3), _crandn(3), _rand(3, lo=0.5, hi=1.5))


# ---- trainloss


def inputs_RankNetLoss():
    torch.manual_seed(21)
    return (_randn(6), torch.tensor([2, 0, 1, 1, 3, 0]), 1.5)


def inputs_ClipContrastive():
    torch.manual_seed(22)
    return (_randn(4, 3), _randn(4, 3), _tensor(0.4))


def inputs_SoftDiceLoss():
    torch.manual_seed(23)
    return (_randn(2, 1, 3, 4), torch.rand(2, 1, 3, 4) > 0.6, 1.0)


def inputs_FocalLoss():
    torch.manual_seed(24)
    return (_randn(6, 4), torch.tensor([1, 255, 0, 3, 255, 2]), 2.0, 255)


def inputs_GIoULoss():
    pred = _tensor(
        [
            [0.0, 0.0, 2.0, 2.1],
            [0.3, 0.2, 1.5, 1.2],
            [2.5, 0.4, 3.4, 1.4],
            [2.0, 3.0, 4.0, 4.5],
        ]
    )
    target = _tensor(
        [
            [0.5, 0.6, 2.5, 2.4],
            [0.1, 0.1, 2.0, 2.2],
            [0.2, 0.2, 1.4, 1.8],
            [0.1, 0.3, 1.1, 1.2],
        ],
        grad=False,
    )
    return (pred, target)


def inputs_DistillKL():
    torch.manual_seed(26)
    return (_randn(3, 5), _randn(3, 5, grad=False), 2.5)


def inputs_UncertaintyWeighting():
    return (_tensor([0.3, -0.5, 1.1]), _tensor(0.7), _tensor(2.0), _tensor(0.1))


def inputs_CenterLoss():
    torch.manual_seed(28)
    return (_randn(6, 3), torch.tensor([1, 0, 1, 3, 3, 1]))


def make_CenterLoss(cls):
    torch.manual_seed(280)
    return cls(4, 3).double()


def inputs_LovaszHinge():
    torch.manual_seed(29)
    return (_randn(8), torch.tensor([1, 0, 0, 1, 1, 0, 1, 0]))


def inputs_LabelSmoothCE():
    torch.manual_seed(30)
    weight = _rand(4, lo=0.5, hi=2.0, grad=False)
    return (_randn(5, 4), torch.tensor([0, 2, 3, 3, 1]), weight, 0.1)


# ---- kernels


def inputs_RMSNorm():
    torch.manual_seed(31)
    return (_randn(2, 3, 4),)


def make_RMSNorm(cls):
    module = cls(4, eps=1e-2).double()
    with torch.no_grad():
        module.weight.copy_(torch.tensor([0.5, 1.5, -1.0, 0.8]))
    return module


def inputs_SwiGLU():
    torch.manual_seed(32)
    return (_randn(3, 4), _randn(3, 4))


def _tables(t, d):
    freq = 10.0 ** -torch.arange(0, d // 2, dtype=D)
    ang = torch.arange(t, dtype=D)[:, None] * freq
    return ang.cos(), ang.sin()


def inputs_RotaryEmbed():
    torch.manual_seed(33)
    return (_randn(2, 3, 4), *_tables(3, 4), True)


def inputs_TopKCombine():
    torch.manual_seed(34)
    expert = torch.tensor([[[2, 0], [1, 2], [0, 1]], [[0, 1], [2, 1], [2, 0]]])
    return (_randn(2, 6, 4), _rand(2, 3, 2), expert)


def inputs_VarlenAttention():
    torch.manual_seed(35)
    return (_randn(7, 3), _randn(7, 3), _randn(7, 3), [0, 3, 7], True)


def inputs_GroupDequantLinear():
    torch.manual_seed(36)
    q = torch.randint(-8, 8, (3, 8), dtype=torch.int8)
    z = torch.randint(-2, 3, (3, 2), dtype=torch.int8)
    return (_randn(2, 8), q, _rand(3, 2, lo=0.1), z, _randn(3), 4)


def inputs_AddLayerNorm():
    torch.manual_seed(37)
    return (_randn(2, 5), _randn(2, 5), _randn(5), _randn(5))


def inputs_SoftCap():
    torch.manual_seed(38)
    return (_randn(3, 4),)


def make_SoftCap(cls):
    return cls(cap=1.5, temperature=0.8)


def inputs_AdamStep():
    torch.manual_seed(39)
    return (_randn(5), _randn(5), _randn(5), _rand(5, lo=0.2), 3, 0.1, (0.9, 0.8), 1e-3)


def inputs_RepeatKV():
    torch.manual_seed(40)
    return (_randn(1, 2, 2, 3), 3)


# ---- numerics


def _matrix(n, shift):
    return (torch.randn(n, n, dtype=D) + shift * torch.eye(n, dtype=D)).requires_grad_()


def inputs_LinearSolve():
    torch.manual_seed(41)
    return (_matrix(4, 3.0), _randn(4, 2), True)


def inputs_DepressedCubicRoot():
    torch.manual_seed(42)
    return (_rand(5, lo=0.5, hi=2.0), _randn(5))


def inputs_LinearInterp1d():
    torch.manual_seed(43)
    xq = _tensor([-0.7, 0.2, 0.9, 1.6, 2.3, 3.4, 4.5])
    xp = _tensor([0.0, 0.5, 1.2, 2.0, 3.0], grad=False)
    return (xq, xp, _randn(5), "linear")


def inputs_CumulativeTrapezoid():
    torch.manual_seed(44)
    return (_randn(2, 5), _tensor([0.0, 0.3, 0.8, 1.4, 1.7]))


def inputs_SpectralFilter():
    torch.manual_seed(45)
    return (_randn(2, 7), _crandn(4))


def inputs_TableLookup2d():
    torch.manual_seed(46)
    table = torch.randn(5, 4, dtype=D).t().requires_grad_()
    rows = _tensor([0.3, 0.6, 2.2, 1.5, 0.4])
    cols = _tensor([0.7, 0.2, 3.4, 1.5, 0.1])
    return (table, rows, cols)


def inputs_LambertW0():
    return (_tensor([-0.2, 0.0, 0.4, 1.0, 5.0]),)


def inputs_HarmonicPhase():
    torch.manual_seed(48)
    t = 2451545.0 + torch.tensor([0.03, 0.41, 1.27, 2.08, 3.36], dtype=D)
    return (t, _tensor([0.8, 1.7]), _tensor([1.0, 0.5]), _tensor([0.1, 1.2]))


def _spd(n):
    a = torch.randn(n, n, dtype=D)
    return (a @ a.t() + torch.eye(n, dtype=D)).requires_grad_()


def inputs_SpdSqrt():
    torch.manual_seed(49)
    return (_spd(3),)


def inputs_LogDiffExp():
    torch.manual_seed(50)
    return (_rand(4, lo=1.0, hi=2.0), _rand(4, lo=-1.0, hi=0.8))


# group, name, kind, fault, when, shows, second_order_right
_ROWS = [
    (
        "vision3d",
        "PinholeProject",
        "clamp",
        "gradient of the depth passes where the depth was clamped",
        "points between 0 and near",
        "first",
        True,
    ),
    (
        "vision3d",
        "BilinearFlowWarp",
        "non-square",
        "row stride is the height in place of the width",
        "height != width (raises when height > width)",
        "first",
        True,
    ),
    (
        "vision3d",
        "VoxelMeanPool",
        "normaliser",
        "gradient not divided by the number of points in the voxel",
        "a voxel with more than one point",
        "first",
        True,
    ),
    (
        "vision3d",
        "FaceNormalArea",
        "repeated index",
        "+= with repeated vertex indices keeps one of them",
        "a vertex that is the second one of two faces",
        "first",
        True,
    ),
    (
        "vision3d",
        "ChamferNearest",
        "sign",
        "gradient of b has the sign of that of a",
        "always",
        "first",
        True,
    ),
    (
        "vision3d",
        "TsdfTruncate",
        "threshold",
        "scaled distance compared with trunc in place of 1",
        "trunc**2 < |sdf| < trunc",
        "first",
        True,
    ),
    (
        "vision3d",
        "EikonalPenalty",
        "NaN",
        "norm not clamped: 0 / 0 in the padding rows",
        "a row of zeros",
        "first",
        True,
    ),
    (
        "vision3d",
        "QuaternionRotate",
        "missing term",
        "gradient not projected for the normalisation of q",
        "always",
        "first",
        True,
    ),
    (
        "vision3d",
        "AlphaComposite",
        "off-by-one",
        "suffix sum includes the sample itself",
        "always",
        "first",
        True,
    ),
    (
        "vision3d",
        "RadialDistortion",
        "second derivative",
        "squared radius detached",
        "double backward",
        "second",
        True,
    ),
    (
        "probability",
        "HeteroscedasticNLL",
        "broadcast sum",
        "columns not summed over in grad of log_var",
        "N == D (raises otherwise)",
        "first",
        True,
    ),
    (
        "probability",
        "KLDiagGaussian",
        "option",
        "backward asks for a reduction of another name",
        "reduction='batchmean' and more than one row",
        "first",
        True,
    ),
    (
        "probability",
        "RelaxedCategorical",
        "in place",
        "grad_output is changed in place",
        "always (harm where the gradient is shared)",
        "both",
        True,
    ),
    (
        "probability",
        "StudentTLogProb",
        "factor",
        "last term of grad of df halved twice",
        "always",
        "first",
        True,
    ),
    (
        "probability",
        "HmmLogLikelihood",
        "transposed",
        "transition matrix transposed in the backward recursion",
        "transitions not symmetric",
        "first",
        None,
    ),
    (
        "probability",
        "GaussianCopulaLogDensity",
        "chain rule",
        "multiplied by the normal density in place of divided, in grad of u",
        "always",
        "first",
        True,
    ),
    (
        "probability",
        "TruncNormRsample",
        "missing term",
        "bounds taken as constant in grad of scale",
        "always",
        "first",
        True,
    ),
    (
        "probability",
        "DirichletLogNorm",
        "wrong axis",
        "total taken over the last axis whatever dim is",
        "dim is not the last",
        "first",
        True,
    ),
    (
        "probability",
        "ZeroInflatedPoissonNLL",
        "mask",
        "mask of the zero counts inverted",
        "always",
        "first",
        True,
    ),
    (
        "probability",
        "ComplexNormalLogProb",
        "conjugate",
        "deviation conjugated",
        "imaginary part of z - mean not zero",
        "first",
        True,
    ),
    (
        "trainloss",
        "RankNetLoss",
        "ignores grad_output",
        "gradient not multiplied by grad_loss",
        "grad_loss is not one",
        "both",
        True,
    ),
    (
        "trainloss",
        "ClipContrastive",
        "None for",
        "None for the trainable logit_scale",
        "logit_scale requires grad",
        "first",
        True,
    ),
    (
        "trainloss",
        "SoftDiceLoss",
        "epsilon",
        "1e-6 in place of smooth in the denominator",
        "always",
        "first",
        False,
    ),
    (
        "trainloss",
        "FocalLoss",
        "mask",
        "ignored targets are not masked",
        "ignored targets",
        "first",
        False,
    ),
    (
        "trainloss",
        "GIoULoss",
        "clamp",
        "gradient of the overlap not stopped where it was clamped to zero",
        "boxes apart along exactly one axis",
        "first",
        None,
    ),
    (
        "trainloss",
        "DistillKL",
        "factor",
        "T^2 in place of T",
        "temperature != 1",
        "first",
        True,
    ),
    (
        "trainloss",
        "UncertaintyWeighting",
        "missing factor",
        "losses get the plain gradient, without exp(-s)",
        "a log_var that is not zero",
        "first",
        True,
    ),
    (
        "trainloss",
        "CenterLoss",
        "needs_input_grad",
        "index of the labels in place of that of the centers",
        "always",
        "first",
        True,
    ),
    (
        "trainloss",
        "LovaszHinge",
        "permutation",
        "permuted once more in place of the inverse",
        "the sorting permutation is not its own inverse",
        "first",
        None,
    ),
    (
        "trainloss",
        "LabelSmoothCE",
        "in place",
        "forward normalises the caller's logits in place",
        "always (the logits are changed, the gradient is not)",
        "first",
        True,
    ),
    (
        "kernels",
        "RMSNorm",
        "second derivative",
        "rstd computed from the detached x",
        "double backward",
        "second",
        True,
    ),
    (
        "kernels",
        "SwiGLU",
        "second derivative",
        "mixed term missing in the hand-written double backward",
        "double backward",
        "second",
        True,
    ),
    (
        "kernels",
        "RotaryEmbed",
        "option",
        "gradient split as if interleaved were False",
        "interleaved=True",
        "first",
        True,
    ),
    (
        "kernels",
        "TopKCombine",
        "state",
        "calls share one dict, so the last call's slots are used for all",
        "a second call with another routing before the backward of the first",
        "first",
        True,
    ),
    (
        "kernels",
        "VarlenAttention",
        "saved tensor",
        "k in place of q in grad of k",
        "always",
        "first",
        True,
    ),
    (
        "kernels",
        "GroupDequantLinear",
        "number of gradients",
        "None for group_size missing",
        "always (raises)",
        "both",
        True,
    ),
    (
        "kernels",
        "AddLayerNorm",
        "unused output",
        "no gradient at all when one of the two outputs is not used",
        "only one output used",
        "first",
        True,
    ),
    (
        "kernels",
        "SoftCap",
        "saved tensor",
        "overwritten x, which is the output, taken for the input",
        "always",
        "first",
        True,
    ),
    (
        "kernels",
        "AdamStep",
        "missing term",
        "path of grad through exp_avg_sq missing",
        "always",
        "first",
        True,
    ),
    (
        "kernels",
        "RepeatKV",
        "wrong axis",
        "repeats and heads in the wrong order",
        "more than one head and n_rep > 1",
        "first",
        True,
    ),
    (
        "numerics",
        "LinearSolve",
        "option",
        "adjoint ignored in grad of A",
        "adjoint=True and A not symmetric",
        "first",
        True,
    ),
    (
        "numerics",
        "DepressedCubicRoot",
        "sign",
        "minus of the implicit function theorem missing for a",
        "always",
        "first",
        True,
    ),
    (
        "numerics",
        "LinearInterp1d",
        "option",
        "queries outside get no gradient although they are extrapolated",
        "extrapolate='linear' and a query outside",
        "first",
        True,
    ),
    (
        "numerics",
        "CumulativeTrapezoid",
        "reversed",
        "running sum of the gradient from the front in place of from the back",
        "always",
        "first",
        True,
    ),
    (
        "numerics",
        "SpectralFilter",
        "boundary",
        "last bin counted once although it is no Nyquist bin",
        "odd length",
        "first",
        True,
    ),
    (
        "numerics",
        "TableLookup2d",
        "layout",
        "buffer has the table's strides, so reshape(-1) copies and the sums are lost",
        "table not contiguous",
        "first",
        True,
    ),
    (
        "numerics",
        "LambertW0",
        "NaN",
        "w / (x (1 + w)) in place of its limit",
        "x is zero",
        "first",
        True,
    ),
    (
        "numerics",
        "HarmonicPhase",
        "dtype",
        "Julian dates cut to float32",
        "always",
        "both",
        True,
    ),
    (
        "numerics",
        "SpdSqrt",
        "second derivative",
        "root detached",
        "double backward",
        "second",
        True,
    ),
    (
        "numerics",
        "LogDiffExp",
        "order of gradients",
        "gradients of a and b exchanged",
        "always (raises for some shapes)",
        "first",
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
