"""Cases of the corpus: what is wrong in wrong/, and inputs at which it shows.

"shows" is the order at which gradcheck or gradgradcheck can see the fault: "first" is a backward
that is wrong against forward but agrees with its own derivative (its second derivatives are then
those of the wrong gradient); "both" fails gradgradcheck as well; "second" fails only there.
For operators whose right version has no right second derivative it is always "first".
A module is made by row["make"](cls) if given, else by cls(); then turned to float64.
"""

import torch


def _t(*shape, lo=None, hi=None):
    if lo is None:
        x = torch.randn(*shape, dtype=torch.float64)
    else:
        x = lo + (hi - lo) * torch.rand(*shape, dtype=torch.float64)
    return x.requires_grad_()


def _v(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# --- rendering -----------------------------------------------------------------------


def inputs_AlphaComposite():
    torch.manual_seed(0)
    return _t(3, 4, lo=0.1, hi=0.8), _t(3, 4, 2), _t(2)


def inputs_SoftDiskCoverage():
    torch.manual_seed(1)
    return _t(5, 2), _t(3, 2), _t(3, lo=0.3, hi=0.9), 0.4


def inputs_BoxSDF():
    pts = [[0.1, -0.3, 0.2], [1.5, 0.2, -0.1], [-1.4, 1.9, 0.3], [2.0, -1.6, 1.7]]
    return _v(pts), _v([1.0, 0.8, 0.9])


def inputs_ChamferDistance():
    torch.manual_seed(3)
    return _t(6, 3), _t(4, 3)


def inputs_HomographyWarp():
    torch.manual_seed(4)
    H = torch.eye(3, dtype=torch.float64) + 0.2 * torch.randn(3, 3, dtype=torch.float64)
    return _t(5, 2, lo=-1, hi=1), H.requires_grad_()


def inputs_KabschRotation():
    torch.manual_seed(5)
    m = torch.randn(2, 3, 3, dtype=torch.float64)
    m = torch.stack(
        [m[0] * torch.linalg.det(m[0]).sign(), -m[1] * torch.linalg.det(m[1]).sign()]
    )
    return (m.requires_grad_(),)


def inputs_PinholeProject():
    return (
        _v([[0.3, -0.5, 2.0], [1.0, 0.4, 0.9], [0.2, 0.7, -0.5], [0.4, -0.3, 0.25]]),
        1.4,
        0.5,
    )


def inputs_BarycentricInterp():
    torch.manual_seed(7)
    faces = torch.tensor([[0, 1, 2], [1, 2, 3]])
    bary = torch.softmax(torch.randn(5, 3, dtype=torch.float64), dim=1)
    return _t(4, 2), faces, torch.tensor([0, 1, -1, 1, 0]), bary.requires_grad_()


def inputs_EdgeSpring():
    torch.manual_seed(8)
    edges = torch.tensor([[0, 1], [0, 2], [1, 3], [0, 3]])
    return _t(4, 3), edges, _t(4, lo=0.5, hi=1.0)


def inputs_RadialDistortion():
    torch.manual_seed(9)
    return (_t(6, 2),)


# --- robotics ------------------------------------------------------------------------


def inputs_So3Exp():
    return (_v([[0.0, 0.0, 0.0], [0.3, -0.8, 0.5]]),)


def inputs_LyapunovSolve():
    torch.manual_seed(11)
    a = 0.4 * torch.randn(3, 3, dtype=torch.float64) - 1.5 * torch.eye(
        3, dtype=torch.float64
    )
    return a.requires_grad_(), _t(3, 3)


def inputs_DareSolve():
    torch.manual_seed(12)
    q, r = (
        torch.randn(3, 3, dtype=torch.float64),
        torch.randn(2, 2, dtype=torch.float64),
    )
    q = q @ q.t() + torch.eye(3, dtype=torch.float64)
    r = r @ r.t() + torch.eye(2, dtype=torch.float64)
    a = 0.5 * torch.randn(3, 3, dtype=torch.float64)
    return a.requires_grad_(), _t(3, 2), q.requires_grad_(), r.requires_grad_()


def inputs_PidRollout():
    torch.manual_seed(13)
    return _v([1.2, 0.4, 0.3]), _t(2, 5), _t(2)


def inputs_PlanarArmFK():
    torch.manual_seed(14)
    return _t(3, 4), _t(4, lo=0.5, hi=1.5)


def inputs_QuatRotate():
    torch.manual_seed(15)
    return _t(4, 4), _t(4, 3)


def inputs_UnicycleRollout():
    torch.manual_seed(16)
    return _t(2, 3), _t(2, 4, 2), 0.5


def inputs_DeadbandSlope():
    return _v([-1.3, -0.1, 0.05, 0.4, 2.0, -0.6]), 0.2, 1.5


def inputs_DampedLeastSquares():
    torch.manual_seed(18)
    return _t(2, 2, 4), _t(2, 2), 0.3


def inputs_ComplementaryFilter():
    torch.manual_seed(19)
    return _t(2, 5), _t(2, 5)


# --- audio ---------------------------------------------------------------------------


def inputs_StftMagnitude():
    torch.manual_seed(20)
    return _t(2, 17), _t(8, lo=0.2, hi=1.0), 3, True


def inputs_LogMel():
    torch.manual_seed(21)
    return _t(2, 5, 3, lo=0.1, hi=2.0), _t(5, 4, lo=0.1, hi=1.0)


def inputs_Biquad():
    torch.manual_seed(22)
    return _t(2, 7), _v([0.5, 0.3, -0.2]), _v([-0.4, 0.25])


def inputs_PreEmphasis():
    torch.manual_seed(23)
    return (_t(2, 6),)


def inputs_SpectrumPhase():
    torch.manual_seed(24)
    return (torch.randn(2, 5, dtype=torch.complex128, requires_grad=True),)


def inputs_ComplexRatioMask():
    torch.manual_seed(25)
    spec = torch.randn(2, 3, 2, dtype=torch.complex128, requires_grad=True)
    return spec, _t(2, 3, 2), _t(2, 3, 2)


def inputs_FrameSignal():
    torch.manual_seed(26)
    x = torch.randn(9, 2, dtype=torch.float64).t()
    return x.requires_grad_(), 4, 2


def inputs_FractionalDelay():
    torch.manual_seed(27)
    return _t(3, 6), _v([1.3, -0.6, 2.4])


def inputs_EnvelopeFollower():
    x = [[0.4, -1.2, 0.3, -0.1, -2.0, 0.9], [-0.7, 0.2, 1.5, -0.4, -1.9, 0.6]]
    return _v(x), _v(0.3), _v(0.9)


def inputs_Pcen():
    torch.manual_seed(29)
    return (_t(2, 3, 4, lo=0.2, hi=2.0),)


def make_Pcen(cls):
    return cls(3)


# --- forecasting ---------------------------------------------------------------------


def inputs_ExpSmooth():
    torch.manual_seed(30)
    return _t(2, 5), _v(0.35), _t(2)


def inputs_CausalMovingAverage():
    torch.manual_seed(31)
    return _t(2, 7), 3


def inputs_SeasonalDiff():
    torch.manual_seed(32)
    return _t(2, 8), 3


def inputs_SoftDtw():
    torch.manual_seed(33)
    return _t(2, 3, 4, lo=0.1, hi=2.0), 0.4


def inputs_KalmanUpdate():
    torch.manual_seed(34)
    observed = torch.tensor([[True, True, False], [True, False, True]])
    return _t(2, 3), _t(2, 3, lo=0.5, hi=2.0), _t(2, 3), _t(3, lo=0.3, hi=1.0), observed


def inputs_HoltLinear():
    torch.manual_seed(35)
    return _t(2, 6), _v(0.6), _v(0.3)


def inputs_LagEmbed():
    torch.manual_seed(36)
    return _t(2, 8), [0, 1, 3]


def inputs_FracDiff():
    torch.manual_seed(37)
    return _t(2, 7), _v(0.4), 4


def inputs_MaskedZScore():
    torch.manual_seed(38)
    return _t(3, 6), torch.tensor([6, 3, 4])


def inputs_RunningCenter():
    torch.manual_seed(39)
    return (_t(2, 3, 4),)


def make_RunningCenter(cls):
    return cls(3).eval()


# --- survival ------------------------------------------------------------------------


def inputs_CoxPartialLikelihood():
    torch.manual_seed(40)
    time = torch.tensor([3.0, 1.0, 4.0, 1.0, 5.0, 2.0], dtype=torch.float64)
    return _t(6), time, torch.tensor([True, True, False, True, True, False])


def inputs_PinballMulti():
    torch.manual_seed(41)
    return _t(5, 3), _t(5), _v([0.1, 0.5, 0.9])


def inputs_OrdinalCumulative():
    torch.manual_seed(42)
    return _t(6), _v([-1.0, 0.2, 1.1]), torch.tensor([0, 1, 2, 3, 1, 2])


def inputs_FocalIgnore():
    torch.manual_seed(43)
    return _t(5, 4), torch.tensor([2, -100, 0, 3, -100])


def inputs_TweedieDeviance():
    torch.manual_seed(44)
    pos = [_t(6, lo=0.5, hi=2.5) for _ in range(3)]
    return pos[0], pos[1], pos[2], 1.2


def inputs_HuberConcomitant():
    return _v([0.4, -2.5, 1.1, 3.2, -0.3]), _v(0.8)


def inputs_BarronRobust():
    torch.manual_seed(46)
    return _t(5, 3), _t(3, lo=0.5, hi=1.5), -1.0


def inputs_AftLogNormal():
    torch.manual_seed(47)
    mu = torch.randn(6, dtype=torch.float64)
    event = torch.tensor([True, False, True, True, False, False])
    return mu, _v(-0.2), torch.rand(6, dtype=torch.float64) * 3 + 0.2, event


def inputs_NegBinomialNll():
    torch.manual_seed(48)
    mask = torch.tensor([True, True, False, True, True])
    return _t(5, lo=0.5, hi=4), _t(5, lo=0.5, hi=3), torch.tensor([0, 3, 1, 7, 2]), mask


def inputs_ConcordanceSurrogate():
    torch.manual_seed(49)
    time = torch.tensor([3.0, 1.0, 4.0, 2.0, 5.0], dtype=torch.float64)
    return _t(5), time, torch.tensor([True, True, False, True, True]), 0.5


CASES = []


def _case(group, name, kind, fault, shows, when, second=True, make=None):
    row = {
        "group": group,
        "name": name,
        "kind": kind,
        "fault": fault,
        "shows": shows,
        "when": when,
        "inputs": f"inputs_{name}",
        "second_order_right": second,
    }
    if make is not None:
        row["make"] = make
    CASES.append(row)


_g = "rendering"
_case(
    _g,
    "AlphaComposite",
    "second output",
    "gradient of the accumulated opacity is ignored",
    "first",
    "when the second output is used",
)
_case(
    _g,
    "SoftDiskCoverage",
    "option",
    "1 / sigma is missing from the gradient",
    "first",
    "only with sigma != 1",
)
_case(
    _g,
    "BoxSDF",
    "NaN",
    "0 / 0 for points inside the box (unguarded norm)",
    "both",
    "only with a point inside the box",
)
_case(
    _g,
    "ChamferDistance",
    "normaliser",
    "both directions are divided by the size of a",
    "first",
    "only if the clouds differ in size",
)
_case(
    _g,
    "HomographyWarp",
    "transposed",
    "gradient of the points goes through H^T in place of H",
    "first",
    "whenever H is not symmetric",
)
_case(
    _g,
    "KabschRotation",
    "sign",
    "unsigned singular values are saved for the reflection case",
    "first",
    "only if det of the matrix is negative",
    second=None,
)
_case(
    _g,
    "PinholeProject",
    "mask",
    "depth gradient is not cut where the depth is clamped",
    "first",
    "only with a point nearer than `near`",
)
_case(
    _g,
    "BarycentricInterp",
    "dtype",
    "gradient buffer is made in the default dtype: index_add raises for float64",
    "both",
    "whenever the dtype is not the default one",
)
_case(
    _g,
    "EdgeSpring",
    "repeated index",
    "gv[i] += push keeps only one edge per start vertex",
    "both",
    "only if a vertex starts more than one edge",
)
_case(
    _g,
    "RadialDistortion",
    "factor",
    "factor 2 missing in the derivative of k2 r^4",
    "first",
    "always (k2 != 0)",
)

_g = "robotics"
_case(
    _g,
    "So3Exp",
    "NaN",
    "unsafe square root in the unused branch of where: NaN second derivatives at zero",
    "second",
    "only at a zero rotation",
)
_case(
    _g,
    "LyapunovSolve",
    "transposed",
    "S in place of S^T in the second term of grad A",
    "first",
    "whenever S is not symmetric",
)
_case(_g, "DareSolve", "factor", "factor 2 missing in grad B", "both", "always")
_case(
    _g,
    "PidRollout",
    "detached",
    "the first error's part in the next derivative term is lost",
    "both",
    "with kd != 0 and more than one step",
)
_case(
    _g,
    "PlanarArmFK",
    "second derivative",
    "joint angles are detached in backward",
    "second",
    "always",
)
_case(
    _g,
    "QuatRotate",
    "chain rule",
    "projection of the normalisation is forgotten",
    "first",
    "always",
)
_case(
    _g,
    "UnicycleRollout",
    "swapped",
    "gradients of speed and turn rate are swapped",
    "first",
    "always",
)
_case(
    _g,
    "DeadbandSlope",
    "threshold",
    "x > width in place of |x| > width",
    "first",
    "only with values below -width",
)
_case(
    _g,
    "DampedLeastSquares",
    "option",
    "damping not squared in backward",
    "first",
    "only with damping other than 0 and 1",
)
_case(
    _g,
    "ComplementaryFilter",
    "off-by-one",
    "previous outputs are taken from y[1:] in place of y[:-1]",
    "both",
    "with at least two steps",
)

_g = "audio"
_case(
    _g,
    "StftMagnitude",
    "option",
    "normalisation applied once in place of twice in backward",
    "first",
    "only with normalized=True",
)
_case(
    _g,
    "LogMel",
    "second derivative",
    "mel energies are detached in backward",
    "second",
    "always",
)
_case(
    _g,
    "Biquad",
    "sign",
    "sign of the gradient of the feedback coefficients",
    "both",
    "always",
)
_case(
    _g,
    "PreEmphasis",
    "off-by-one",
    "gradient shifted to the wrong side",
    "first",
    "always",
)
_case(_g, "SpectrumPhase", "conjugate", "conj(z) in place of z", "first", "always")
_case(
    _g,
    "ComplexRatioMask",
    "conjugate",
    "conjugate of the mask forgotten for the spectrum",
    "first",
    "whenever the mask is not real",
)
_case(
    _g,
    "FrameSignal",
    "layout",
    "as_strided assumes unit stride along time",
    "first",
    "only for x with stride(1) != 1",
)
_case(
    _g,
    "FractionalDelay",
    "mask",
    "taps out of range are scattered onto the border sample",
    "first",
    "with a right tap out of range (negative or large positive delay)",
)
_case(
    _g,
    "EnvelopeFollower",
    "threshold",
    "branch chosen by x in place of |x|",
    "both",
    "only with negative x above the envelope",
)
_case(
    _g,
    "Pcen",
    "broadcast sum",
    "gradient of delta is summed over the batch only: wrong shape",
    "both",
    "always",
    make=make_Pcen,
)

_g = "forecasting"
_case(
    _g,
    "ExpSmooth",
    "None for",
    "no gradient for a given init",
    "both",
    "only if init is passed",
)
_case(
    _g,
    "CausalMovingAverage",
    "normaliser",
    "partial windows are divided by the full width",
    "first",
    "with window > 1",
)
_case(
    _g,
    "SeasonalDiff",
    "in place",
    "grad_output is negated in place",
    "both",
    "always: the caller's gradient tensor changes",
)
_case(
    _g,
    "SoftDtw",
    "option",
    "gamma is missing in the backward weights",
    "first",
    "only with gamma != 1",
    second=None,
)
_case(
    _g,
    "KalmanUpdate",
    "second output",
    "gradient of the variance output does not reach the gain",
    "first",
    "when the second output is used",
)
_case(
    _g,
    "HoltLinear",
    "detached",
    "trend does not receive gradient through the next level",
    "first",
    "with at least three steps",
    second=False,
)
_case(
    _g,
    "LagEmbed",
    "repeated index",
    "overlapping lags overwrite in place of adding",
    "first",
    "with more than one lag",
)
_case(
    _g,
    "FracDiff",
    "chain rule",
    "product rule: the term with dw of the previous tap is lost",
    "first",
    "with more than two taps",
)
_case(
    _g,
    "MaskedZScore",
    "normaliser",
    "n in place of n - 1 for the unbiased deviation",
    "first",
    "always",
)
_case(
    _g,
    "RunningCenter",
    "training/eval",
    "training formula used in eval mode too",
    "first",
    "only in eval mode",
    make=make_RunningCenter,
)

_g = "survival"
_case(
    _g,
    "CoxPartialLikelihood",
    "threshold",
    "> in place of >= in the risk set of backward",
    "first",
    "always",
)
_case(
    _g,
    "PinballMulti",
    "broadcast sum",
    "target gradient averaged over the quantiles, not summed",
    "first",
    "with more than one quantile",
)
_case(
    _g,
    "OrdinalCumulative",
    "off-by-one",
    "gradients of the cut points shifted by one",
    "first",
    "always",
)
_case(
    _g,
    "FocalIgnore",
    "normaliser",
    "divides by all rows, not by the valid ones",
    "first",
    "only with ignored labels",
)
_case(
    _g,
    "TweedieDeviance",
    "option",
    "power 1.5 hard-coded in the gradient",
    "first",
    "only with power != 1.5",
)
_case(
    _g,
    "HuberConcomitant",
    "in place",
    "backward divides the saved residuals in place",
    "both",
    "always: the caller's residuals change, a second backward differs or raises",
)
_case(
    _g,
    "BarronRobust",
    "constant",
    "exponent alpha / 2 - 0.5 in place of alpha / 2 - 1",
    "first",
    "always",
)
_case(
    _g,
    "AftLogNormal",
    "needs_input_grad",
    "gradient of log_sigma hangs on the flag of mu",
    "first",
    "only if mu needs no gradient",
    second=False,
)
_case(
    _g,
    "NegBinomialNll",
    "number of gradients",
    "three gradients for four inputs",
    "both",
    "only if mask is passed",
)
_case(
    _g,
    "ConcordanceSurrogate",
    "ignores grad_output",
    "grad_output is not multiplied in",
    "first",
    "whenever grad_output is not one",
)
