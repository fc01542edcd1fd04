"""The 50 cases.

Every operator is alone in right/NAME.py and wrong/NAME.py, under its own name.  "entry" says what it is:
"function": a torch.autograd.Function (inputs are the args of apply), "module": an nn.Module (inputs are the args
of forward; "make" takes the class and returns a float64 module), "callable": a plain function.
"inputs" names a zero-argument function below.  "kind" groups the faults; "shows" says at which order ("first", "second",
"both"); "second_order_right" is about the RIGHT operator (None: once_differentiable).  "constant_args" are floating
arguments documented as constants, without gradient.
"""
import torch

F64 = torch.float64
C128 = torch.complex128


def _s(n):
    torch.manual_seed(n)


def _r(*shape):
    return torch.randn(*shape, dtype=F64).requires_grad_()


def _u(lo, hi, *shape):
    return (lo + (hi - lo) * torch.rand(*shape, dtype=F64)).requires_grad_()


def _c(*shape):
    return torch.randn(*shape, dtype=C128).requires_grad_()


def _t(*values):
    return torch.tensor(values, dtype=F64).requires_grad_()


def _set(module, **values):
    """Distinct values for the parameters, which start constant."""
    module = module.double()
    with torch.no_grad():
        for name, value in values.items():
            getattr(module, name).copy_(torch.as_tensor(value, dtype=F64))
    return module


# ---------------------------------------------------------------- attention
def inputs_AlibiAttention():
    _s(1)
    return _r(2, 2, 3, 4), _r(2, 2, 5, 4), _r(2, 2, 5, 3), _t(0.5, 0.25), True, None


def inputs_rotary_embed():
    _s(2)
    return _r(2, 3, 6), torch.tensor([0, 2, 5]), 10.0, True


def inputs_CausalLinearAttention():
    _s(3)
    return _r(2, 4, 3), _r(2, 4, 3), _r(2, 4, 2)


def inputs_Sparsemax():
    _s(4)
    return _r(4, 3), 0


def inputs_grouped_query_scores():
    _s(5)
    return _r(2, 4, 3, 2), _r(2, 2, 3, 2), 0.7


# ---------------------------------------------------------------- recurrences
def inputs_DiagonalSSMScan():
    _s(6)
    return _r(2, 4, 3), _u(0.3, 0.9, 3), _r(3), _r(2, 3)


def inputs_MinGRUScan():
    _s(7)
    return _r(2, 4, 3), _r(2, 4, 3), _r(2, 3)


def inputs_FusedLSTMCell():
    _s(8)
    return _r(3, 2), _r(3, 3), _r(3, 3)


def make_FusedLSTMCell(cls):
    _s(108)
    return cls(2, 3, forget_bias=1.0).double()


def inputs_SelectiveScan():
    _s(9)
    return _r(2, 4, 3), _r(2, 4, 3), _r(2, 4, 2), _r(2, 4, 2)


def make_SelectiveScan(cls):
    class Config:
        d_inner = 3
        d_state = 2
    _s(109)
    return _set(cls(Config()), D=torch.rand(3), A_log=0.5 * torch.randn(3, 2))


def inputs_LengthMaskedEMA():
    _s(10)
    return _r(3, 4, 2), torch.tensor([4, 2, 0]), 0.6


# ---------------------------------------------------------------- graphics
def inputs_AlphaComposite():
    _s(11)
    return _u(0.2, 2.0, 2, 5), _u(0.0, 1.0, 2, 5, 3), _u(0.1, 0.6, 2, 5)


def inputs_BilinearTexture():
    _s(12)
    return _r(3, 4, 2), _u(-0.2, 1.2, 9, 2)


def inputs_FaceNormals():
    _s(13)
    return _r(5, 3), torch.tensor([[0, 1, 2], [0, 2, 3], [4, 3, 1]]), True, 1e-8


def inputs_srgb_to_linear():
    return (_t(-0.02, 0.001, 0.006, 0.01, 0.02, 0.03, 0.06, 0.3),)


def inputs_PinholeProjection():
    _s(15)
    p = torch.randn(2, 4, 3, dtype=F64)
    p[..., 2] = torch.tensor([0.2, 1.5, -0.7, 3.0])
    return (p.requires_grad_(),)


def make_PinholeProjection(cls):
    return cls((2.0, 1.5), (0.3, -0.2), near=0.5).double()


# ---------------------------------------------------------------- control and robotics
def inputs_QuaternionRotate():
    _s(16)
    return _r(3, 1, 4), _r(2, 3)


def inputs_SO3Exp():
    _s(17)
    w = torch.randn(4, 3, dtype=F64)
    w[1] *= 1e-3
    w[2] = 0.0
    return (w.requires_grad_(),)


def inputs_RiccatiStep():
    _s(18)
    P, R = (torch.randn(n, n, dtype=F64) for n in (3, 2))
    P, R = P @ P.mT + torch.eye(3), R @ R.mT + torch.eye(2)
    return _r(3, 3), _r(3, 2), P.requires_grad_(), _r(3, 3), R.requires_grad_()


def inputs_RelaxedLogBarrier():
    _s(19)
    return _u(-0.5, 2.0, 3, 4), 0.3, "mean"


def inputs_GAEAdvantage():
    _s(20)
    dones = torch.tensor([[0, 0], [1, 0], [0, 0], [0, 1]], dtype=torch.bool)
    return _r(4, 2), _r(5, 2), dones, 0.9, 0.6


# ---------------------------------------------------------------- finance and econometrics
def inputs_BlackScholesPrice():
    _s(21)
    return _u(0.8, 1.2, 4), _u(0.8, 1.2, 4), _u(0.3, 2.0, 4), _u(-0.02, 0.08, 4), _u(0.15, 0.5, 4), False


def inputs_GarchNLL():
    _s(22)
    return (_r(2, 6),)


def make_GarchNLL(cls):
    return cls(0.1, 0.25, 0.6, backcast=0.8).double()


def inputs_SharpeLoss():
    _s(23)
    return _u(0.1, 1.0, 3), _r(7, 3), 0.05, 1


def inputs_ewma_variance():
    _s(24)
    return _r(2, 5), 0.8


def inputs_ExpectedShortfall():
    _s(25)
    return _r(7, 3), 0.3, 0


# ---------------------------------------------------------------- medical imaging
def inputs_TverskyLoss():
    _s(26)
    return _u(0.05, 0.95, 2, 3, 2, 3), torch.rand(2, 3, 2, 3) > 0.6, 0.3, 0.7, 1.0


def inputs_GeneralizedDiceLoss():
    _s(27)
    labels = torch.tensor([[[0, 1, 2], [255, 1, 1]], [[2, 255, 0], [1, 0, 255]]])
    return _u(0.05, 0.95, 2, 3, 2, 3), labels


def make_GeneralizedDiceLoss(cls):
    return cls(ignore_index=255, eps=0.1).double()


def inputs_LocalNCC():
    _s(28)
    return _u(0.0, 1.0, 1, 1, 5, 4), _u(0.0, 1.0, 1, 1, 5, 4), 3, 0.1


def inputs_SoftHistogram():
    _s(29)
    return _u(-1.0, 2.0, 2, 6), 5, -1.0, 2.0


def inputs_KSpaceConsistency():
    _s(30)
    return _c(2, 3, 4), _c(2, 3, 4), torch.rand(3, 4) > 0.5


def make_KSpaceConsistency(cls):
    return cls(0.7).double()


# ---------------------------------------------------------------- physics
def inputs_SpringForces():
    _s(31)
    edges = torch.tensor([[0, 1], [1, 2], [0, 2], [2, 3]])
    return _r(4, 2), edges, _u(0.5, 1.5, 4), _u(0.5, 2.0, 4)


def inputs_LennardJonesPBC():
    _s(32)
    grid = torch.cartesian_prod(*[torch.arange(2, dtype=F64)] * 3)[:6] * 1.15
    pos = grid + 0.06 * torch.randn(6, 3, dtype=F64)
    return pos.requires_grad_(), (4.0, 4.0, 4.5), 1.4, 1.0, 1.0


def inputs_heat_step():
    _s(33)
    return _r(2, 4, 3), _u(0.5, 1.5, 4, 3), 0.2, "insulated"


def inputs_UpwindAdvection():
    _s(34)
    return (_r(2, 5),)


def make_UpwindAdvection(cls):
    return _set(cls(5, steps=3, ratio=0.4), velocity=[0.8, -0.6, 0.3, 1.1, -0.9])


def inputs_TridiagonalSolve():
    _s(35)
    return _r(2, 3), _u(3.0, 5.0, 2, 4), _r(2, 3), _r(2, 4)


# ---------------------------------------------------------------- optimal transport and metric learning
def inputs_SinkhornNormalize():
    _s(36)
    return _r(2, 3, 4), 3, 0.7


def inputs_wasserstein_1d():
    _s(37)
    return _r(2, 6), _r(2, 6), 2.0


def inputs_ContrastiveMarginLoss():
    _s(38)
    return _r(6, 2), _r(6, 2), torch.tensor([1, 0, 0, 1, 0, 0])


def make_ContrastiveMarginLoss(cls):
    return cls(margin=1.5).double()


def inputs_PairwiseDistance():
    _s(39)
    return torch.randn(4, 3, dtype=F64), _r(5, 3)


def inputs_ArcFaceMargin():
    _s(40)
    return _r(6, 3), torch.tensor([0, 1, 2, 3, 1, 2])


def make_ArcFaceMargin(cls):
    _s(140)
    return _set(cls(3, 4), weight=torch.randn(4, 3))


# ---------------------------------------------------------------- tables and time series
def inputs_SoftDTW():
    _s(41)
    return _u(0.0, 2.0, 2, 4, 3), 0.4


def inputs_crps_gaussian():
    _s(42)
    return _r(2, 3), _u(0.5, 1.5, 2, 3), _r(2, 3), "mean"


def inputs_TweedieDeviance():
    _s(43)
    return _r(6), _u(0.0, 3.0, 6), 1.3, 0.5 + torch.rand(6, dtype=F64)


def inputs_MASELoss():
    _s(44)
    return _r(2, 3), _r(2, 3), _r(2, 8), 3


def inputs_OrdinalLink():
    _s(45)
    return (_r(4),)


def make_OrdinalLink(cls):
    return _set(cls(5), raw=[-1.0, 0.2, 0.9, -0.4])


# ---------------------------------------------------------------- complex signals
def inputs_CircularCorrelation():
    _s(47)
    return _c(2, 5), _c(2, 5)


def inputs_RFFTMagnitude():
    _s(48)
    return _r(2, 7), 1e-8


def inputs_to_polar():
    _s(49)
    return (_c(2, 4),)


def inputs_MVDRWeights():
    _s(50)
    a = torch.randn(2, 3, 3, dtype=C128)
    R = a @ a.mH + torch.eye(3)
    return R.requires_grad_(), _c(2, 3), 0.1


def inputs_FrequencyShift():
    _s(51)
    return (_c(2, 6),)


def make_FrequencyShift(cls):
    return cls(0.4, -0.3).double()


CONSTANT_ARGS = {"TverskyLoss": ["target"], "TweedieDeviance": ["exposure"]}


def _case(name, kind, fault, shows, when, second=True):
    c = dict(group=name, name=name, kind=kind, fault=fault, shows=shows, when=when, inputs="inputs_" + name,
             second_order_right=second, constant_args=CONSTANT_ARGS.get(name, []))
    make = globals().get("make_" + name)
    c["entry"] = "module" if make else "callable" if name[0].islower() else "function"
    if make:
        c["make"] = make
    return c


CASES = [
    _case("AlibiAttention", "factor missing", "scale left out of the gradient of k", "first", "scale != 1", second=None),
    _case("rotary_embed", "flag ignored in backward", "backward always rotates half-split pairs", "both", "interleaved=True"),
    _case("CausalLinearAttention", "off by one", "reverse cumulative sum excludes the step itself", "both", "always"),
    _case("Sparsemax", "wrong off the default", "sums over the last axis in backward", "both", "dim is not the last axis"),
    _case("grouped_query_scores", "axes mixed up", "query heads grouped the other way round for the gradient of k", "both", "1 < G < H"),

    _case("DiagonalSSMScan", "off by one", "gradient of h0 lacks the last factor a", "both", "h0 given and requires grad"),
    _case("MinGRUScan", "second output's gradient ignored", "gradient of the last state dropped", "first", "the last state is used", second=None),
    _case("FusedLSTMCell", "constant left out", "forget_bias missing in backward", "both", "forget_bias != 0"),
    _case("SelectiveScan", "forgotten chain-rule term", "delta's effect through dt * u * B missing", "first", "always", second=None),
    _case("LengthMaskedEMA", "mask not applied", "padding of x gets a gradient", "both", "some length < T"),

    _case("AlphaComposite", "saved tensor changed in place", "trans.mul_ in forward: weights saved as transmittance", "first", "always", second=None),
    _case("BilinearTexture", "assignment for accumulation", "g_tex[index] += without accumulation", "first", "two samples share a texel", second=None),
    _case("FaceNormals", "swapped gradients", "second and third corner swapped", "first", "always", second=None),
    _case("srgb_to_linear", "wrong branch", "backward splits at 0.0031308, forward at 0.04045", "both", "values between the two"),
    _case("PinholeProjection", "mask not applied", "depth gradient where the depth was clamped", "both", "some depth < near"),

    _case("QuaternionRotate", "forgotten chain-rule term", "normalisation of q left out", "both", "always"),
    _case("SO3Exp", "transposed gradient", "K for K^T", "first", "angle not small", second=None),
    _case("RiccatiStep", "symmetry assumed", "grad_output taken to be symmetric", "first", "grad_output not symmetric", second=None),
    _case("RelaxedLogBarrier", "wrong for one reduction", "mean divided by the first axis' size", "both", "reduction='mean', more than one axis"),
    _case("GAEAdvantage", "factor missing", "lam missing in backward", "both", "lam != 1"),

    _case("BlackScholesPrice", "second derivative wrong or lost", "d1, d2 saved as intermediates of forward", "second", "second order only"),
    _case("GarchNLL", "off by one", "alpha's gradient with the return of the same step", "first", "more than one step", second=None),
    _case("SharpeLoss", "ignores grad_output", "stored gradients returned as they are", "first", "grad_output != 1", second=None),
    _case("ewma_variance", "wrong at the border", "first step treated as the others", "both", "always"),
    _case("ExpectedShortfall", "wrong normaliser", "level * N for ceil(level * N)", "both", "level * N not whole"),

    _case("TverskyLoss", "swapped constants", "alpha and beta swapped in backward", "both", "alpha != beta"),
    _case("GeneralizedDiceLoss", "ignore_index mishandled", "gradient in ignored voxels", "both", "some label is ignore_index"),
    _case("LocalNCC", "eps left out", "eps missing in backward", "both", "eps comparable with var_I * var_J"),
    _case("SoftHistogram", "factor missing", "1 / width missing", "both", "width != 1"),
    _case("KSpaceConsistency", "conjugate forgotten", "g * d for conj(g) * d in the gradient of lam", "both", "always"),

    _case("SpringForces", "assignment for accumulation", "g_pos[j] += without accumulation", "first", "a particle with two springs on one side"),
    _case("LennardJonesPBC", "wrong beyond a threshold", "cutoff missing in backward", "both", "pairs beyond the cutoff"),
    _case("heat_step", "symmetry assumed", "Laplacian not transposed", "both", "boundary='insulated'"),
    _case("UpwindAdvection", "transposed gradient", "adjoint rolls in the direction of forward", "first", "always", second=None),
    _case("TridiagonalSolve", "transposed gradient", "lower and upper not exchanged", "both", "lower != upper"),

    _case("SinkhornNormalize", "wrong saved state", "final matrix used for all steps", "first", "always", second=None),
    _case("wasserstein_1d", "permutation not inverted", "gather for scatter", "first", "three or more samples", second=None),
    _case("ContrastiveMarginLoss", "wrong beyond a threshold", "hinge missing in backward", "both", "different pair beyond the margin"),
    _case("PairwiseDistance", "None for a needed gradient", "needs_input_grad of x tested for y", "both", "y requires grad, x does not"),
    _case("ArcFaceMargin", "wrong beyond a threshold", "switch at cos = 0 whatever the mode", "both", "easy_margin=False, cosine of the class in (-cos m, 0)"),

    _case("SoftDTW", "constant left out", "gamma missing in backward", "first", "gamma != 1", second=None),
    _case("crps_gaussian", "None for a needed gradient", "no gradient for y", "both", "y requires grad"),
    _case("TweedieDeviance", "second derivative wrong or lost", "saved tensors detached", "second", "second order only"),
    _case("MASELoss", "wrong normaliser", "L - 1 for L - m", "both", "m > 1"),
    _case("OrdinalLink", "cumulative sum not reversed", "cumsum in the direction of forward", "both", "three or more classes"),

    _case("CircularCorrelation", "conjugate forgotten", "G for conj(G) in the gradient of h", "both", "always"),
    _case("RFFTMagnitude", "wrong for odd sizes", "last bin taken for Nyquist", "both", "odd N > 1"),
    _case("to_polar", "second derivative wrong or lost", ".data of the saved tensor", "second", "second order only"),
    _case("MVDRWeights", "forgotten chain-rule term", "d's own term in d^H u missing", "both", "always"),
    _case("FrequencyShift", "stale cache", "rotor kept while N is the same", "first", "omega or phase change between calls of one length", second=None),
]
