"""The 50 cases. Tensors are float64 (complex128 where complex).

"inputs" names a zero-argument function here that returns the args of apply() / forward();
"make" (modules only) takes the class (from right/ or wrong/) and builds the module in float64.
"shows": "first"  the first derivative (or the call itself) is wrong; double backward is at most wrong in consequence;
         "second" the first derivative is right, only the second is wrong or lost;
         "both"   wrong or raising in its own right at each order.
"second_order_right" is about the right version: True, False (second derivative silently lost), or
None (declared @once_differentiable).
"""
import torch

F64 = torch.float64


def rn(*shape, grad=True, scale=1.0, shift=0.0):
    return (torch.randn(*shape, dtype=F64) * scale + shift).requires_grad_(grad)


# --------------------------------------------------------------- conv
def inputs_DepthwiseConv1d():
    torch.manual_seed(0)
    return rn(2, 3, 7), rn(3, 3), 2, 1


def inputs_Conv2dUnfold():
    torch.manual_seed(1)
    # weight frozen, bias trained
    return rn(2, 2, 5, 4), rn(3, 2, 3, 2, grad=False), rn(3), 2, 1


def inputs_LPPool1d():
    torch.manual_seed(2)
    return rn(2, 7), 3.0, 3, 2


def inputs_MaxPool1dIdx():
    torch.manual_seed(3)
    x = torch.randperm(2 * 2 * 7).to(F64).view(2, 2, 7) / 5
    return x.requires_grad_(), 3, 1


def inputs_OverlapAdd():
    torch.manual_seed(4)
    return rn(2, 3, 4), (torch.rand(4, dtype=F64) + 0.2).requires_grad_(), 2


def inputs_LinearUpsample1d():
    torch.manual_seed(5)
    return rn(2, 2, 5), 3, True


def inputs_BilinearSample():
    torch.manual_seed(6)
    img = torch.randn(3, 5, 4, dtype=F64).transpose(1, 2).requires_grad_()  # stored as (C, W, H)
    pts = torch.tensor([[0.3, 0.6], [2.7, 1.4], [3.5, 2.2], [2.6, 1.8]], dtype=F64).requires_grad_()
    return img, pts


def inputs_ReflectPad1d():
    torch.manual_seed(7)
    return rn(2, 3, 6), [2, 3]


def inputs_BlurPool():
    torch.manual_seed(8)
    return (rn(2, 2, 5, 6),)


def inputs_FFTConv1d():
    torch.manual_seed(9)
    return rn(2, 3, 6), rn(3, 4)  # 6 + 4 - 1 is odd


# --------------------------------------------------------------- attn
def inputs_MaskedSoftmax():
    torch.manual_seed(20)
    return rn(2, 4, 3), torch.rand(2, 4, 3) > 0.3, 1


def inputs_BiasedAttention():
    torch.manual_seed(21)
    return rn(2, 3, 4), rn(2, 5, 4), rn(2, 5, 3), rn(3, 5), 0.7


def inputs_Sparsemax():
    torch.manual_seed(22)
    return rn(3, 5, scale=1.5), -1


def inputs_LearnedRotary():
    torch.manual_seed(23)
    return rn(2, 4, 6), (torch.rand(3, dtype=F64) + 0.1).requires_grad_(), 1


def inputs_CausalLinearAttention():
    torch.manual_seed(24)
    return rn(2, 4, 3), rn(2, 4, 3), rn(2, 4, 2)


def inputs_MaskedMeanPool():
    torch.manual_seed(25)
    mask = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0]], dtype=torch.bool)
    return rn(2, 4, 3), mask


def inputs_ComplexRotary():
    torch.manual_seed(26)
    z = torch.randn(2, 3, 2, 2, dtype=torch.complex128).requires_grad_()
    return z, rn(3, 2)


def inputs_TokenDrop():
    torch.manual_seed(27)
    keep = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0]], dtype=torch.bool)
    return rn(2, 4, 3), keep, 0.3, False


def inputs_RelPosBias():
    torch.manual_seed(28)
    return (rn(3, 2, 4, 5),)


def make_RelPosBias(cls):
    torch.manual_seed(128)
    return cls(2, max_dist=2).double()


def inputs_TopKGate():
    torch.manual_seed(29)
    return rn(3, 5), 3


# --------------------------------------------------------------- seq
def inputs_LinearRecurrence():
    torch.manual_seed(40)
    return torch.rand(2, 5, 3, dtype=F64).requires_grad_(), rn(2, 5, 3), rn(2, 3)


def inputs_CumProd():
    torch.manual_seed(41)
    x = torch.randn(2, 5, dtype=F64)
    x[0, 2] = 0.0
    return (x.requires_grad_(),)


def inputs_LogCumSumExp():
    torch.manual_seed(42)
    x = torch.randn(2, 5, dtype=F64)
    x[1, 3:] += 900.0
    return (x.requires_grad_(),)


def inputs_SegmentSoftmax():
    torch.manual_seed(43)
    return rn(7, 2), torch.tensor([0, 2, 0, 1, 2, 2, 0]), 4


def inputs_SequenceCE():
    torch.manual_seed(44)
    return rn(3, 4, 5), torch.randint(0, 5, (3, 4)), torch.tensor([4, 2, 1]), "mean"


def inputs_ReverseByLength():
    torch.manual_seed(45)
    return rn(3, 5, 2), torch.tensor([5, 3, 1])


def inputs_EMAFilter():
    torch.manual_seed(46)
    return (rn(2, 5, 3),)


def inputs_LSTMPointwise():
    torch.manual_seed(47)
    return rn(2, 12), rn(2, 3)


def inputs_HMMLogLik():
    torch.manual_seed(48)
    init = torch.log_softmax(torch.randn(3, dtype=F64), 0).requires_grad_()
    trans = torch.log_softmax(torch.randn(3, 3, dtype=F64), 1).requires_grad_()
    return init, trans, rn(2, 4, 3)


def inputs_SelectiveScan():
    torch.manual_seed(49)
    dt = (torch.rand(2, 4, 3, dtype=F64) + 0.1).requires_grad_()
    A = -(torch.rand(3, 2, dtype=F64) + 0.2)
    return rn(2, 4, 3), dt, A.requires_grad_(), rn(2, 4, 2), rn(2, 4, 2)


# --------------------------------------------------------------- quant
def inputs_FakeQuantLSQ():
    torch.manual_seed(60)
    return rn(4, 6), torch.tensor([0.3], dtype=F64, requires_grad=True), -4, 3


def inputs_SoftRound():
    torch.manual_seed(61)
    return rn(3, 4, scale=2.0), 3.0


def inputs_ClampTensor():
    torch.manual_seed(62)
    lo = -torch.rand(3, 1, dtype=F64)
    hi = torch.rand(3, 1, dtype=F64) * 0.5 + 0.1
    return rn(2, 3, 5), lo.requires_grad_(), hi.requires_grad_()


def inputs_PACT():
    torch.manual_seed(63)
    return (rn(2, 3, 3, scale=2.0),)  # as many steps as channels


def inputs_NormClip():
    torch.manual_seed(64)
    return rn(4, 3), 1.2


def inputs_SoftThreshold():
    torch.manual_seed(65)
    return rn(3, 4), (torch.rand(4, dtype=F64) * 0.8 + 0.1).requires_grad_()


def inputs_Winsorize():
    torch.manual_seed(66)
    return rn(3, 7), 2


def inputs_MuLaw():
    torch.manual_seed(67)
    return rn(3, 4), 7.0


def inputs_SoftCap():
    torch.manual_seed(68)
    return rn(3, 4, scale=3.0), 5.0


def inputs_VQLoss():
    torch.manual_seed(69)
    return rn(7, 2), rn(3, 2)


# --------------------------------------------------------------- sim
def inputs_SelfDistance():
    torch.manual_seed(80)
    return (rn(4, 3),)


def inputs_CosineSim():
    torch.manual_seed(81)
    return rn(3, 4), rn(3, 4)


def inputs_RBFKernel():
    torch.manual_seed(82)
    # coordinates far from the origin, as projected map coordinates are
    return rn(4, 2, shift=4e5), rn(3, 2, shift=4e5), torch.tensor(0.4, dtype=F64, requires_grad=True)


def inputs_InfoNCE():
    torch.manual_seed(83)
    return rn(4, 3), rn(4, 3), 0.5


def inputs_TripletHinge():
    torch.manual_seed(84)
    return rn(5, 3), rn(5, 3), rn(5, 3), 0.8, "mean"


def inputs_SupCon():
    torch.manual_seed(85)
    return rn(6, 3), torch.tensor([0, 1, 0, 2, 1, 0]), 0.7


def inputs_Mahalanobis():
    torch.manual_seed(86)
    a = torch.randn(3, 3, dtype=F64)
    L = torch.linalg.cholesky(a @ a.t() + 2 * torch.eye(3, dtype=F64))
    return rn(4, 3), rn(3), L.requires_grad_()


def inputs_ArcMargin():
    torch.manual_seed(87)
    return rn(3, 4), torch.tensor([2, 0, 4])


def make_ArcMargin(cls):
    torch.manual_seed(187)
    return cls(4, 5, s=4.0).double()


def inputs_SoftDTW():
    torch.manual_seed(88)
    return torch.rand(4, 5, dtype=F64).requires_grad_(), 0.3


def inputs_Wasserstein1d():
    torch.manual_seed(89)
    return rn(2, 6), rn(2, 6), 2


def _c(group, name, kind, fault, shows, when, second=True, **more):
    return dict(group=group, name=name, kind=kind, fault=fault, shows=shows, when=when,
                inputs="inputs_" + name, second_order_right=second, **more)


CASES = [
    _c("conv", "DepthwiseConv1d", "off-by-one / slice", "gradient of the padded input is cropped from 0, not from padding", "first", "padding > 0"),
    _c("conv", "Conv2dUnfold", "needs_input_grad", "bias gradient is guarded by needs_input_grad of the weight", "first", "weight frozen and bias trained (None for bias), or bias=None and weight trained (raises)"),
    _c("conv", "LPPool1d", "lost off the default option", "|x|^(p-1) sign(x) written as x, right for p = 2 only", "first", "p != 2"),
    _c("conv", "MaxPool1dIdx", "assignment for accumulation", "scatter_ for scatter_add_", "first", "stride < kernel_size, one maximum in several windows"),
    _c("conv", "OverlapAdd", "lost off the default option", "gradient of frames not multiplied by window", "first", "window given"),
    _c("conv", "LinearUpsample1d", "lost off the default option", "backward takes the taps of align_corners=False", "first", "align_corners=True"),
    _c("conv", "BilinearSample", "layout assumption", "zeros_like keeps the permuted strides, reshape then copies and the scattered gradient is lost", "first", "img with H and W transposed in memory (forward is right, gradient of img all zero)"),
    _c("conv", "ReflectPad1d", "off-by-one / slice", "left reflection is added at 0:left, not 1:left+1", "first", "left > 0"),
    _c("conv", "BlurPool", "off-by-one / slice", "the right edge of the replicate padding folds in the left border column", "first", "always", make=lambda cls: cls(stride=2).double()),
    _c("conv", "FFTConv1d", "size assumption", "irfft without n in the kernel gradient", "first", "length + kernel - 1 odd"),

    _c("attn", "MaskedSoftmax", "lost off the default option", "inner product over -1, not over dim", "first", "dim is not the last"),
    _c("attn", "BiasedAttention", "second derivative", "recomputed attention weights are detached", "second", "always"),
    _c("attn", "Sparsemax", "wrong normaliser", "mean over all entries, not over the support", "first", "some entry outside the support"),
    _c("attn", "LearnedRotary", "missing chain-rule term", "frequency gradient lacks the factor position", "first", "always"),
    _c("attn", "CausalLinearAttention", "off-by-one / slice", "reverse cumulative sum leaves out the present step", "first", "always"),
    _c("attn", "MaskedMeanPool", "mask not applied", "masked tokens get a gradient", "first", "some token masked"),
    _c("attn", "ComplexRotary", "conjugate forgotten", "grad_z multiplied by rot, not its conjugate", "first", "always (theta != 0)"),
    _c("attn", "TokenDrop", "training / eval branch", "backward drops and rescales in eval too", "first", "training=False"),
    _c("attn", "RelPosBias", "wrong normaliser", "table gradient averaged over the batch, not summed", "first", "batch > 1", make=make_RelPosBias),
    _c("attn", "TopKGate", "missing chain-rule term", "only the diagonal of the softmax Jacobian", "first", "k > 1"),

    _c("seq", "LinearRecurrence", "off-by-one / slice", "gradient of a uses the states shifted the wrong way", "first", "T > 1 (off for t >= 1)"),
    _c("seq", "CumProd", "NaN at zero", "prefix product found by dividing by x", "first", "some x is 0"),
    _c("seq", "LogCumSumExp", "NaN at zero", "masking after exp: inf * 0", "first", "x rises by more than about 710 along the axis"),
    _c("seq", "SegmentSoftmax", "assignment for accumulation", "index_put without accumulate", "first", "repeated segment ids"),
    _c("seq", "SequenceCE", "wrong normaliser", "divided by B * T, not by the number of valid steps", "first", "reduction='mean' and some length < T"),
    _c("seq", "ReverseByLength", "mask not applied", "backward flips the whole time axis, lengths ignored", "first", "some length < T"),
    _c("seq", "EMAFilter", "missing chain-rule term", "the first sample is treated as weighted by alpha though the filter starts at it", "first", "always (alpha != 1)", make=lambda cls: cls(3, init=0.4).double()),
    _c("seq", "LSTMPointwise", "second output ignored", "gradient coming in through the new cell state is dropped", "first", "c_new is used", second=False),
    _c("seq", "HMMLogLik", "transposed gradient", "transition gradient is [to, from]", "first", "always", second=None),
    _c("seq", "SelectiveScan", "missing chain-rule term", "gradient of dt lacks the part through the decay", "first", "T > 1", second=False),

    _c("quant", "FakeQuantLSQ", "mask not applied", "x gets a gradient outside [qmin, qmax], against the declared surrogate", "first", "some x / step outside the range", second=None, surrogate=True),
    _c("quant", "SoftRound", "second derivative", "argument of tanh is detached in backward", "second", "always"),
    _c("quant", "ClampTensor", "gradients swapped", "gradients of lo and hi swapped", "first", "always (some x clipped)"),
    _c("quant", "PACT", "missing sum over broadcast axes", "alpha gradient summed over the batch only", "first", "always; raises unless length == channels, where it is silently wrong", make=lambda cls: cls(3, init=1.0).double()),
    _c("quant", "NormClip", "detached part", "the norm is taken as a constant", "first", "some row longer than max_norm"),
    _c("quant", "SoftThreshold", "mutation in backward", "grad_output is zeroed in place", "both", "some |x| <= lam (second order: always raises)"),
    _c("quant", "Winsorize", "wrong comparison", "upper clip mask compares with the lower bound (copied line)", "first", "k > 0"),
    _c("quant", "MuLaw", "wrong constant", "log(mu) for log1p(mu)", "first", "always; small at the default mu=255 (7e-4), plain at small mu"),
    _c("quant", "SoftCap", "second derivative", "double backward lacks 1/cap", "second", "cap != 1"),
    _c("quant", "VQLoss", "assignment for accumulation", "index_copy_ for index_add_", "first", "one code is nearest to several rows"),

    _c("sim", "SelfDistance", "NaN at zero", "0/0 on the diagonal", "first", "always"),
    _c("sim", "CosineSim", "mutation in backward", "b is normalised in place in backward", "both", "always (the input b changes; a second backward raises)"),
    _c("sim", "RBFKernel", "float32 inside", "saved tensors turned to float32 in backward", "first", "float64 inputs; large error far from the origin"),
    _c("sim", "InfoNCE", "ignores grad_output", "grad_output left out", "first", "incoming gradient is not 1", second=False),
    _c("sim", "TripletHinge", "wrong sign", "gradient of neg has the wrong sign", "first", "always (some triplet active)"),
    _c("sim", "SupCon", "missing chain-rule term", "only the anchor side of the similarity matrix is differentiated", "first", "always"),
    _c("sim", "Mahalanobis", "None for a needed gradient", "no gradient for L", "first", "L needs a gradient"),
    _c("sim", "ArcMargin", "wrong number of gradients", "3 gradients for 4 inputs", "both", "always", make=make_ArcMargin),
    _c("sim", "SoftDTW", "lost off the default option", "diagonal weight lacks 1/gamma", "first", "gamma != 1", second=None),
    _c("sim", "Wasserstein1d", "permutation not inverted", "gather for scatter when undoing the sort of u", "first", "the sort order is not its own inverse"),
]
