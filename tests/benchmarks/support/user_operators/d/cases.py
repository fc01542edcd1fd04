"""The cases: which class, what is wrong in its twin, and inputs a careful author would pass.

"inputs" names a zero-argument function of this file; "make" (modules only) is a function of the
class that constructs the module; "second_order_right" is about the right twin (None:
once_differentiable).  "kind" is the kind of the fault, for counting.
"""
import torch

_D = torch.float64


def _r(*shape):
    return torch.randn(*shape, dtype=_D, requires_grad=True)


def _u(*shape, lo=0.0, hi=1.0):
    return (torch.rand(*shape, dtype=_D) * (hi - lo) + lo).requires_grad_()


def _leaf(t):
    return t.detach().clone().requires_grad_()


# ---------------------------------------------------------------- vision
def inputs_BilinearSample():
    torch.manual_seed(1)
    xs = torch.tensor([0.3, 0.6, 2.4, 2.7, 1.5, 3.2], dtype=_D)
    ys = torch.tensor([0.4, 0.7, 1.3, 1.6, 2.5, 0.2], dtype=_D)
    return _r(2, 4, 5), _leaf(xs), _leaf(ys)


def inputs_DeformTap1d():
    torch.manual_seed(2)
    return _r(2, 3, 6), _u(2, 3, 6, lo=0.1, hi=0.9), _r(3, 3)


def inputs_RoiMeanPool():
    torch.manual_seed(3)
    return _r(2, 5, 6), torch.tensor([[0, 0, 3, 2], [1, 1, 5, 4], [2, 0, 2, 4]])


def inputs_SrgbDecode():
    torch.manual_seed(4)
    x = torch.rand(2, 3, 4, dtype=_D) * 0.9 + 0.06
    x[0, 0, :3] = torch.tensor([0.002, 0.015, 0.03], dtype=_D)
    return (_leaf(x),)


def inputs_ColourMatrix():
    torch.manual_seed(5)
    return _r(2, 3, 2, 4), _r(3, 3), _r(3)


def inputs_GlobalSSIM():
    torch.manual_seed(6)
    return _u(2, 2, 3, 4), _u(2, 2, 3, 4)


def inputs_TotalVariation():
    torch.manual_seed(7)
    return _r(2, 3, 4), 2, 0.5, "mean"


def inputs_BoxBlur1d():
    torch.manual_seed(8)
    return _r(2, 7), 4


def inputs_MaxPoolFlat():
    torch.manual_seed(9)
    x = torch.randperm(2 * 3 * 4 * 4).to(_D).view(2, 3, 4, 4) / 10
    return x.to(memory_format=torch.channels_last).requires_grad_(), 2


def inputs_LanczosKernel():
    return (torch.tensor([-2.3, -1.0, -0.4, 0.0, 0.7, 1.6, 2.8, 3.5], dtype=_D, requires_grad=True),)


# ---------------------------------------------------------------- language
def inputs_PaddedCrossEntropy():
    torch.manual_seed(11)
    return _r(6, 5), torch.tensor([3, 0, -100, 4, -100, 1]), -100, 0.1


def inputs_RotaryHalf():
    torch.manual_seed(12)
    return _r(2, 2, 4, 6), torch.tensor([3, 4, 5, 6])


def inputs_AlibiScores():
    torch.manual_seed(13)
    return _r(2, 3, 4, 2), _r(2, 3, 5, 2), _u(3)


def inputs_GroupedQueryScores():
    torch.manual_seed(14)
    return _r(2, 4, 3, 2), _r(2, 2, 5, 2)


def inputs_SwiGLU():
    torch.manual_seed(15)
    return _r(3, 4), _r(3, 4), 1.7


def inputs_AddRMSNorm():
    torch.manual_seed(16)
    return _r(2, 3, 4), _r(2, 3, 4), _r(4)


def inputs_MoEApply():
    torch.manual_seed(17)
    return _r(5, 3), _r(4, 3, 2), torch.tensor([1, 0, 1, 3, 1]), _u(5)


def inputs_MaskedMeanPool():
    torch.manual_seed(18)
    return _r(4, 5, 2), torch.tensor([5, 2, 0, 3])


def inputs_CausalSoftmax():
    torch.manual_seed(19)
    return _r(2, 4, 4), 0.7


def inputs_SoftCap():
    torch.manual_seed(20)
    return _r(3, 4), 2.0


# ---------------------------------------------------------------- recsys
def inputs_FMInteraction():
    torch.manual_seed(21)
    return _r(3, 4), _r(4, 2)


def inputs_CrossLayer():
    torch.manual_seed(22)
    return _r(3, 4), _r(3, 4), _r(4), _r(4)


def inputs_HashedEmbeddingBag():
    torch.manual_seed(23)
    return _r(7, 2), torch.tensor([[11, 502, 3], [11, 90, 77]]), _u(2, 3, lo=0.5, hi=1.5)


def inputs_PiecewiseLinearBins():
    torch.manual_seed(24)
    edges = torch.tensor([-1.0, -0.2, 0.9, 2.5, 3.0], dtype=_D, requires_grad=True)
    x = torch.tensor([-1.6, -0.7, 0.1, 0.5, 1.3, 2.8, 3.7], dtype=_D, requires_grad=True)
    return x, edges, _r(5)


def inputs_BPRLoss():
    torch.manual_seed(25)
    return _r(6), _r(6)


def inputs_TweedieLoss():
    torch.manual_seed(26)
    return _r(6), _u(6, lo=0.0, hi=3.0), 1.3


def inputs_RaggedSoftmax():
    torch.manual_seed(27)
    return _r(7), [2, 1, 4]


def inputs_RatingMSE():
    torch.manual_seed(28)
    obs = torch.tensor([[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0]], dtype=torch.bool)
    return _r(3, 4), _u(3, 4, lo=1.0, hi=5.0), obs


def inputs_TopKScores():
    torch.manual_seed(29)
    return _r(2, 3), _r(2, 5, 3), 2


def inputs_RecencyDecay():
    torch.manual_seed(30)
    now = 1_700_000_000
    ts = now - torch.tensor([37, 421, 1333, 2950, 5005])
    return _r(5), ts, torch.tensor(1800.0, dtype=_D, requires_grad=True), now


# ---------------------------------------------------------------- optlayers
def inputs_SimplexProjection():
    torch.manual_seed(31)
    return _r(3, 5), 1.0


def inputs_Sparsemax():
    torch.manual_seed(32)
    return _r(4, 3, 2), 0


def inputs_Entmax15():
    x = torch.tensor([[2.0, 0.3, -1.5, 1.4, -0.9], [0.1, 3.0, 2.2, -2.0, 1.9]], dtype=_D)
    return (x.requires_grad_(),)


def inputs_SpdLogm():
    return (torch.diag(torch.tensor([2.0, 2.0, 5.0, 0.7], dtype=_D)).requires_grad_(),)


def inputs_SymEigvals():
    torch.manual_seed(35)
    a = torch.randn(2, 4, 4, dtype=_D)
    return (_leaf(a + a.mT),)


def inputs_MatrixExp():
    torch.manual_seed(36)
    return ((0.5 * torch.randn(3, 3, dtype=torch.complex128)).requires_grad_(),)


def inputs_WoodburySolve():
    torch.manual_seed(37)
    return _u(5, lo=0.5, hi=2.0), _r(5, 2), _r(5)


def inputs_LogDetSPD():
    torch.manual_seed(38)
    a = torch.randn(3, 3, 3, dtype=_D)
    return (_leaf(a @ a.mT + torch.eye(3, dtype=_D)),)


def inputs_IsotonicFit():
    return (torch.tensor([0.2, 1.4, 0.9, 1.0, 2.5, 2.1, 3.3], dtype=_D, requires_grad=True),)


def inputs_ProjectL2Ball():
    x = torch.tensor([[0.3, -0.2, 0.1], [1.5, 0.4, -2.0], [0.9, 1.1, 0.6]], dtype=_D)
    return x.requires_grad_(), 1.0


# ---------------------------------------------------------------- stateful
def inputs_SpectralLinear():
    torch.manual_seed(41)
    return (_r(3, 4),)


def make_SpectralLinear(cls):
    torch.manual_seed(141)
    m = cls(4, 3).double().eval()
    m._power(30)
    return m


def inputs_RunningNorm():
    torch.manual_seed(42)
    return (_r(6, 3),)


def make_RunningNorm(cls):
    torch.manual_seed(142)
    m = cls(3, track=False).double().eval()
    with torch.no_grad():
        m.weight.copy_(torch.tensor([0.7, 1.2, -0.5]))
    return m


def inputs_WeightNorm():
    torch.manual_seed(43)
    return torch.randn(3, 4, dtype=_D), _u(3, lo=0.5, hi=1.5)


def inputs_MinGRUStep():
    torch.manual_seed(44)
    return _r(3, 4), _r(3, 4), _r(3, 4), -1.0


def inputs_GroupNorm():
    torch.manual_seed(45)
    return _r(2, 4, 3), _r(4), _r(4), 2


def inputs_TemperatureHead():
    torch.manual_seed(46)
    return (_r(3, 5),)


def make_TemperatureHead(cls):
    return cls(1.6).double()


def inputs_CenterLoss():
    torch.manual_seed(47)
    return _r(5, 2), _r(3, 2), torch.tensor([2, 0, 2, 2, 0])


def inputs_ModReLU():
    torch.manual_seed(48)
    z = torch.randn(4, 3, dtype=torch.complex128, requires_grad=True)
    return z, torch.tensor([-0.4, 0.3, -0.1], dtype=_D, requires_grad=True)


def inputs_EmaScan():
    torch.manual_seed(49)
    return _r(2, 4, 3), _u(3, lo=0.2, hi=0.9), _r(2, 3)


def inputs_LayerScaleBlock():
    torch.manual_seed(50)
    return _r(4, 3), torch.tensor([True, False, True, True])


def make_LayerScaleBlock(cls):
    torch.manual_seed(150)
    return cls(3).double()


CASES = []


def _add(group, name, kind, fault, when, shows="first", second=True, **more):
    c = dict(group=group, name=name, kind=kind, fault=fault, shows=shows, when=when,
             inputs="inputs_" + name, second_order_right=second)
    c.update(more)
    if "make_" + name in globals():
        c["make"] = globals()["make_" + name]
    CASES.append(c)


_add("vision", "BilinearSample", "assignment for accumulation", "flat[:, idx] += v drops contributions to the same pixel", "several sample points share a corner pixel", "both")
_add("vision", "DeformTap1d", "forgotten chain-rule term", "offset gradient does not carry the tap weight", "always", "both")
_add("vision", "RoiMeanPool", "off by one", "last column of each box gets no gradient", "always")
_add("vision", "SrgbDecode", "wrong threshold", "backward uses the encoding threshold 0.0031308", "values between 0.0031308 and 0.04045", "both")
_add("vision", "ColourMatrix", "transposed gradient", "image gradient uses M where M^T is due", "matrix not symmetric (raises when not square)", "both")
_add("vision", "GlobalSSIM", "wrong normaliser", "covariance terms divided by n, forward has n - 1", "always (small for large images)", "both")
_add("vision", "TotalVariation", "factor lost off the default option", "1/numel of reduction='mean' lost in backward", "reduction='mean'", "both")
_add("vision", "BoxBlur1d", "off by one", "adjoint padded on the forward's sides", "even k")
_add("vision", "MaxPoolFlat", "layout assumption", ".view of a zeros_like that keeps the layout: backward raises", "x is channels_last (or otherwise not contiguous)")
_add("vision", "LanczosKernel", "NaN at a point", "0/0 in the slope at x = 0", "an x is exactly 0", second=False)

_add("language", "PaddedCrossEntropy", "wrong normaliser", "divided by N, not by the count of valid tokens", "some targets are pad_id", "both")
_add("language", "RotaryHalf", "wrong sign", "gradient rotated forward, not back", "any position other than 0")
_add("language", "AlibiScores", "missing sum over broadcast axes", "slope gradient is the mean over the batch, not the sum", "batch > 1")
_add("language", "GroupedQueryScores", "wrong axis or grouping", "query heads grouped (rep, Hk), forward has (Hk, rep)", "rep > 1 and more than one key head", "both")
_add("language", "SwiGLU", "second derivative wrong or lost", "silu'' has 1 + ... for 2 + ... (fault sits in _SwiGLUGrad.backward)", "only at second order", "second")
_add("language", "AddRMSNorm", "second output's gradient ignored", "gradient that arrives through h is dropped", "the second output is used")
_add("language", "MoEApply", "assignment for accumulation", "expert gradients overwritten by the last token", "two tokens share an expert")
_add("language", "MaskedMeanPool", "NaN at a point", "divides by a length of 0", "a length is 0")
_add("language", "CausalSoftmax", "grad_output or saved tensor changed in place", "grad -= dot changes the incoming gradient (raises for an expanded one)", "the incoming gradient is looked at afterwards or is expanded", checks="mutation")
_add("language", "SoftCap", "second derivative wrong or lost", ".data cuts the saved output off the graph", "only at second order", "second")

_add("recsys", "FMInteraction", "forgotten chain-rule term", "own term not taken off the sum", "always", "both")
_add("recsys", "CrossLayer", "swapped gradients", "gradients of x0 and xl returned in each other's place", "always", "both")
_add("recsys", "HashedEmbeddingBag", "None for a needed gradient", "per item weights get None", "weights given and needing a gradient", second=None)
_add("recsys", "PiecewiseLinearBins", "missing factor", "slope not divided by the bin width", "bins not of width 1", "both")
_add("recsys", "BPRLoss", "ignores grad_output", "incoming gradient not multiplied in", "incoming gradient not 1", "both")
_add("recsys", "TweedieLoss", "wrong constant", "factor 2 - rho kept, though it cancels", "always", "both")
_add("recsys", "RaggedSoftmax", "wrong axis or grouping", "subtracts the dot product over all groups", "more than one group", "both")
_add("recsys", "RatingMSE", "mask not applied", "unobserved entries get a gradient", "an entry is not observed", "both")
_add("recsys", "TopKScores", "wrong number of gradients", "two gradients for three inputs: raises", "always")
_add("recsys", "RecencyDecay", "dtype", "unix seconds put through float32 (steps of 128 s)", "timestamps of today's size")

_add("optlayers", "SimplexProjection", "wrong normaliser", "shift averaged over n, not over the support", "some coordinate is projected to 0")
_add("optlayers", "Sparsemax", "factor lost off the default option", "sums of backward run over -1, not over dim", "dim is not the last axis")
_add("optlayers", "Entmax15", "second derivative wrong or lost", "plain sqrt at 0: NaN at second order", "some probability is 0; only at second order", "second")
_add("optlayers", "SpdLogm", "NaN at a point", "only the diagonal counts as equal eigenvalues: 0/0", "repeated eigenvalues", second=None)
_add("optlayers", "SymEigvals", "transposed gradient", "V^T diag(g) V for V diag(g) V^T", "always (n > 1)", "both")
_add("optlayers", "MatrixExp", "conjugate forgotten", "A^T for A^H", "complex A", "both")
_add("optlayers", "WoodburySolve", "forgotten chain-rule term", "one of the two terms of dU is missing", "always", "both")
_add("optlayers", "LogDetSPD", "missing broadcast axes", "grad * inv lines the batch up with the columns", "batch of n matrices of size n (other batches raise)", "both")
_add("optlayers", "IsotonicFit", "missing factor", "pooled gradient not divided by the size of the block", "a block is pooled")
_add("optlayers", "ProjectL2Ball", "detached part", "norm taken as a constant", "a row is outside of the ball", "both")

_add("stateful", "SpectralLinear", "missing factor", "g.W not divided by sigma (fault sits in _SpectralScale)", "sigma is not 1", "both")
_add("stateful", "RunningNorm", "wrong branch in training/eval", "batch statistics in eval are taken for constants (fault sits in _RunningNorm)", "track=False and eval mode", second=False)
_add("stateful", "WeightNorm", "needs_input_grad mishandled", "gradient of g asks whether v needs one", "v frozen, g trained")
_add("stateful", "MinGRUStep", "wrong sign", "h - c for c - h", "always", "both")
_add("stateful", "GroupNorm", "grad_output or saved tensor changed in place", "backward standardises the user's x in place", "x contiguous (its reshape is a view)", second=False, checks="mutation")
_add("stateful", "TemperatureHead", "None for a needed gradient", "log_tau gets None (fault sits in _TempSoftmax)", "always")
_add("stateful", "CenterLoss", "assignment for accumulation", "index_copy for index_add", "a label occurs twice")
_add("stateful", "ModReLU", "conjugate forgotten", "grad * u for grad * conj(u)", "always", "both")
_add("stateful", "EmaScan", "off by one", "y_t for y_{t-1} in the decay's gradient", "always", "both")
_add("stateful", "LayerScaleBlock", "mask not applied", "gamma's gradient does not see keep_mask / keep_prob (fault sits in _ScaledResidual)", "keep_mask given", "both")
