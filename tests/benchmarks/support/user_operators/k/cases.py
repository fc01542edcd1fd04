"""The 50 cases of set k, one operator per file.

right/NAME.py and wrong/NAME.py both define NAME.  "form" says what NAME is:
    "function"  a torch.autograd.Function: call NAME.apply(*args)
    "module"    an nn.Module: "make" is called with the class and returns a float64 module, call it with the args
    "plain"     a python function: call NAME(*args)
"inputs" names a zero-argument function below: the arguments.
"shows": order at which the fault shows ("first": wrong first derivative; "second": only the second derivative is wrong).
"second_order_right" is about the RIGHT operator (None: once_differentiable).
"constant_args": float arguments declared constant.
"""
import torch

F64 = torch.float64


def _s(n):
    torch.manual_seed(1000 + n)


def _r(*shape):
    return torch.randn(*shape, dtype=F64).requires_grad_()


def _u(lo, hi, *shape):
    return (lo + (hi - lo) * torch.rand(*shape, dtype=F64)).requires_grad_()


def _t(*values):
    return torch.tensor(values, dtype=F64).requires_grad_()


# ---------------------------------------------------------------- images, remote sensing
def inputs_SobelMagnitude():
    _s(1)
    return (_r(1, 2, 4, 5),)


def inputs_SpectralIndex():
    _s(2)
    return _u(0.3, 0.6, 3, 4), _u(0.05, 0.2, 3, 4), _u(0.02, 0.08, 3, 4)


def inputs_BilinearPointSample():
    _s(3)
    return _r(2, 4, 5), _t([0.3, 1.6], [3.7, 2.2], [-0.4, 0.7], [4.4, 3.3], [1.2, 1.9])


def inputs_SRGBTransfer():
    return (_t(0.001, 0.0025, 0.008, 0.02, 0.035, 0.05, 0.3, 0.9),)


def inputs_CharbonnierTV():
    _s(5)
    return _r(2, 3, 4), 0.1, "mean"


def inputs_box_filter():
    _s(6)
    return _r(2, 4, 5), 1


def inputs_SpectralAngleLoss():
    _s(7)
    valid = torch.tensor([[True, False, True], [True, True, False]])
    return _u(0.1, 1.0, 2, 4, 3), _u(0.1, 1.0, 2, 4, 3), valid


def inputs_cloud_fill():
    _s(8)
    return _r(2, 3, 2, 3), torch.rand(2, 2, 3) > 0.5, _r(3)


# ---------------------------------------------------------------- audio
def inputs_PreEmphasis():
    _s(9)
    return (_r(2, 5),)


def make_PreEmphasis(cls):
    return cls(0.9).double()


def inputs_PowerCompress():
    _s(10)
    return torch.randn(3, 4, dtype=torch.complex128).requires_grad_(), 0.4


def inputs_SISDR():
    _s(11)
    ref = torch.randn(2, 8, dtype=F64)
    est = ref + 0.8 * torch.randn(2, 8, dtype=F64)
    return est.requires_grad_(), ref.requires_grad_(), "none"


def inputs_ForwardSumLoss():
    _s(12)
    return _r(2, 5, 3), torch.tensor([3, 2]), torch.tensor([5, 4])


def make_ForwardSumLoss(cls):
    return cls().double()


def inputs_LogMelFloor():
    _s(13)
    x = torch.rand(2, 9, 3, dtype=F64)
    x[0, :, 1] *= 1e-6
    x[1, :, 2] *= 2e-6
    return (x.requires_grad_(),)


def make_LogMelFloor(cls):
    return cls().double()


def inputs_StatsPooling():
    _s(14)
    return _r(2, 3, 5), torch.tensor([5, 3])


def inputs_frame_energy():
    _s(15)
    return _r(2, 11), _u(0.2, 1.0, 4), 3


def inputs_PowerSpectrum():
    _s(16)
    return (_r(2, 7),)


# ---------------------------------------------------------------- recommenders, ranking
def inputs_BPRLoss():
    _s(17)
    return _r(3, 4), _r(3, 4), _r(3, 4), 0.5


def inputs_FMInteraction():
    _s(18)
    return (_r(3, 5),)


def make_FMInteraction(cls):
    torch.manual_seed(18)
    m = cls(5, 3).double()
    with torch.no_grad():
        m.factors.copy_(torch.randn(5, 3, dtype=F64))
        m.linear.copy_(torch.randn(5, dtype=F64))
    return m


def inputs_ListMLE():
    _s(19)
    labels = torch.tensor([[1.0, 3.0, 0.0, 2.0], [1.0, 3.0, 2.0, -1.0]], dtype=F64)
    return _r(2, 4), labels


def inputs_ApproxNDCG():
    _s(20)
    return _r(2, 5), torch.tensor([[0.0, 2.0, 1.0, 3.0, 0.0], [1.0, 0.0, 0.0, 2.0, 2.0]], dtype=F64)


def make_ApproxNDCG(cls):
    return cls(0.5).double()


def inputs_InBatchSoftmax():
    _s(21)
    return _r(4, 3), _r(4, 3), torch.tensor([7, 2, 7, 5]), _u(-2.0, -0.5, 4)


def make_InBatchSoftmax(cls):
    return cls(0.7).double()


def inputs_embedding_bag_mean():
    _s(22)
    return _r(5, 3), torch.tensor([1, 3, 1, 0, 3, 3]), torch.tensor([0, 2, 2])


def inputs_CrossNetLayer():
    _s(23)
    return (_r(3, 4),)


def make_CrossNetLayer(cls):
    torch.manual_seed(23)
    return cls(4).double()


# ---------------------------------------------------------------- graphs, point clouds
def inputs_GATAggregate():
    _s(24)
    edges = torch.tensor([[0, 1, 2, 2, 3, 0, 1], [1, 2, 0, 1, 1, 2, 3]])
    return _r(4, 2, 3), _r(7, 2), edges


def inputs_ChamferDistance():
    _s(25)
    return _r(2, 5, 3), _r(2, 3, 3)


def inputs_LaplacianSmoothing():
    _s(26)
    return _r(4, 3), torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 0, 3]])


def make_LaplacianSmoothing(cls):
    m = cls(0.6).double()
    # a layer that has seen another graph before
    m(torch.randn(4, 3, dtype=F64), torch.tensor([[0, 0, 2, 3, 1], [2, 3, 1, 1, 0]]))
    return m


def inputs_segment_logsumexp():
    _s(27)
    return _r(6, 2), torch.tensor([0, 2, 2, 1, 0, 2]), 3


def inputs_PillarScatter():
    _s(28)
    return _r(4, 3), torch.tensor([[0, 0, 1], [0, 1, 3], [1, 1, 0], [1, 2, 4]]), 2, 3, 5


def inputs_GroupRelative():
    _s(29)
    idx = torch.tensor([[[0, 2, -1], [3, 3, 1]], [[1, -1, -1], [2, 0, 3]]])
    return _r(2, 4, 3), _r(2, 2, 3), idx


# ---------------------------------------------------------------- molecules
def inputs_BondAngles():
    _s(30)
    return _r(5, 3), torch.tensor([[0, 1, 2], [1, 2, 3], [4, 2, 1]])


def inputs_dihedral():
    _s(31)
    return _r(5, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])


def inputs_CosineCutoffSmearing():
    return (_t([0.8, 1.9, 2.7], [3.4, 3.9, 1.2]),)


def make_CosineCutoffSmearing(cls):
    return cls(5, cutoff=3.0).double()


def inputs_LennardJones():
    pos = _t([0.2, 0.3, 0.1], [3.7, 0.5, 0.4], [1.9, 2.1, 3.6], [0.5, 1.8, 1.7])
    pairs = torch.tensor([[0, 1], [0, 2], [1, 2], [1, 3], [0, 3], [2, 3]])
    return pos, pairs, torch.tensor(0.8, dtype=F64).requires_grad_(), torch.tensor(0.9, dtype=F64).requires_grad_(), \
        torch.tensor([4.0, 4.0, 4.0], dtype=F64)


def inputs_KabschRMSD():
    _s(34)
    p = torch.randn(6, 3, dtype=F64)
    q = p * torch.tensor([1.0, 1.0, -1.0], dtype=F64) + 0.2 * torch.randn(6, 3, dtype=F64)
    return p.requires_grad_(), q.requires_grad_()


def inputs_BesselBasis():
    return (_t(0.7, 1.6, 2.9, 4.1),)


def make_BesselBasis(cls):
    return cls(3).double()


# ---------------------------------------------------------------- quantisation, sparsity
def inputs_GroupSoftThreshold():
    _s(36)
    x = torch.randn(4, 3, dtype=F64)
    x[2] *= 0.1
    return x.requires_grad_(), torch.tensor(0.6, dtype=F64).requires_grad_()


def inputs_DequantLinear():
    _s(37)
    return _r(3, 6), torch.randint(0, 16, (4, 6), dtype=torch.uint8), _u(0.1, 0.3, 4, 2), _u(6.0, 9.0, 4, 2), _r(4)


def inputs_ResidualCodebook():
    return (torch.tensor([[0, 3, 2], [4, 0, 0], [1, 3, 3]]),)


def make_ResidualCodebook(cls):
    torch.manual_seed(38)
    return cls(3, 5, 2, shared=True).double()


def inputs_Sparse24Linear():
    _s(39)
    return (_r(3, 8),)


def make_Sparse24Linear(cls):
    torch.manual_seed(39)
    return cls(8, 3).double()


def inputs_ChannelNoiseQuant():
    _s(40)
    return _r(2, 3, 3), _u(0.3, 0.6, 3), _u(-0.5, 0.5, 2, 3, 3), 3, -1


def inputs_Sparsemax():
    _s(41)
    return _r(3, 5), -1


# ---------------------------------------------------------------- probabilistic losses
def inputs_StudentTNLL():
    _s(42)
    return _r(1, 4), _r(3, 4), _r(4), _u(2.0, 6.0, 3, 1), "mean"


def inputs_CRPSGaussian():
    _s(43)
    return _r(3, 2), _u(0.5, 1.5, 3, 2), _r(3, 2)


def inputs_ZIPoissonNLL():
    _s(44)
    return _r(2, 4), _r(2, 4), torch.tensor([[0, 3, -99, 1], [-99, 0, 2, -99]]), -99


def inputs_kl_free_bits():
    _s(45)
    return _r(4, 3), _r(4, 3), 0.6


def inputs_VonMisesNLL():
    _s(46)
    return _r(5), _r(5), _u(0.5, 4.0, 5)


# ---------------------------------------------------------------- numerical routines
def inputs_interp1d():
    _s(47)
    return _t(-0.5, 0.3, 1.1, 1.9, 2.6, 3.4), _t(0.0, 0.7, 1.5, 2.2), _r(4)


def inputs_TridiagonalSolve():
    _s(48)
    return _r(2, 4), _u(4.0, 6.0, 2, 5), _r(2, 4), _r(2, 5)


def inputs_LinearScan():
    _s(49)
    return _u(0.3, 0.95, 2, 5, 3), _r(2, 5, 3), _r(2, 3), True


def inputs_CumulativeTrapezoid():
    _s(50)
    x = (torch.arange(5, dtype=F64) + 0.3 * torch.rand(5, dtype=F64)).requires_grad_()
    return _r(2, 5), x


CONSTANT_ARGS = {"ListMLE": ["labels"], "ApproxNDCG": ["relevance"], "LennardJones": ["box"]}


def _case(name, form, kind, fault, when, second=True, shows="first"):
    c = dict(group=name, name=name, form=form, kind=kind, fault=fault, when=when, shows=shows,
             inputs="inputs_" + name, second_order_right=second, constant_args=CONSTANT_ARGS.get(name, []))
    if form == "module":
        c["make"] = globals()["make_" + name]
    return c


CASES = [
    _case("SobelMagnitude", "function", "border lost", "adjoint of the replicated border folded at the top and left only", "always", None),
    _case("SpectralIndex", "function", "constant left out", "soil constant missing in the numerator of the gradient of nir", "soil != 0 (the default is 1)"),
    _case("BilinearPointSample", "function", "swapped returns", "derivatives for x and y stacked in the wrong order", "always", None),
    _case("SRGBTransfer", "function", "wrong threshold", "threshold of the encoded domain used for linear input", "some 0.0031308 < x <= 0.04045, inverse=False"),
    _case("CharbonnierTV", "function", "wrong normaliser", "mean divides by H * W in place of numel", "reduction='mean' and more than one image"),
    _case("box_filter", "plain", "adjoint in the wrong order", "division by the counts after the window sum, not before", "radius > 0 (near the border)"),
    _case("SpectralAngleLoss", "function", "wrong normaliser", "divided by all pixels in place of the valid ones", "some valid entry False"),
    _case("cloud_fill", "plain", "mask not applied", "gradient of the scene not zeroed under the clouds", "some cloud"),
    _case("PreEmphasis", "module", "off-by-one at the border", "term of the repeated first sample missing", "always"),
    _case("PowerCompress", "function", "conjugate forgotten", "grad * z in place of grad * conj(z)", "c != 1"),
    _case("SISDR", "function", "forgotten chain-rule term", "projection coefficient treated as constant in the gradient of est", "always", None),
    _case("ForwardSumLoss", "module", "lengths ignored", "backward recursion starts at the last column, not at the last token", "some text_len < N", None),
    _case("LogMelFloor", "module", "wrong mask", "gradient passes under the floor", "some mel energy under the floor"),
    _case("StatsPooling", "function", "second output's gradient ignored", "gradient of std dropped", "std is used"),
    _case("frame_energy", "plain", "wrong off the default stride", "overlap-add with the default hop", "hop != win // 2"),
    _case("PowerSpectrum", "function", "wrong for odd sizes", "last bin halved as if n were always even", "n odd"),
    _case("BPRLoss", "function", "ignores grad_output", "regulariser's gradient not multiplied by grad", "grad != 1"),
    _case("FMInteraction", "module", "wrong power", "x in place of x^2 in the diagonal term of the factors' gradient", "inputs other than 0 and 1"),
    _case("ListMLE", "function", "permutation in place of its inverse", "gather where scatter is needed", "the sorting permutation is not its own inverse", None),
    _case("ApproxNDCG", "module", "half of a symmetric pair", "effect of s_j on the other ranks missing", "always", None),
    _case("InBatchSoftmax", "module", "forward and backward disagree on a flag", "accidental hits not removed in backward", "repeated item ids"),
    _case("embedding_bag_mean", "plain", "assignment for accumulation", "index_put without accumulate", "repeated indices"),
    _case("CrossNetLayer", "module", "transposed gradient", "W^T in place of W", "W not symmetric"),
    _case("GATAggregate", "function", "wrong index", "softmax backward sums over sources in place of targets", "always", None),
    _case("ChamferDistance", "function", "assignment for accumulation", "scatter_ in place of scatter_add_", "a point of xyz2 is nearest to several of xyz1", None),
    _case("LaplacianSmoothing", "module", "stale cache", "transposed matrix kept for any graph with as many edges", "second call with another graph of the same size", None),
    _case("segment_logsumexp", "plain", "second derivative lost", "softmax detached in backward", "second order only", shows="second"),
    _case("PillarScatter", "function", "wrong stride", "cell = y * height + x in backward", "height != width"),
    _case("GroupRelative", "function", "padding index treated as a point", "empty slots add to point 0", "some idx == -1", None),
    _case("BondAngles", "function", "part of the gradient dropped", "middle atom gets -gi in place of -(gi + gk)", "always"),
    _case("dihedral", "plain", "forgotten chain-rule term", "H.G term missing for the two middle atoms", "always", None),
    _case("CosineCutoffSmearing", "module", "wrong beyond a threshold", "derivative of the envelope not zero beyond the cutoff", "some d > cutoff"),
    _case("LennardJones", "function", "option missing in backward", "no minimum image in backward", "box given and a pair across the border", None),
    _case("KabschRMSD", "function", "wrong branch", "reflection not corrected in backward", "the best orthogonal map is a reflection", None),
    _case("BesselBasis", "module", "second derivative lost", ".data used on the distances", "second order only", shows="second"),
    _case("GroupSoftThreshold", "function", "forgotten chain-rule term", "derivative of the norm missing", "some group active"),
    _case("DequantLinear", "function", "missing factor", "scale missing in the gradient of zero", "scale != 1"),
    _case("ResidualCodebook", "module", "assignment for accumulation", "only the last level's gradient for a shared codebook", "shared=True"),
    _case("Sparse24Linear", "module", "mask not applied", "dense weight in the gradient of x", "always"),
    _case("ChannelNoiseQuant", "function", "wrong off the default dim", "gradient of step reduced for axis 1", "dim != 1"),
    _case("Sparsemax", "function", "wrong normaliser", "mean over all the classes, not over the support", "some output is 0"),
    _case("StudentTNLL", "function", "wrong size under broadcasting", "mean divides by x.numel(), not by the broadcast size", "x is broadcast and reduction='mean'"),
    _case("CRPSGaussian", "function", "second derivative lost", "intermediate z saved in place of the inputs", "second order only", shows="second"),
    _case("ZIPoissonNLL", "function", "wrong ignore value", "-1 hard-coded in backward", "missing != -1 and some entry missing", None),
    _case("kl_free_bits", "plain", "wrong mask", "free bits tested per element, not per batch mean", "free > 0"),
    _case("VonMisesNLL", "function", "mixed scalings", "i1e / i0 in place of i1e / i0e", "always, in the gradient of kappa"),
    _case("interp1d", "plain", "wrong at one border", "slope not zero right of the last knot", "some xq > xp[-1]", None),
    _case("TridiagonalSolve", "function", "swapped returns", "gradients of the two off-diagonals swapped", "always", None),
    _case("LinearScan", "function", "option half undone in backward", "gradient of a not flipped back", "reverse=True", None),
    _case("CumulativeTrapezoid", "function", "wrong direction", "cumulative sum from the front", "always"),
]
