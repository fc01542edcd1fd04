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


# ---- chem


def inputs_LennardJonesCut():
    r = torch.tensor([0.95, 1.1, 1.3, 1.8, 2.2, 2.8, 3.1], dtype=D, requires_grad=True)
    return (r, 0.8, 1.1)


def inputs_MorseBonds():
    torch.manual_seed(1)
    bonds = torch.tensor([[0, 1], [2, 1], [3, 1], [3, 4]])
    return (_randn(5, 3), bonds, 1.5, 1.2)


def inputs_CosineAngleEnergy():
    torch.manual_seed(2)
    triples = torch.tensor([[0, 1, 2], [1, 2, 3], [4, 2, 0]])
    return (_randn(5, 3), triples, _rand(3, lo=0.5, hi=2.0))


def inputs_TorsionAngle():
    torch.manual_seed(3)
    return (_randn(4, 4, 3),)


def inputs_GaussianSmearing():
    torch.manual_seed(4)
    return (
        _rand(3, 4, hi=2.0),
        torch.linspace(0.0, 2.0, 5, dtype=D).requires_grad_(),
        3.0,
    )


def inputs_CosineEnvelope():
    torch.manual_seed(5)
    return (_rand(8, lo=0.2, hi=4.5), 4.0, 3)


def inputs_EwaldRealSpace():
    torch.manual_seed(6)
    pairs = torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]])
    return (_randn(4), _randn(4, 3), pairs, 0.5)


def inputs_BesselRadial():
    torch.manual_seed(7)
    return (_rand(5, lo=0.5, hi=3.5),)


def inputs_PairRepulsionSum():
    torch.manual_seed(8)
    return (_randn(5, 3),)


def inputs_SwitchingFunction():
    r = torch.tensor([0.4, 0.8, 1.2, 1.5, 1.9, 2.3, 2.7], dtype=D, requires_grad=True)
    return (r, 1.0, 2.0)


# ---- structured


def inputs_BlockDiagonalMul():
    torch.manual_seed(11)
    return (_randn(3, 2, 2), _randn(4, 6))


def inputs_BandedMul():
    torch.manual_seed(12)
    return (_randn(3, 6), _randn(2, 6))


def inputs_ToeplitzMul():
    torch.manual_seed(13)
    return (_randn(7), _randn(4, 3))


def inputs_CirculantMul():
    torch.manual_seed(14)
    return (_randn(5), _randn(3, 5))


def inputs_LowRankPlusDiag():
    torch.manual_seed(15)
    return (_randn(5, 2), _randn(5, 2), _randn(5), _randn(5, 3))


def inputs_KroneckerApply():
    torch.manual_seed(16)
    return (_randn(2, 3), _randn(4, 2), _randn(3, 6), 0.7)


def inputs_TridiagonalSolve():
    torch.manual_seed(17)
    return (_randn(4), _rand(5, lo=4.0, hi=6.0), _randn(4), _randn(5))


def inputs_CooMatVec():
    torch.manual_seed(18)
    row = torch.tensor([0, 0, 1, 2, 2, 2])
    col = torch.tensor([1, 3, 1, 0, 2, 3])
    return (_randn(6), row, col, _randn(4), 3)


def inputs_PackedSymQuadForm():
    torch.manual_seed(19)
    return (_randn(6), _randn(4, 3))


def inputs_HouseholderReflect():
    torch.manual_seed(20)
    return (_randn(4), _randn(3, 4))


# ---- restore


def inputs_RangeWeightedSmooth():
    torch.manual_seed(21)
    return (_rand(2, 1, 4, 5), 3, 0.4)


def inputs_GuidedPatchFilter():
    torch.manual_seed(22)
    return (_rand(3, 9), _rand(3, 9), 0.1)


def inputs_SpaceToDepth():
    torch.manual_seed(23)
    return (_randn(1, 2, 4, 6), 2)


def inputs_GreyDilation1d():
    torch.manual_seed(24)
    return (_randn(2, 2, 9), _randn(2, 3), 2)


def inputs_SrgbToLinear():
    x = [0.001, 0.01, 0.02, 0.03, 0.06, 0.3, 0.7, 0.95]
    return (torch.tensor(x, dtype=D, requires_grad=True),)


def inputs_SeparableSmooth():
    torch.manual_seed(26)
    return (_randn(1, 2, 4, 5), _rand(3, lo=0.1))


def inputs_CharbonnierTV():
    torch.manual_seed(27)
    return (_rand(1, 2, 4, 3), 0.05, "sum")


def inputs_LocalContrastNorm():
    torch.manual_seed(28)
    return (_randn(2, 1, 3, 3),)


def inputs_MirrorPad1d():
    torch.manual_seed(29)
    return (_randn(2, 1, 6), [2, 3])


def inputs_UnsharpMask():
    torch.manual_seed(30)
    return (_rand(1, 2, 4, 4), torch.tensor(0.8, dtype=D, requires_grad=True))


# ---- sequences


def inputs_MinGatedScan():
    torch.manual_seed(31)
    return (_rand(4, 2, 3, lo=0.1, hi=0.9), _randn(4, 2, 3), _randn(2, 3))


def inputs_CausalLinearAttention():
    torch.manual_seed(32)
    return (_randn(2, 4, 3), _randn(2, 4, 3), _randn(2, 4, 2))


def inputs_CtcForwardSum():
    torch.manual_seed(33)
    lp = torch.log_softmax(torch.randn(7, 4, dtype=D), 1).requires_grad_()
    return (lp, torch.tensor([2, 2, 1]))


def inputs_CrfLogPartition():
    torch.manual_seed(34)
    mask = torch.tensor([[True, True, True, True], [True, True, False, False]])
    return (_randn(2, 4, 3), _randn(3, 3), mask)


def inputs_SoftPathCost():
    torch.manual_seed(35)
    return (_rand(4, 5, hi=2.0), 0.5)


def inputs_TokenShift():
    torch.manual_seed(36)
    return (_randn(2, 4, 3, grad=False), _rand(3))


def inputs_AlibiBias():
    torch.manual_seed(37)
    return (_randn(2, 4, 4, 4),)


def inputs_ComplexDiagonalScan():
    torch.manual_seed(38)
    lam = 0.6 * torch.randn(3, dtype=torch.complex128)
    u = torch.randn(2, 4, 3, dtype=torch.complex128)
    return (lam.requires_grad_(), u.requires_grad_())


def inputs_MaskedMeanPool():
    torch.manual_seed(39)
    return (_randn(3, 4, 2), torch.tensor([4, 0, 2]))


def inputs_CausalTokenMix():
    torch.manual_seed(40)
    return (_randn(2, 4, 3),)


# ---- memory


def inputs_RecomputedMlp():
    torch.manual_seed(41)
    return (_randn(3, 4), _randn(5, 4), _randn(5), _randn(2, 5))


def inputs_FusedBiasDropout():
    torch.manual_seed(42)
    mask = torch.rand(2, 3, 4) > 0.4
    return (_randn(2, 3, 4), _randn(4), mask, 0.4, False)


def inputs_FusedLinearXent():
    torch.manual_seed(43)
    target = torch.tensor([1, -100, 0, 3, -100, 2])
    return (_randn(6, 3), _randn(5, 3), target)


def inputs_WindowedFrames():
    torch.manual_seed(44)
    x = torch.randn(9, 2, dtype=D).t().requires_grad_()
    return (x, _rand(4, lo=0.2), 2)


def inputs_PackedSoftmax():
    torch.manual_seed(45)
    return (_randn(7, 2), [0, 3, 4, 7])


def inputs_SerfActivation():
    torch.manual_seed(46)
    return (_randn(3, 4),)


def inputs_ReversibleCoupling():
    torch.manual_seed(47)
    return (_randn(2, 3), _randn(2, 3), _randn(3, 3), _randn(3, 3))


def inputs_GatedKeep():
    torch.manual_seed(48)
    return (_randn(3, 4), _rand(3, 4, lo=-4.0, hi=4.0), 1.5)


def inputs_NumpyRunningMax():
    torch.manual_seed(49)
    return (_randn(3, 6),)


def inputs_FrozenStatNorm():
    torch.manual_seed(50)
    return (_randn(6, 3),)


def make_BesselRadial(cls):
    return cls(n_basis=6, cutoff=4.0).double()


def make_AlibiBias(cls):
    return cls(4).double()


def make_CausalTokenMix(cls):
    torch.manual_seed(60)
    return cls(max_len=6).double()


def make_FrozenStatNorm(cls):
    torch.manual_seed(61)
    module = cls(3).double()
    module.running_mean.copy_(torch.randn(3))
    module.running_var.copy_(torch.rand(3) + 0.5)
    return module.eval()


_ROWS = [
    # group, name, kind, fault, when, shows, second_order_right
    (
        "chem",
        "LennardJonesCut",
        "constant",
        "the 2 before s6*s6 is missing in the force",
        "always",
        "first",
        True,
    ),
    (
        "chem",
        "MorseBonds",
        "repeated index",
        "grad_pos[j] += keeps one bond of several that end at an atom",
        "an atom is the second end of several bonds",
        "first",
        True,
    ),
    (
        "chem",
        "CosineAngleEnergy",
        "chain rule",
        "d cos / dv lacks the term of 1/|v|",
        "always",
        "first",
        True,
    ),
    (
        "chem",
        "TorsionAngle",
        "sign",
        "second inner term of the middle atoms has the wrong sign",
        "always",
        "first",
        True,
    ),
    (
        "chem",
        "GaussianSmearing",
        "needs_input_grad",
        "looks at needs_input_grad of gamma, so centers get None",
        "always (IndexError if gamma is left to its default, else None for centers)",
        "first",
        True,
    ),
    (
        "chem",
        "CosineEnvelope",
        "option",
        "factor power missing",
        "power != 1",
        "first",
        True,
    ),
    (
        "chem",
        "EwaldRealSpace",
        "swapped",
        "charge j gets its own charge instead of that of i",
        "always",
        "first",
        True,
    ),
    (
        "chem",
        "BesselRadial",
        "broadcast sum",
        "grad of r is summed over the distances instead of the basis",
        "always (raises unless as many distances as functions)",
        "first",
        True,
    ),
    (
        "chem",
        "PairRepulsionSum",
        "NaN",
        "0/0 on the diagonal of the distance table",
        "always",
        "both",
        True,
    ),
    (
        "chem",
        "SwitchingFunction",
        "threshold",
        "upper bound of the switching range not tested",
        "distances above r_off",
        "first",
        True,
    ),
    (
        "structured",
        "BlockDiagonalMul",
        "transposed",
        "grad of x uses the blocks instead of their transposes",
        "always (raises for blocks that are not square)",
        "first",
        True,
    ),
    (
        "structured",
        "BandedMul",
        "off-by-one",
        "the last band is left out",
        "always",
        "first",
        True,
    ),
    (
        "structured",
        "ToeplitzMul",
        "repeated index",
        "index_put without accumulate",
        "always (more than one row)",
        "first",
        True,
    ),
    (
        "structured",
        "CirculantMul",
        "conjugate",
        "spectrum of x not conjugated in grad of c",
        "always (three or more entries)",
        "first",
        True,
    ),
    (
        "structured",
        "LowRankPlusDiag",
        "swapped",
        "gradients of U and V returned in the wrong order",
        "always",
        "first",
        True,
    ),
    (
        "structured",
        "KroneckerApply",
        "number of gradients",
        "no None for scale: three gradients for four inputs",
        "scale given explicitly",
        "both",
        True,
    ),
    (
        "structured",
        "TridiagonalSolve",
        "transposed",
        "solves with the matrix instead of its transpose",
        "matrix not symmetric",
        "first",
        True,
    ),
    (
        "structured",
        "CooMatVec",
        "dtype",
        "buffer of the gradient is float32 whatever x is",
        "float64 (raises)",
        "both",
        True,
    ),
    (
        "structured",
        "PackedSymQuadForm",
        "factor",
        "factor 2 of the off-diagonal entries missing in grad of p",
        "always (n > 1)",
        "first",
        True,
    ),
    (
        "structured",
        "HouseholderReflect",
        "chain rule",
        "derivative of 1/(v.v) has 1/s in place of 1/s**2",
        "|v| != 1",
        "first",
        True,
    ),
    (
        "restore",
        "RangeWeightedSmooth",
        "detached",
        "centre pixel taken as constant in the range weights",
        "always",
        "first",
        False,
    ),
    (
        "restore",
        "GuidedPatchFilter",
        "option",
        "eps hard-coded to its default in backward",
        "eps != 1e-2",
        "first",
        True,
    ),
    (
        "restore",
        "SpaceToDepth",
        "transposed",
        "permute back has rows and columns mixed up",
        "block > 1, image not constant",
        "first",
        True,
    ),
    (
        "restore",
        "GreyDilation1d",
        "option",
        "dilation ignored when the gradient is scattered",
        "dilation > 1",
        "first",
        True,
    ),
    (
        "restore",
        "SrgbToLinear",
        "threshold",
        "threshold of the linear side used on the sRGB side",
        "values between 0.0031308 and 0.04045",
        "first",
        True,
    ),
    (
        "restore",
        "SeparableSmooth",
        "chain rule",
        "kernel's part through the row pass missing",
        "always",
        "first",
        True,
    ),
    (
        "restore",
        "CharbonnierTV",
        "sign",
        "left pixels of the horizontal differences get the wrong sign",
        "always",
        "first",
        True,
    ),
    (
        "restore",
        "LocalContrastNorm",
        "normaliser",
        "n in place of n - 1",
        "always (small images most)",
        "first",
        False,
    ),
    (
        "restore",
        "MirrorPad1d",
        "off-by-one",
        "left reflection folded back onto the edge pixel",
        "left padding > 0",
        "first",
        True,
    ),
    (
        "restore",
        "UnsharpMask",
        "second output",
        "gradient of the detail layer ignored",
        "detail is used",
        "first",
        True,
    ),
    (
        "sequences",
        "MinGatedScan",
        "in place",
        "saved gate f negated in place: the input changes and the carry too",
        "always",
        "both",
        True,
    ),
    (
        "sequences",
        "CausalLinearAttention",
        "mask",
        "causal mask not applied to the gradient of the scores",
        "more than one step",
        "first",
        True,
    ),
    (
        "sequences",
        "CtcForwardSum",
        "repeated index",
        "+= with repeated labels (the blanks) keeps only one",
        "always (any target)",
        "first",
        None,
    ),
    (
        "sequences",
        "CrfLogPartition",
        "ignores grad_output",
        "unary marginals not multiplied by g",
        "g is not one",
        "first",
        True,
    ),
    (
        "sequences",
        "SoftPathCost",
        "option",
        "one of three moves not divided by gamma",
        "gamma != 1",
        "first",
        None,
    ),
    (
        "sequences",
        "TokenShift",
        "needs_input_grad",
        "mu's gradient hangs on x requiring grad",
        "x does not require grad",
        "first",
        True,
    ),
    (
        "sequences",
        "AlibiBias",
        "broadcast sum",
        "keys not summed over in grad of the slopes",
        "more than one head (raises unless heads == keys)",
        "first",
        True,
    ),
    (
        "sequences",
        "ComplexDiagonalScan",
        "conjugate",
        "states not conjugated in grad of lam",
        "complex input with imaginary part",
        "first",
        True,
    ),
    (
        "sequences",
        "MaskedMeanPool",
        "NaN",
        "lengths not clamped in backward: inf * 0",
        "a sequence of length 0",
        "first",
        True,
    ),
    (
        "sequences",
        "CausalTokenMix",
        "None for",
        "None for the bias",
        "always",
        "first",
        True,
    ),
    (
        "memory",
        "RecomputedMlp",
        "second derivative",
        "hidden layer detached when computed again",
        "double backward",
        "second",
        True,
    ),
    (
        "memory",
        "FusedBiasDropout",
        "training/eval",
        "mask and scale applied in eval mode too",
        "training=False",
        "first",
        True,
    ),
    (
        "memory",
        "FusedLinearXent",
        "normaliser",
        "gradient divided by all rows, loss by the valid ones",
        "ignored targets",
        "first",
        False,
    ),
    (
        "memory",
        "WindowedFrames",
        "layout",
        "as_strided takes x to be contiguous",
        "x not contiguous",
        "first",
        True,
    ),
    (
        "memory",
        "PackedSoftmax",
        "second derivative",
        "output saved detached",
        "double backward",
        "second",
        True,
    ),
    (
        "memory",
        "SerfActivation",
        "in place",
        "grad_output multiplied in place",
        "always (harm where the gradient is shared)",
        "both",
        True,
    ),
    (
        "memory",
        "ReversibleCoupling",
        "second output",
        "direct path of the second output's gradient to x2 missing",
        "always",
        "first",
        True,
    ),
    (
        "memory",
        "GatedKeep",
        "dtype",
        "gate saved as bfloat16",
        "float64 or float32",
        "first",
        False,
    ),
    (
        "memory",
        "NumpyRunningMax",
        "repeated index",
        "numpy += with repeated positions keeps one",
        "a maximum that stands for more than one step",
        "first",
        None,
    ),
    (
        "memory",
        "FrozenStatNorm",
        "training/eval",
        "gradient through batch statistics subtracted in eval mode too",
        "eval mode",
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
