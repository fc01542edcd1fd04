"""The 50 cases.

"inputs" names a zero-argument function below: the args of Function.apply, or of the module's forward.
"make" (modules only) is called with the class (from right/ or wrong/) and returns a float64 module.
"kind" groups the faults; "constant_args" are declared constants, "second_order_right" is about the RIGHT operator (None: once_differentiable).
"""
import torch

F64 = torch.float64


def _s(n):
    torch.manual_seed(n)


def _r(*shape):
    return torch.randn(*shape, dtype=F64).requires_grad_()


def _u(lo, hi, *shape):
    return (lo + (hi - lo) * torch.rand(*shape, dtype=F64)).requires_grad_()


def _spd(*shape):
    a = torch.randn(*shape, dtype=F64)
    eye = torch.eye(shape[-1], dtype=F64)
    return (a @ a.mT / shape[-1] + eye).requires_grad_()


# ---------------------------------------------------------------- activations
def inputs_MishFn():
    _s(1)
    return (_r(3, 5),)


def inputs_GatedLinearUnit():
    _s(2)
    return _r(3, 6), 1


def inputs_Snake1d():
    _s(3)
    return (_r(2, 3, 5),)


def make_Snake1d(cls):
    m = cls(3, alpha=0.7).double()
    with torch.no_grad():
        m.alpha += torch.tensor([0.0, 0.4, 1.1], dtype=F64)
    return m


def inputs_ShiftedSoftplus():
    _s(4)
    return _r(4, 5), 2.5


def inputs_ChannelPReLU():
    _s(5)
    return _r(4, 3, 5), _u(0.1, 0.4, 3)


def inputs_SincFn():
    _s(6)
    x = torch.randn(7, dtype=F64) * 3
    x[2] = 0.0
    return (x.requires_grad_(),)


def inputs_HardSwishFunction():
    return (torch.tensor([-7.1, -3.6, -2.2, -0.4, 0.9, 2.7, 3.4, 4.8, 5.6, 8.0], dtype=F64).requires_grad_(),)


def inputs_LogitClamped():
    return torch.tensor([0.01, 0.2, 0.5, 0.77, 0.98, 0.03], dtype=F64).requires_grad_(), 0.05


def inputs_ModReLU():
    _s(9)
    z = torch.randn(4, 3, dtype=torch.complex128).requires_grad_()
    b = torch.tensor([0.3, -0.4, -0.2], dtype=F64).requires_grad_()
    return z, b


def inputs_CELUFn():
    _s(10)
    return _r(3, 4), 1.3


# ---------------------------------------------------------------- losses
def inputs_SigmoidFocal():
    _s(11)
    return _r(4, 3), torch.randint(0, 2, (4, 3)).to(F64), 0.3, 1.5, "mean"


def inputs_SmoothedCrossEntropy():
    _s(12)
    return _r(5, 4), torch.tensor([0, -100, 3, 1, -100]), -100, 0.1


def inputs_HuberFn():
    _s(13)
    return _r(4, 3), _r(4, 3), 0.8, "mean"


def inputs_SoftDiceLoss():
    _s(14)
    return _u(0.05, 0.95, 3, 4, 4), torch.rand(3, 4, 4) > 0.6


def inputs_WeightedNLL():
    _s(15)
    lp = torch.log_softmax(torch.randn(6, 4, dtype=F64), 1).requires_grad_()
    w = torch.tensor([0.5, 2.0, 1.0, 3.0], dtype=F64)
    return lp, torch.tensor([0, 3, -100, 1, 2, 3]), w, -100, "mean"


def inputs_TripletSquared():
    _s(16)
    a = torch.zeros(4, 3, dtype=F64)
    a = a + 0.1 * torch.randn(4, 3, dtype=F64)
    p = a + torch.tensor([[0.5], [0.9], [0.2], [0.4]], dtype=F64)
    n = a - torch.tensor([[0.7], [0.3], [2.0], [0.6]], dtype=F64)
    return a.requires_grad_(), p.requires_grad_(), n.requires_grad_(), 1.0


def inputs_InfoNCE():
    _s(17)
    return _r(4, 3), _r(4, 3), 0.8


def inputs_PoissonNLL():
    _s(18)
    return _u(0.5, 3.0, 3, 4), torch.randint(0, 5, (3, 4)).to(F64).requires_grad_(), False, 1e-8, "sum"


def inputs_PinballLoss():
    _s(19)
    return _r(5, 3), _r(5)


def make_PinballLoss(cls):
    return cls([0.1, 0.5, 0.9]).double()


def inputs_DistillKL():
    _s(20)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    return _r(2, 3, 4), _r(2, 3, 4), mask, 1.7


# ---------------------------------------------------------------- norms
def inputs_LayerNormFn():
    _s(21)
    return _r(2, 3, 4), _r(4), _r(4)


def inputs_RMSNorm():
    _s(22)
    return ((0.005 * torch.randn(3, 4, dtype=F64)).requires_grad_(),)


def make_RMSNorm(cls):
    m = cls(4).double()
    with torch.no_grad():
        m.weight.copy_(torch.tensor([0.5, 1.5, -1.0, 2.0], dtype=F64))
    return m


def inputs_GroupNormFn():
    _s(23)
    x = torch.randn(2, 5, 4, dtype=F64).transpose(1, 2).requires_grad_()  # (N, C, L), channels last
    return x, 2, _r(4), _r(4)


def inputs_BatchNormEMA():
    _s(24)
    return (_r(5, 3),)


def make_BatchNormEMA(cls):
    m = cls(3).double()
    with torch.no_grad():
        m.weight.copy_(torch.tensor([0.5, 1.5, -1.0], dtype=F64))
        m.running_mean.copy_(torch.tensor([0.1, -0.2, 0.3], dtype=F64))
        m.running_var.copy_(torch.tensor([0.8, 1.4, 2.0], dtype=F64))
    return m.eval()


def inputs_InstanceNormFn():
    _s(25)
    return (_r(2, 3, 2, 3),)


def inputs_WeightNormFn():
    _s(26)
    return _r(3, 4, 2), _u(0.5, 2.0, 1, 4, 1), 1


def inputs_L2NormalizeFn():
    _s(27)
    x = torch.randn(4, 3, dtype=F64)
    x[1] *= 0.03
    return x.requires_grad_(), -1, 0.1


def inputs_ZScore():
    _s(28)
    return _r(5, 3), 0, 1


def inputs_LocalResponseNorm():
    _s(29)
    return _r(2, 6, 3), 4, 0.5, 0.75, 1.0


def inputs_FilterResponseNormFn():
    _s(30)
    c = (1, 3, 1, 1)
    return _r(2, 3, 2, 3), _r(*c), _r(*c), _r(*c), 1e-6


# ---------------------------------------------------------------- scatter
def inputs_SegmentMean():
    _s(31)
    return _r(6, 2), torch.tensor([0, 2, 2, 0, 0, 3]), 4


def inputs_GatherRows():
    _s(32)
    return _r(4, 3), torch.tensor([1, 3, 1, 0, 1])


def inputs_TokenTable():
    return (torch.tensor([[0, 3, 2], [4, 0, 3]]),)


def make_TokenTable(cls):
    _s(33)
    return cls(5, 3).double()


def inputs_SegmentSoftmax():
    _s(34)
    return _r(7), torch.tensor([0, 1, 1, 0, 2, 2, 2]), 3


def inputs_SegmentMax():
    _s(35)
    return _r(6, 2), torch.tensor([0, 2, 2, 0, 0, 3]), 4


def inputs_FrameSignal():
    _s(36)
    return _r(2, 9), 4, 2


def inputs_ReversePadded():
    _s(37)
    return _r(3, 4, 2), [4, 2, 3]


def inputs_EdgePropagate():
    _s(38)
    return _r(4, 3), torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 3, 1]]), _r(5)


def inputs_TopKPool():
    _s(39)
    return _r(3, 5), 2, 1


def inputs_WeightedBag():
    _s(40)
    return _r(5, 3), torch.tensor([0, 2, 2, 4, 1, 0]), torch.tensor([0, 2, 5]), _r(6)


# ---------------------------------------------------------------- linalg
def inputs_CholeskyFn():
    _s(41)
    return (_spd(3, 3),)


def inputs_SolveFn():
    _s(42)
    a = torch.randn(3, 3, dtype=F64) + 2 * torch.eye(3, dtype=F64)
    return a.requires_grad_(), _r(3, 2)


def inputs_LogDetSPD():
    _s(43)
    return (_spd(2, 3, 3),)


def inputs_SqrtmSPD():
    _s(44)
    return (_spd(3, 3),)


def inputs_InverseFn():
    _s(45)
    a = torch.randn(2, 3, 3, dtype=F64) + 3 * torch.eye(3, dtype=F64)
    return (a.requires_grad_(),)


def inputs_MahalanobisSq():
    _s(46)
    low = torch.linalg.cholesky(_spd(3, 3).detach()).requires_grad_()
    return _r(4, 3), _r(3), low


def inputs_TriangularSolve():
    _s(47)
    t = torch.triu(torch.randn(3, 3, dtype=F64), 1) + torch.diag(torch.tensor([1.0, 1.5, 2.0], dtype=F64))
    return t.requires_grad_(), _r(3, 2), True


def inputs_CayleyOrthogonal():
    _s(48)
    return (_r(3, 3),)


def inputs_QuadraticForm():
    _s(49)
    return _r(4, 3), _r(3, 3)


def inputs_KronMatVec():
    _s(50)
    x = torch.randn(6, 4, dtype=F64).t().requires_grad_()  # (4, 6), a transposed leaf
    return _r(2, 2), _r(4, 3), x


# float arguments that the operator declares constant (as torch.nn.functional does): None by contract
CONSTANT_ARGS = {"SigmoidFocal": ["targets"], "WeightedNLL": ["weight"], "SoftDiceLoss": ["mask"]}


def _case(group, name, kind, fault, shows, when, second=True, make=None):
    c = dict(group=group, name=name, kind=kind, fault=fault, shows=shows, when=when,
             inputs="inputs_" + name, second_order_right=second,
             constant_args=CONSTANT_ARGS.get(name, []))
    if make is not None:
        c["make"] = make
    return c


CASES = [
    _case("activations", "MishFn", "forgotten chain-rule term", "sigmoid (derivative of softplus) missing from the tanh term", "both", "always"),
    _case("activations", "GatedLinearUnit", "gradient of the wrong input (swapped)", "the two halves of the gradient are concatenated in the wrong order", "both", "always"),
    _case("activations", "Snake1d", "forgotten chain-rule term", "gradient of alpha lacks -sin^2(ax)/a^2", "both", "always, in the gradient of alpha", make=make_Snake1d),
    _case("activations", "ShiftedSoftplus", "factor lost off the default", "sigmoid(x) in place of sigmoid(beta * x)", "both", "beta != 1"),
    _case("activations", "ChannelPReLU", "missing sum over axes", "gradient of weight summed over the batch axis only", "both", "x has more than two dims"),
    _case("activations", "SincFn", "NaN at zero", "the unused branch of torch.where divides by x: NaN in the second derivative", "second", "x contains an exact 0"),
    _case("activations", "HardSwishFunction", "wrong threshold", "linear part begins at 6 in backward, at 3 in forward", "both", "some 3 <= x < 6"),
    _case("activations", "LogitClamped", "mask not applied", "gradient not zeroed where the probability was clamped", "both", "some p < eps or p > 1 - eps"),
    _case("activations", "ModReLU", "conjugate forgotten", "g * z in place of conj(g) * z", "both", "always (complex g)"),
    _case("activations", "CELUFn", "grad_output changed in place", "grad_output.mul_(slope)", "both", "always: the caller's grad_output is overwritten (raises if it is an expanded tensor)"),

    _case("losses", "SigmoidFocal", "factor lost off the default", "2 in place of gamma", "both", "gamma != 2"),
    _case("losses", "SmoothedCrossEntropy", "wrong normaliser", "gradient divided by batch size, not by the number of valid rows", "first", "some target == ignore_index", second=None),
    _case("losses", "HuberFn", "wrong sign", "gradient of target has the sign of that of pred", "both", "target requires grad"),
    _case("losses", "SoftDiceLoss", "missing factor", "1 / batch size of the mean missing", "both", "batch size > 1"),
    _case("losses", "WeightedNLL", "factor lost off the default", "the keep mask is saved in place of the row weights", "both", "weight given"),
    _case("losses", "TripletSquared", "wrong threshold", "active where gap > 0, forward uses gap + margin > 0", "both", "some -margin < gap <= 0"),
    _case("losses", "InfoNCE", "transposed gradient", "d_logits not transposed in the gradient of k", "both", "always (more than one row)"),
    _case("losses", "PoissonNLL", "wrong normaliser", "divided by numel for reduction='sum' also", "both", "reduction='sum'"),
    _case("losses", "PinballLoss", "ignores grad_output", "slope returned without grad_output", "both", "grad_output != 1; under plain .backward() on the loss it cannot be seen", make=make_PinballLoss),
    _case("losses", "DistillKL", "mask not applied", "gradient of student divided by n but not masked", "first", "some mask entry is False", second=False),

    _case("norms", "LayerNormFn", "second derivative wrong or lost", "rstd computed from x.detach() in backward", "second", "always, second order only"),
    _case("norms", "RMSNorm", "wrong constant or eps", "eps missing in backward", "both", "mean square of x comparable with eps", make=make_RMSNorm),
    _case("norms", "GroupNormFn", "layout assumption", "x.view in backward (forward uses reshape): raises", "both", "x not contiguous"),
    _case("norms", "BatchNormEMA", "wrong branch in training/eval", "batch statistics' terms of the gradient used in eval mode (branch taken on batch size 1)", "both", "eval mode with batch > 1 (or training with batch 1, which forward cannot do)", make=make_BatchNormEMA),
    _case("norms", "InstanceNormFn", "wrong normaliser", "variance with m - 1 in backward, m in forward", "both", "always (visible for few positions)"),
    _case("norms", "WeightNormFn", "factor lost off the default", "backward reduces over all dims but 0", "both", "dim != 0"),
    _case("norms", "L2NormalizeFn", "wrong threshold", "radial part removed where norm > 0 in place of norm > eps", "both", "0 < norm < eps"),
    _case("norms", "ZScore", "second output's gradient ignored", "gradient of std dropped", "both", "always, when std is used"),
    _case("norms", "LocalResponseNorm", "off-by-one in a window", "window of the adjoint not mirrored", "first", "even size", second=False),
    _case("norms", "FilterResponseNormFn", "gradient of the wrong input (swapped)", "gradients of gamma and beta swapped", "first", "always", second=False),

    _case("scatter", "SegmentMean", "missing factor", "not divided by the segment's count", "both", "a segment with more than one row"),
    _case("scatter", "GatherRows", "assignment for accumulation", "gx[index] = grad", "first", "repeated indices"),
    _case("scatter", "TokenTable", "mask not applied", "truth test of padding_idx: index 0 counts as no padding", "both", "padding_idx == 0 and a padding token in the input", make=make_TokenTable),
    _case("scatter", "SegmentSoftmax", "saved tensor changed in place", "y.mul_: overwrites the saved output, which is also the caller's", "both", "always: output corrupted, second backward raises (first gradient right)"),
    _case("scatter", "SegmentMax", "wrong number of gradients", "two gradients for three inputs: raises", "both", "always"),
    _case("scatter", "FrameSignal", "assignment for accumulation", "overlapping frames overwrite in place of adding", "both", "hop < frame_len and at least two frames"),
    _case("scatter", "ReversePadded", "part of the gradient dropped", "gradient of the untouched padding is zero", "both", "some length < T"),
    _case("scatter", "EdgePropagate", "None for a needed gradient", "None in place of the gradient of the edge weights", "both", "w requires grad"),
    _case("scatter", "TopKPool", "dtype", "buffer in the default dtype: raises on float64", "both", "dtype other than the default one"),
    _case("scatter", "WeightedBag", "needs_input_grad mishandled", "needs_input_grad[2] (offsets) tested for the gradient of sample_weight", "first", "sample_weight requires grad", second=None),

    _case("linalg", "CholeskyFn", "missing factor", "diagonal removed in place of halved", "both", "always"),
    _case("linalg", "SolveFn", "transposed gradient", "solve with A in place of A^T", "both", "A not symmetric"),
    _case("linalg", "LogDetSPD", "ignores grad_output", "inverse returned without grad", "both", "grad != 1"),
    _case("linalg", "SqrtmSPD", "forgotten chain-rule term", "2 s_i in place of s_i + s_j", "first", "distinct eigenvalues", second=None),
    _case("linalg", "InverseFn", "second derivative wrong or lost", "saved inverse detached in backward", "second", "always, second order only"),
    _case("linalg", "MahalanobisSq", "wrong sign", "sign of the gradient of mu", "both", "always"),
    _case("linalg", "TriangularSolve", "factor lost off the default", "tril whatever `upper` says", "both", "upper=True"),
    _case("linalg", "CayleyOrthogonal", "forgotten chain-rule term", "S = W - W^T not chained (gS in place of gS - gS^T)", "both", "always"),
    _case("linalg", "QuadraticForm", "symmetry assumed", "2 A in place of A + A^T", "both", "A not symmetric"),
    _case("linalg", "KronMatVec", "layout assumption", "as_strided with contiguous strides on x: silently wrong", "both", "x not contiguous"),
]
