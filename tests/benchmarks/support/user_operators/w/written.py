"""Operators with hand-written gradients, their example inputs and what is wrong in each wrong/NAME.py.

``inputs`` are arguments at which the fault shows, ``more`` further ones at which verify.py
checks the right twin.  ``order`` is the lowest derivative of the wrong twin that is off.
``surrogate`` (straight-through estimators) makes the function whose derivative is declared.
"""

import torch


def _r(*shape, seed=0, scale=1.0, shift=0.0):
    """normal, wants a gradient"""
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=g, dtype=torch.float64) * scale + shift).requires_grad_()


def _u(*shape, lo=0.0, hi=1.0, seed=0):
    """uniform, wants a gradient"""
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=g, dtype=torch.float64) * (hi - lo) + lo).requires_grad_()


def _c(*shape, seed=0):
    """complex normal, wants a gradient"""
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.complex128).requires_grad_()


def _p(*shape, seed=0):
    """probabilities along the last axis"""
    return _r(*shape, seed=seed).detach().softmax(-1).requires_grad_()


def _spd(n, seed=0):
    a = _r(n, n, seed=seed).detach()
    return (a @ a.t() + torch.eye(n, dtype=torch.float64)).requires_grad_()


def _f(x):
    """these numbers, wants a gradient"""
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def _i(x):
    return torch.tensor(x)


def _d(t):
    """wants no gradient"""
    return t.detach()


def _mod(m, seed=9, scale=0.5, shift=0.0):
    """the module in float64 with seeded parameters"""
    m, g = m.double(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * scale + shift)
    return m


CASES = []


def _add(name, object, bug, fits, inputs, more, order="first", make=None, surrogate=None):
    row = {"name": name, "object": object, "kind": "module" if make else "function", "bug": bug,
           "fits": fits, "order": order, "inputs": inputs, "more": more}
    if make:
        row["make"] = make
    if surrogate:
        row["surrogate"] = surrogate
    CASES.append(row)


_add("swish_beta", "SwishBeta",
     "the inner derivative beta is missing from the input's gradient; hidden at the initial value 1", ["missing factor", "hidden at 1"],
     lambda: (_r(3, 4), _f(1.7)), [lambda: (_r(5, seed=1), _f([0.4])), lambda: (_d(_r(2, 2)), _f(1.0)), lambda: (_r(2, seed=2), _d(_f(-0.6)))])
_add("hard_swish", "HSwish",
     "the gradient is cut off where it turns negative, between -3 and -1.5", ["mask", "wrong comparison"],
     lambda: (_f([[-4.1, -2.2, -0.3], [0.9, 2.4, 5.0]]),), [lambda: (_r(2, 3, scale=2),), lambda: (_f(-1.9),)])
_add("mish", "Mish",
     "the tanh is formed under no_grad in backward: a constant for the second derivative", ["detach", "double backward"],
     lambda: (_r(2, 5, scale=1.5),), [lambda: (_r(3, seed=1, scale=4),), lambda: (_f(0.0),)], order="second", make=lambda cls: cls())
_add("softplus_beta", "SoftplusBeta",
     "the quotient of two exponentials is NaN once they overflow", ["nan", "overflow"],
     lambda: (_f([-2.0, 0.3, 4.0, 90.0]), 10.0, 1000.0), [lambda: (_r(3, 2),), lambda: (_r(4, scale=3), 2.0, 20.0), lambda: (_f([-40.0, 30.0]), 1.0)])
_add("prelu_channels", "ChannelPReLU",
     "the sign of the output is asked instead of the input's: wrong once a slope is not positive", ["mask", "wrong tensor"],
     lambda: (_r(2, 3, 4),), [lambda: (_r(2, 3, seed=1),), lambda: (_r(1, 3, 2, 2, seed=2),)], make=lambda cls: _mod(cls(3)))
_add("smooth_l1", "SmoothL1",
     "the quadratic part lacks its division by beta; hidden at the default 1", ["option", "missing factor"],
     lambda: (_r(3, 2), _r(3, 2, seed=1), 0.7), [lambda: (_r(4), _d(_r(4, seed=1)), 2.0, "sum"), lambda: (_d(_r(2, 3)), _r(2, 3, seed=2))])
_add("focal_binary", "FocalLoss",
     "the class weights are swapped in backward; hidden at alpha = 0.5", ["option", "wrong factor"],
     lambda: (_r(3, 4), _d(_f([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]))), [lambda: (_r(3, seed=1, scale=3), _d(_f([0.0, 1.0, 1.0])))], make=lambda cls: cls(1.5, 0.3))
_add("label_smooth_ce", "LSCrossEntropy",
     "the mean is over all rows in backward; hidden while none is ignored", ["reduction", "ignored"],
     lambda: (_r(4, 3), _i([0, -1, 2, -1]), 0.1, -1), [lambda: (_r(3, 5, seed=1), _i([4, 0, 1]), 0.0, -100), lambda: (_r(2, 2), _i([-100, -100]), 0.2, -100)])
_add("soft_dice", "SoftDice",
     "a parenthesis is misplaced: one power of the denominator too many", ["wrong factor"],
     lambda: (_u(2, 3, 2), _d(_u(2, 3, 2, seed=1).round()), 1.0), [lambda: (_u(1, 2, 2, seed=2), _u(1, 2, 2, seed=3), 1e-3)])
_add("layer_norm", "LayerNormFn",
     "backward takes the unbiased variance; close for wide rows", ["wrong factor"],
     lambda: (_r(3, 5), _r(5, seed=1), _r(5, seed=2)), [lambda: (_r(2, 2, 3), _r(3, seed=1), _d(_r(3, seed=2)), 1e-3), lambda: (_d(_r(2, 4)), _r(4), _r(4))])
_add("gemma_rms", "GemmaRMSNorm",
     "the mean is over the batch too, not row by row; right for one row", ["axis", "reduction"],
     lambda: (_r(3, 4),), [lambda: (_r(2, 2, 4, seed=1),), lambda: (_r(4, seed=2),)], make=lambda cls: _mod(cls(4)))
_add("group_norm", "GroupNorm",
     "the sums are divided by the number of channels, not of a group's entries", ["wrong factor", "size"],
     lambda: (_r(2, 4, 3),), [lambda: (_r(1, 4, 2, 2, seed=1),), lambda: (_r(2, 4, 5, seed=2),)], make=lambda cls: _mod(cls(2, 4, 1e-3)))
_add("max_pool1d", "MaxPool1d",
     "a maximum of two overlapping windows gets the gradient of one", ["repeated index"],
     lambda: (_f([[[0.1, 0.9, 0.3, 0.2, 1.5, 0.4, 0.0]]]), 3, 1), [lambda: (_r(2, 2, 6), 2, 2), lambda: (_r(1, 2, 7, seed=1), 3, 2)])
_add("avg_pool2d", "AvgPool2dFn",
     "backward always divides by k * k, as if padding counted", ["option", "padding"],
     lambda: (_r(1, 2, 4, 4), 2, 1, False), [lambda: (_r(1, 1, 3, 5, seed=1), 2, 1, True), lambda: (_r(2, 1, 4, 6, seed=2), 2, 0, False), lambda: (_r(1, 1, 5, 4, seed=3), 3, 1, False)])
_add("lp_pool", "LpPool",
     "a window of zeros (after a ReLU, say) gives 0 * inf = NaN", ["nan"],
     lambda: (_f([[0.5, -1.0, 0.2, 2.0, 0.0, 0.0]]), 3.0, 2), [lambda: (_r(2, 6, seed=1), 4.0, 3), lambda: (_r(4, seed=2), 2.0, 2)])
_add("scatter_mean", "ScatterMean",
     "the counts are gathered for the sorted index; hidden for an index that is sorted", ["permutation", "index"],
     lambda: (_r(5, 2), _i([2, 0, 2, 2, 0]), 4), [lambda: (_r(3, 1, seed=1), _i([0, 1, 1]), 2), lambda: (_r(4, 3, seed=2), _i([3, 3, 0, 3]), 4)])
_add("scatter_softmax", "ScatterSoftmax",
     "the inner product is over all edges, not one group's", ["reduction"],
     lambda: (_r(6), _i([0, 1, 0, 2, 1, 0]), 3), [lambda: (_r(4, seed=1), _i([0, 0, 0, 0]), 1), lambda: (_r(3, seed=2, scale=5), _i([1, 3, 1]), 4)])
_add("sdpa", "SDPA",
     "a scale of the caller's own is forgotten in the scores' gradient", ["option", "factor"],
     lambda: (_r(2, 3, 4), _r(2, 3, 4, seed=1), _r(2, 3, 2, seed=2), _i([[True, False, True], [True, True, False], [True, True, True]]), 1.0), [lambda: (_r(2, 3), _r(4, 3, seed=1), _r(4, 3, seed=2)), lambda: (_d(_r(1, 2, 2)), _r(1, 3, 2, seed=1), _d(_r(1, 3, 1, seed=2)), None, 0.3)])
_add("causal_softmax", "CausalSoftmax",
     "the scale is not applied to the gradient; hidden at 1", ["missing factor", "option"],
     lambda: (_r(2, 3, 3), 0.35), [lambda: (_r(4, 4, seed=1), 1.0), lambda: (_r(1, 1, 1), 2.0)])
_add("lora_linear", "LoRALinear",
     "the adapter's scale is missing in the input's gradient; hidden while B is zero", ["missing factor"],
     lambda: (_r(2, 3),), [lambda: (_r(2, 2, 3, seed=1),), lambda: (_r(3, seed=2),)], make=lambda cls: _mod(cls(3, 4)))
_add("conv1d_dilated", "Conv1dFn",
     "the kernel's gradient takes neighbouring samples, as without dilation", ["option", "index"],
     lambda: (_r(2, 2, 7), _r(3, 2, 3, seed=1), 2, 1, 2), [lambda: (_r(1, 1, 5), _r(2, 1, 2, seed=1)), lambda: (_r(1, 2, 6, seed=2), _d(_r(1, 2, 3, seed=3)), 2, 2, 1), lambda: (_d(_r(2, 1, 8)), _r(1, 1, 3, seed=3), 3, 0, 3)])
_add("lsq_quant", "LSQ",
     "where the value is clipped, the step's gradient is the output instead of the level; hidden at step 1", ["wrong factor", "branch"],
     lambda: (_r(3, 3, scale=2), _f(0.6), -2, 1), [lambda: (_r(4, seed=1), _f([0.21]), -4, 3), lambda: (_d(_r(5, seed=2)), _f(0.3), 0, 7)], surrogate=lambda x0, s0, lo, hi: lambda x, s, a, b: torch.where(x0 / s0 < lo, lo * s, torch.where(x0 / s0 > hi, hi * s, x + s * ((x0 / s0).round() - x0 / s0))))
_add("sign_ste", "BinaryActivation",
     "inputs below -1 are not clipped", ["mask", "wrong comparison"],
     lambda: (_f([[-2.3, -0.4, 0.2], [0.8, 1.6, -1.2]]),), [lambda: (_r(4, seed=1),)], make=lambda cls: cls(), surrogate=lambda m, x0: lambda x: x.clamp(-1, 1))
_add("cosine_embed", "CosineSim",
     "the second vector's gradient is divided by the first one's norm", ["copy and paste", "wrong tensor"],
     lambda: (_r(3, 2), _r(3, 2, seed=1, scale=3), 0), [lambda: (_r(2, 3), _r(2, 3, seed=1), -1), lambda: (_r(2, 2, 3), _d(_r(2, 2, 3, seed=1)), 1)])
_add("triplet_margin", "TripletLoss",
     "triplets inside the margin are taken for satisfied", ["mask", "wrong comparison"],
     lambda: (_r(4, 3), _r(4, 3, seed=1), _r(4, 3, seed=2), 3.0), [lambda: (_r(2, 2), _d(_r(2, 2, seed=1)), _r(2, 2, seed=2), 0.2), lambda: (_d(_r(1, 3)), _r(1, 3, seed=1), _r(1, 3, seed=2), 3.0)])
_add("gru_cell", "FastGRUCell",
     "the reset gate does not weigh what goes back into the hidden state's candidate", ["missing factor"],
     lambda: (_r(2, 3), _r(2, 2, seed=1)), [lambda: (_r(1, 3, seed=2), _d(_r(1, 2, seed=3)))], make=lambda cls: _mod(cls(3, 2)))
_add("l2_normalize", "L2Normalize",
     "short vectors are divided by eps in forward, but not in backward", ["clamp", "branch"],
     lambda: (_f([[0.6, -1.0, 0.4], [0.01, 0.02, -0.03], [0.0, 0.0, 0.0]]), 0.1), [lambda: (_r(2, 4, seed=1), 1e-12), lambda: (_r(2, 2, 2, seed=2), 1e-6)])
_add("logsumexp_dim", "LogSumExp",
     "the gradient is expanded along the last axis whatever dim is; runs for square input", ["axis", "square"],
     lambda: (_r(3, 3), 0), [lambda: (_r(2, 3, seed=1), 1, True), lambda: (_r(2, 3, 2, seed=2), -2), lambda: (_r(4), 0)])
_add("entropy", "CategoricalEntropy",
     "the constant is not divided by the logarithm of the base; right for base e", ["option", "wrong factor"],
     lambda: (_p(3, 4), 2.0), [lambda: (_p(5, seed=1), 2.718281828459045), lambda: (_p(1, 2, 3, seed=2), 10)])
_add("temp_softmax", "TemperedSoftmax",
     "one power of the temperature is missing in its own gradient", ["missing factor"],
     lambda: (_r(3, 4), _f([[0.5], [2.0], [1.3]])), [lambda: (_r(2, 3, seed=1), _f(0.8)), lambda: (_d(_r(4)), _f([1.5])), lambda: (_r(2, 2, 3), _d(_f(3.0))), lambda: (_r(3), _f([[0.7], [1.9]]))])
_add("quat_rotate", "QuatRotate",
     "the factors of a cross product are in the wrong order", ["sign"],
     lambda: (_r(3, 4), _r(3, 3, seed=1)), [lambda: (_d(_r(1, 4)), _r(1, 3, seed=1)), lambda: (_r(2, 4, seed=2), _d(_r(2, 3, seed=3)))])
_add("so3_exp", "SO3Exp",
     "K is not transposed in the quadratic term; vanishes near the identity", ["transpose", "sign"],
     lambda: (_f([[0.4, -1.1, 0.7], [0.0, 0.0, 0.0]]),), [lambda: (_r(3, seed=1),), lambda: (_r(2, 1, 3, seed=2),)])
_add("lennard_jones", "LJEnergy",
     "an atom with several neighbours keeps the force of one of them; right for a dimer", ["repeated index"],
     lambda: (_f([[0.0, 0.0, 0.0], [1.1, 0.1, 0.0], [0.2, 1.2, 0.3]]), _i([0, 0, 1]), _i([1, 2, 2]), 1.0, 1.0, 2.5), [lambda: (_f([[0.0, 0.0], [1.3, 0.2], [4.0, 0.0]]), _i([1, 2]), _i([0, 0]), 0.5, 1.1, 3.0)])
_add("upwind_step", "ImplicitUpwind",
     "the adjoint system is not transposed", ["transpose", "adjoint"],
     lambda: (_r(4), _u(4, seed=1, lo=0.3, hi=1.5), 0.8), [lambda: (_r(5, seed=2), _d(_u(5, seed=3, lo=0.2)), 2.0), lambda: (_d(_r(3)), _u(3, lo=0.5), 0.1)])
_add("kepler", "KeplerE",
     "the output is detached and kept as an attribute, not by save_for_backward: a constant for the second derivative", ["saved tensor", "double backward", "detach"],
     lambda: (_r(4), _f([0.5, 0.1, 0.7, 0.3])), [lambda: (_r(2, 3, seed=1), _f(0.4)), lambda: (_d(_r(2)), _f([0.0, 0.2])), lambda: (_r(3), _d(_f(0.6))), lambda: (_f(0.8), _f([0.1, 0.6]))], order="second")
_add("von_mises", "VonMisesNLL",
     "the ratio of Bessel functions is inf / inf for a high concentration", ["nan", "overflow"],
     lambda: (_r(4, scale=0.1), _f(0.05), _f(900.0)), [lambda: (_r(5, seed=1), _f(0.3), _f(2.0)), lambda: (_d(_r(2)), _f(-1.0), _d(_f(0.7)))])
_add("gauss_copula", "GaussianCopula",
     "the second quantile's derivative is that of the first", ["copy and paste", "wrong tensor"],
     lambda: (_u(4, lo=0.1, hi=0.9), _u(4, seed=1, lo=0.1, hi=0.9), _u(4, seed=2, lo=-0.8, hi=0.8)), [lambda: (_d(_u(2, 2, lo=0.2, hi=0.8)), _u(2, 2, seed=3, lo=0.2, hi=0.8), _d(_u(2, 2, seed=2, lo=-0.5, hi=0.5)))])
_add("student_t", "StudentTLogProb",
     "the degrees of freedom's gradient lacks the normaliser's -1 / df", ["missing term"],
     lambda: (_r(5), _f(3.0), _f(0.2), _f(0.8)), [lambda: (_r(2, 3, seed=1), _u(3, lo=1, hi=5), _r(2, 1, seed=2), _u(3, lo=0.5, seed=3)), lambda: (_d(_r(3)), _d(_f(4.0)), _f(0.0), _f([1.5]))])
_add("neg_binomial", "NegBinomialLogProb",
     "the dispersion's gradient has the log probability of a success, not of a failure", ["sign"],
     lambda: (_d(_f([0.0, 3.0, 1.0, 7.0])), _u(4, lo=0.4, hi=3), _r(4, seed=1)), [lambda: (_d(_f([[2.0, 0.0]])), _d(_u(1, 2, lo=0.5)), _r(1, 2)), lambda: (_d(_f([5.0])), _u(1, lo=1, hi=9), _d(_f([0.3])))])
_add("simplex_proj", "SimplexProjection",
     "the mean is over all entries, not over the support; right for dense solutions", ["reduction", "wrong factor"],
     lambda: (_f([[0.9, 0.4, -0.5, -1.2], [2.0, 1.5, 1.3, -3.0]]),), [lambda: (_r(3, 3, seed=1), 2.0), lambda: (_r(1, 5, seed=2, scale=0.05),)])
_add("crf_logz", "CRFLogPartition",
     "the pair marginals lack the emission of the second one", ["missing term"],
     lambda: (_r(4, 3), _r(3, 3, seed=1)), [lambda: (_r(1, 2), _r(2, 2, seed=1)), lambda: (_d(_r(3, 2, seed=2)), _r(2, 2, seed=3))])
_add("soft_rank", "SoftRank",
     "a value's share in the ranks of the others is forgotten", ["missing term"],
     lambda: (_r(5), 0.7), [lambda: (_r(3, seed=1),), lambda: (_r(2, seed=2), 2.0)])
_add("bs_call", "BSCall",
     "theta lacks the dividends' term; hidden at q = 0", ["missing term", "option"],
     lambda: (_u(3, lo=0.8, hi=1.2), _u(3, seed=1, lo=0.8, hi=1.2), _u(3, seed=2, lo=0.2, hi=0.6), _u(3, seed=3, lo=0.5, hi=2), 0.03, 0.08), [lambda: (_u(2, lo=0.9), _d(_u(2, lo=0.9)), _u(2, lo=0.3), _u(2, lo=0.5, seed=4), 0.01, 0.0)])
_add("cvar", "CVaR",
     "the share of a loss is that of the level 0.25, whatever alpha is", ["hard-coded", "option"],
     lambda: (_r(8), 0.5), [lambda: (_r(4, seed=1), 0.25), lambda: (_r(5, seed=2), 0.05)])
_add("bilinear_points", "SamplePoints",
     "corners outside of the image count in the coordinates' gradient as if the border were repeated", ["mask", "border"],
     lambda: (_r(2, 3, 4), _f([[0.3, 1.6], [-0.4, 0.7], [2.2, 2.5]])), [lambda: (_r(1, 2, 2), _f([[0.5, 0.4]])), lambda: (_d(_r(3, 2, 3)), _f([[1.1, 0.2], [5.5, 0.3]])), lambda: (_r(1, 3, 2, seed=1), _d(_f([[0.2, 0.9], [0.2, 0.9]])))])
_add("srgb_decode", "LinearizeImage",
     "the inner derivative 1 / 1.055 is missing", ["missing factor"],
     lambda: (_u(3, 2, 2),), [lambda: (_f([0.0, 0.02, 0.5, 1.0]),)], make=lambda cls: _mod(cls()))
_add("csr_spmv", "CSRMatVec",
     "row and column are swapped in the values' gradient; runs for a square matrix", ["transpose", "index", "square"],
     lambda: (_i([0, 2, 2, 4]), _i([0, 2, 1, 2]), _r(4), _r(3, seed=1)), [lambda: (_i([0, 1, 3]), _i([3, 0, 0]), _r(3), _r(4, seed=1)), lambda: (_i([0, 0, 2]), _i([1, 0]), _d(_r(2)), _r(2, seed=2))])
_add("mu_law", "MuLawCompress",
     "the absolute value is missing: wrong for negative samples", ["sign", "branch"],
     lambda: (_f([0.5, -0.3, 0.02, -0.9]),), [lambda: (_u(2, 3, lo=-1),)], make=lambda cls: cls(bits=3))
_add("gelu_tanh", "FastGELU",
     "the intermediate tanh is saved, which is a constant for the second derivative", ["saved tensor", "double backward"],
     lambda: (_r(2, 4),), [lambda: (_r(3, seed=1, scale=3),), lambda: (_f(0.0),)], order="second")
_add("silu_double", "Silu",
     "the hand-written second derivative has 1 - s for 1 - 2 s", ["wrong formula", "double backward"],
     lambda: (_r(2, 3),), [lambda: (_r(4, seed=1, scale=2),)], order="second")
_add("relu_n", "ClippedReLU",
     "the incoming gradient is zeroed in place, which others may still need", ["modified grad_output", "in-place"],
     lambda: (_f([[-1.0, 0.5, 7.0], [2.0, -0.2, 5.5]]), 6), [lambda: (_r(4, seed=1), 0.5)])
_add("softmax_loss", "SoftmaxLoss",
     "the kept probabilities are changed in place: a second backward through the graph subtracts again", ["saved tensor", "in-place", "twice"],
     lambda: (_r(3, 4), _i([1, 3, 0])), [lambda: (_r(1, 2, seed=1, scale=4), _i([1])), lambda: (_r(4, 3, seed=2), _i([2, 2, 0, 1]))])
_add("frame_signal", "FrameSignal",
     "the incoming gradient's memory is read as if it were contiguous", ["non-contiguous", "stride"],
     lambda: (_r(8), 4, 2), [lambda: (_r(7, seed=1), 3, 1), lambda: (_r(9, seed=2), 2, 3)])
_add("weighted_mse", "WeightedMSE",
     "the weights get no gradient although they may be learned", ["None", "missing gradient"],
     lambda: (_r(2, 3), _r(2, 3, seed=1), _u(2, 3, seed=2, lo=0.2)), [lambda: (_r(4), _d(_r(4, seed=1))), lambda: (_d(_r(3)), _r(3, seed=1), _d(_u(3, lo=0.1)))])
_add("qat_linear", "QATLinear",
     "the range of the channel with the greatest scale is applied to all of them; hidden for equal scales", ["mask", "broadcast"],
     lambda: (_r(2, 3),), [lambda: (_r(1, 3, seed=1),), lambda: (_r(2, 2, 3, seed=2),)], make=lambda cls: _mod(cls(3, 2, torch.tensor([0.05, 0.4]), 3)), surrogate=lambda m, x0: (lambda w0, s: lambda x: x @ torch.where(w0.abs() <= 3 * s, m.weight + (w0 / s).round() * s - w0, 3 * s * w0.sign()).t() + m.bias)(m.weight.detach().clone(), m.scale[:, None]))
_add("running_scale", "RunningRMSScale",
     "the buffer is kept without a copy, and the layer updates it in place before backward reads it", ["saved tensor", "in-place", "state"],
     lambda: (_r(4, 3, scale=3),), [lambda: (_r(2, 2, 3, seed=1),), lambda: (_r(3, seed=2),)], make=lambda cls: _mod(cls(3, momentum=0.3)))
_add("mod_relu", "ModReLU",
     "the incoming gradient is not conjugated; hidden for real features", ["complex", "conjugate"],
     lambda: (_c(3, 2),), [lambda: (_c(2, seed=1),), lambda: (_c(2, 2, 2, seed=2),)], make=lambda cls: _mod(cls(2)))
_add("chamfer", "Chamfer",
     "what goes back to the second set is added with the other direction's index; runs for sets of one size", ["index", "copy and paste"],
     lambda: (_r(4, 2), _r(4, 2, seed=1)), [lambda: (_r(2, 3), _r(5, 3, seed=1)), lambda: (_d(_r(3, 2)), _r(1, 2, seed=1))])
_add("bifpn_fusion", "FastFusion",
     "the ReLU of the weights is forgotten; hidden while all are positive", ["mask", "missing factor"],
     lambda: (_f([0.8, -0.3, 1.4]), _r(2, 2), _r(2, 2, seed=1), _r(2, 2, seed=2)), [lambda: (_f([0.5, 0.2]), _r(3), _d(_r(3, seed=1))), lambda: (_d(_f([1.0])), _r(2, 1, 2))])
_add("ppo_clip", "PPOClipLoss",
     "ratios outside of the range are cut off on both sides, whatever the sign of the advantage", ["mask", "clamp"],
     lambda: (_f([0.1, -0.5, 0.6, -0.7]), _d(_f([0.0, 0.0, 0.1, 0.0])), _d(_f([1.0, 0.8, -1.2, -0.6]))), [lambda: (_r(5), _d(_r(5, seed=1)), _d(_r(5, seed=2)), 0.3), lambda: (_r(2, 3, scale=0.1), _d(_r(2, 3, scale=0.1, seed=1)), _d(_r(2, 3, seed=2)), 0.1)])
