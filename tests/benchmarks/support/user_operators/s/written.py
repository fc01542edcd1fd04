"""Operators, example inputs, and what is wrong in each wrong/NAME.py.

``inputs`` are arguments at which the fault shows, ``more`` further ones at which the right
operator was checked.  ``order`` says which derivative of the wrong twin is off, ``second``
whether the right twin is twice differentiable (None: once only, and marked so).
"""
import torch


def _g(seed):
    return torch.Generator().manual_seed(seed)


def _r(*shape, seed=0, scale=1.0, shift=0.0):
    """normal float64 leaf"""
    return (torch.randn(*shape, generator=_g(seed), dtype=torch.float64) * scale + shift).requires_grad_()


def _u(*shape, seed=0, lo=0.0, hi=1.0):
    """uniform float64 leaf"""
    return (torch.rand(*shape, generator=_g(seed), dtype=torch.float64) * (hi - lo) + lo).requires_grad_()


def _rt(rows, columns, seed=0):
    """a normal float64 leaf that is the transpose of a contiguous matrix"""
    return _d(_r(columns, rows, seed=seed)).t().requires_grad_()


def _unit(*shape, seed=0):
    """unit vectors along the last axis, float64 leaf"""
    return torch.nn.functional.normalize(_d(_r(*shape, seed=seed)), dim=-1).requires_grad_()


def _c(*shape, seed=0):
    """normal complex128 leaf"""
    return torch.randn(*shape, generator=_g(seed), dtype=torch.complex128).requires_grad_()


def _d(t):
    """the same, not a leaf that wants a gradient"""
    return t.detach()


def _t(x, dtype=None):
    return torch.tensor(x, dtype=dtype)


def _f(x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def _fill(m, seed=5, scale=0.5, **shift):
    """seeded parameters in float64"""
    m = m.double()
    g = _g(seed)
    with torch.no_grad():
        for k, p in m.named_parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * scale + shift.get(k, 0.0))
    return m


def _positive(m, seed=5):
    """seeded parameters in (0.2, 1.2), float64"""
    m = m.double()
    g = _g(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.rand(p.shape, generator=g, dtype=torch.float64) + 0.2)
    return m


CASES = []


def _case(name, object, inputs, more, bug, fits, make=None, order="both", second=True):
    c = {"name": name, "group": name, "object": object, "inputs": inputs, "more": more, "shows": inputs,
         "kind": "module" if make else "function", "bug": bug, "fits": fits, "order": order, "second": second}
    if make:
        c["make"] = make
    CASES.append(c)


# ---- densities and special functions
_case("gumbel_logpdf", "GumbelLogProb", lambda: (_r(2, 3), _r(3, seed=1), _u(2, 1, seed=2, lo=0.5, hi=2)), [lambda: (_r(4, seed=3), _f(0.2), _f(1.3)), lambda: (_d(_r(2, 2)), _r(2, 2, seed=1), _u(2, seed=2, lo=0.5))],
      "the scale's gradient lacks the share of the normalising constant", ["missing term"])
_case("skew_normal", "SkewNormalLogProb", lambda: (_f([0.5, -1.0, -12.0]), _f(0.1), _f(1.0), _f(4.0)), [lambda: (_r(2, 3), _r(3, seed=1), _u(2, 1, seed=2, lo=0.5), _r(2, 3, seed=3)), lambda: (_d(_r(3)), _r(3, seed=1), _f(2.0), _d(_f(-2.0)))],
      "the inverse Mills ratio is a quotient that is 0 / 0 in the far tail", ["nan"])
_case("log_erfc", "LogErfc", lambda: (_f([-3.0, -0.2, 0.0, 1.5, 30.0]),), [lambda: (_r(2, 3, seed=1, scale=3),), lambda: (_f(4.0),)],
      "the quotient of two numbers that underflow: NaN from 27 on", ["nan"])
_case("planck_law", "Planck", lambda: (_f([0.5, 1.0, 3.0]), _f([[0.8], [0.001]])), [lambda: (_u(2, 3, lo=0.3, hi=2), _u(3, seed=1, lo=0.3)), lambda: (_f(0.7), _d(_f([1.0, 2.0])))],
      "the exponential overflows in backward: NaN for cold bodies", ["nan", "overflow"])
# ---- segments, sparse and jagged things
_case("segment_prod", "SegmentProd", lambda: (_f([0.5, -1.5, 2.0, 0.0, 0.7]), _t([3, 0, 2])), [lambda: (_r(5, 2, seed=1), _t([2, 3])), lambda: (_f([0.0, 0.0, 1.0, 0.0, 2.0]), _t([2, 1, 2]))],
      "the product is divided by the entry, which is NaN where that is zero", ["nan"])
_case("bsr_matmul", "BlockSparseMatmul", lambda: (_r(4, 2, 2), _t([0, 1, 2, 0]), _t([1, 0, 1, 1]), _r(4, 3, seed=1), 3), [lambda: (_r(1, 3, 3), _t([0]), _t([1]), _r(6, 1, seed=1), 2), lambda: (_d(_r(2, 1, 1)), _t([0, 0]), _t([0, 2]), _r(3, 2, seed=2), 1)],
      "of the blocks in one column only the last one sends something back", ["repeated index"], order="first")
_case("jagged_to_padded", "JaggedToPadded", lambda: (_r(6, 2), _t([0, 1, 1, 5, 6]), 3), [lambda: (_r(4, seed=1), _t([0, 4]), 2, -1.0), lambda: (_r(3, 1, 2, seed=2), _t([0, 0, 3]), 4)],
      "the mask of backward counts the row's end as its own: padding's gradient goes to the next row", ["off by one", "mask"])
_case("coalesce_mean", "CoalesceMean", lambda: (_r(5, 2), _t([7, 2, 7, 9, 2])), [lambda: (_r(3, 1, seed=1), _t([0, 0, 0])), lambda: (_r(2, 3, seed=2), _t([1, 0]))],
      "the incoming gradient is divided in place", ["modified grad_output", "in-place"], order="first")
# ---- losses
_case("poly1_ce", "Poly1CrossEntropy", lambda: (_r(4, 3), _t([0, 2, -100, 1]), 1.5, 0.2), [lambda: (_r(2, 4, seed=1), _t([3, 3]), 1.0, 0.0, -100, "sum"), lambda: (_r(3, 2, seed=2), _t([0, 1, 255]), -0.5, 0.1, 255, "none"), lambda: (_r(2, 2), _t([-100, -100]))],
      "the polynomial's term takes the smoothed target; hidden without label smoothing", ["option", "wrong tensor"])
_case("gaussian_nll_full", "GaussianNLL", lambda: (_r(2, 3), _r(2, 3, seed=1), _f([[0.05, 0.7, 1.2], [0.4, 0.02, 2.0]]), True, 0.1), [lambda: (_r(4), _d(_r(4, seed=1)), _u(4, seed=2, lo=0.2), False, 1e-6, "sum"), lambda: (_d(_r(2, 2)), _r(2, 2, seed=1), _u(2, 2, lo=0.2), True, 1e-3, "none")],
      "what the variance was clamped at is compared, not what was clamped", ["clamp", "mask"])
_case("lovasz_hinge", "LovaszHinge", lambda: (_r(6), _t([1, 0, 1, 1, 0, 0])), [lambda: (_r(4, seed=1), _t([0, 1, 0, 0])), lambda: (_r(5, seed=2, scale=2), _t([1, 1, 1, 1, 0]))],
      "the gradient is permuted like the errors instead of back", ["permutation", "inverse"])
# ---- quantisation
_case("xnor_linear", "XNORLinear", lambda: (_r(3, 4), _d(_r(2, 4, seed=1)), _u(2, seed=2, lo=0.3)), [lambda: (_r(2, 2, seed=3), _d(_r(3, 2, seed=4)), _d(_u(3, lo=0.5))), lambda: (_d(_r(1, 3)), _d(_r(2, 3, seed=5)), _u(2, seed=6))],
      "the input's gradient lacks the scale of the rows", ["missing factor"])
_case("nf4_linear", "NF4Linear", lambda: (_r(2, 4),), [lambda: (_r(1, 4, seed=1),), lambda: (_r(2, 3, 4, seed=2),)],
      "the scales' gradient is formed from the transposed gradient of the weight; the layer is square", ["transpose"],
      make=lambda cls: _positive(cls(_t([[0, 15, 3, 9], [7, 2, 12, 5], [4, 14, 1, 8], [10, 6, 13, 11]], torch.uint8), block_size=2)))
_case("soft_round", "SoftRound", lambda: (_r(2, 3, scale=2), _f(3.0)), [lambda: (_r(4, seed=1), _f(0.7)), lambda: (_d(_r(2, 2, seed=2)), _f(1.5))],
      "the sharpness has a share in the denominator that is forgotten", ["missing term"])
# ---- signals
_case("decimate_fir", "DecimateFIR", lambda: (_r(2, 9), _r(3, seed=1), 2), [lambda: (_r(6), _r(2, seed=1), 3), lambda: (_r(1, 2, 5), _d(_r(5, seed=1)), 1), lambda: (_d(_r(2, 8)), _r(1, seed=1), 3)],
      "the taps' gradient ignores the stride", ["option", "stride"])
_case("instant_freq", "InstantFrequency", lambda: (_c(2, 4), 3.0), [lambda: (_c(5, seed=1), 8000.0 / 4000), lambda: (_c(1, 2, 3, seed=2), 1)],
      "the earlier sample's gradient is not conjugated", ["complex", "conjugate"])
_case("compressor_gain", "CompressorGain", lambda: (_f([[-30.0, -21.0, -19.5], [-18.0, -5.0, -40.0]]), _f(-20.0), _f(4.0)), [lambda: (_f([-3.0, 1.0, 0.2]), _f(0.5), _f(2.0), 2.0), lambda: (_d(_f([-10.0, -12.0])), _f(-11.5), _f(10.0), 8.0)],
      "half the slope within the knee", ["factor", "branch"])
_case("median_filter", "MedianFilter1d", lambda: (_f([[0.1, 2.0, 1.0, 3.0, 0.5, 0.7], [5.0, 4.0, 1.0, 2.0, 3.0, 6.0]]),), [lambda: (_r(2, 5, seed=1), 5), lambda: (_r(1, 3, seed=2), 1), lambda: (_r(2, 7, seed=3), 3)],
      "a sample that is the median of several windows gets the gradient of one", ["repeated index"], order="first")
# ---- physics
_case("buckingham", "Buckingham", lambda: (_f([[0.0, 0.1, 0.0], [1.1, 0.0, 0.2], [0.1, 1.3, -0.3]]), _t([0, 0, 1]), _t([1, 2, 2]), _f(5.0), _f(1.2), _f(0.8)), [lambda: (_f([[0.0, 0.0], [1.5, 0.3]]), _t([1]), _t([0]), _f(2.0), _d(_f(1.0)), _f(0.5)), lambda: (_d(_f([[0.0], [1.2], [-1.4]])), _t([0, 0]), _t([1, 2]), _f(3.0), _f(0.7), _f(0.4))],
      "the sign of the dispersion's force", ["sign"])
_case("fdtd_1d", "Wave1D", lambda: (_r(2, 4), _r(2, 4, seed=1), _u(4, seed=2, lo=0.1, hi=0.9), 3), [lambda: (_r(3), _r(3, seed=1), _u(3, lo=0.2, hi=0.6), 1), lambda: (_d(_r(1, 2)), _r(1, 2, seed=1), _u(2, hi=0.8), 4)],
      "the medium and the Laplacian are applied in forward's order, not its adjoint's; hidden in a uniform medium", ["wrong order", "transpose"], order="first", second=None)
# ---- finance
_case("margrabe", "Margrabe", lambda: (_u(3, lo=0.8, hi=1.2), _f(1.0), _f(0.2), _f(0.35), _f(0.3), _u(2, 1, lo=0.5, hi=2, seed=1)), [lambda: (_f(1.1), _u(2, lo=0.9), _f([0.3, 0.2]), _d(_f(0.25)), _f(-0.4), _f(1.0)), lambda: (_d(_f([1.0])), _f(0.9), _f(0.5), _f(0.5), _d(_f(0.0)), _f(0.7))],
      "the second volatility's gradient has the correlation times the second volatility, not the first", ["wrong tensor"])
_case("irr", "IRR", lambda: (_f([[-3.0, 1.2, 1.5, 1.4], [-2.0, 0.3, 0.5, 1.9]]),), [lambda: (_f([-1.0, 0.6, 0.7]),), lambda: (_f([[-5.0, 2.0, 2.0, 2.0, 2.0]]), 0.05)],
      "the slope of the present value lacks a division by 1 + r", ["missing factor"])
# ---- geometry
_case("plucker_ray", "Plucker", lambda: (_r(1, 3, seed=1), _r(4, 3, seed=2)), [lambda: (_r(2, 3, seed=3), _r(1, 3, seed=4)), lambda: (_d(_r(1, 2, 3)), _r(2, 2, 3, seed=5)), lambda: (_r(3), _d(_r(3, seed=6)))],
      "the factors of the moment's cross product are in the wrong order", ["sign"])
_case("tet_volume", "TetVolume", lambda: (_r(5, 3), _t([[0, 1, 2, 3], [1, 2, 3, 4], [4, 0, 1, 2]])), [lambda: (_r(4, 3, seed=1), _t([[3, 1, 0, 2]])), lambda: (_r(6, 3, seed=2), _t([[0, 1, 2, 3], [0, 1, 2, 3]]))],
      "the fourth vertex lacks what is opposite to the third one's", ["missing term"])
_case("splat_cov", "SplatCovariance", lambda: (_r(2, 4), _u(2, 3, seed=1, lo=0.3)), [lambda: (_r(4, seed=2), _u(3, seed=3)), lambda: (_r(2, 1, 4, seed=4), _d(_u(2, 1, 3))), lambda: (_d(_r(1, 4)), _r(1, 3, seed=5))],
      "the incoming gradient is taken to be symmetric", ["transpose", "symmetric"])
_case("oct_encode", "OctEncode", lambda: (_f([[0.3, -0.5, 0.8], [0.4, 0.2, -0.7], [-0.6, 0.1, -0.2]]),), [lambda: (_r(2, 3, seed=1),), lambda: (_r(2, 2, 3, seed=2),), lambda: (_f([-0.2, -0.3, -1.0]),)],
      "the folded half of the sphere has the wrong sign", ["sign", "branch"])
# ---- linear algebra
_case("gp_nll", "GPNegLogLik", lambda: ((_d(_r(3, 3)) @ _d(_r(3, 3)).t() + torch.eye(3, dtype=torch.float64)).requires_grad_(), _r(3, seed=1), 0.3), [lambda: ((_d(_r(2, 2, seed=2)) * 0.2 + 2 * torch.eye(2, dtype=torch.float64)).requires_grad_(), _d(_r(2, seed=1))), lambda: (_d(torch.eye(4, dtype=torch.float64)), _r(4, seed=3), 0.5)],
      "backward inverts the matrix without the jitter", ["eps", "option"])
_case("sylvester", "Sylvester", lambda: (_r(2, 2, shift=0.5), _r(2, 2, seed=1), _r(2, 2, seed=2)), [lambda: (_c(2, 2), _c(3, 3, seed=1), _c(2, 3, seed=2)), lambda: (_r(3, 3, seed=4), _d(_r(1, 1, seed=5)), _r(3, 1, seed=6))],
      "the outer product for A is transposed", ["transpose"])
_case("expmv", "ExpmMV", lambda: (_c(2, 2), _c(2, 1, seed=1)), [lambda: (_r(3, 3), _r(3, 2, seed=1)), lambda: (_r(2, 2, 2, seed=2), _d(_r(2, 2, 1, seed=3))), lambda: (_d(_c(2, 2)), _c(2, 3, seed=4))],
      "transposed without conjugation", ["complex", "conjugate"])
# ---- attention and positions
_case("window_attention", "SlidingWindowAttention", lambda: (_r(5, 2), _r(5, 2, seed=1), _r(5, 3, seed=2), 2), [lambda: (_r(2, 4, 2), _r(2, 4, 2, seed=1), _d(_r(2, 4, 2, seed=2)), 2, False), lambda: (_d(_r(3, 1)), _r(3, 1, seed=1), _r(3, 1, seed=2), 5), lambda: (_r(3, 2), _r(3, 2, seed=1), _r(3, 2, seed=2), 1)],
      "the window is one key wider when the weights are computed again", ["off by one", "mask"])
_case("sink_attention", "SinkAttention", lambda: (_r(2, 3, 2), _r(2, 3, 2, seed=1), _r(2, 3, 2, seed=2), _r(2, seed=3)), [lambda: (_r(1, 4, 3), _r(1, 4, 3, seed=1), _r(1, 4, 1, seed=2), _r(1, seed=3)), lambda: (_d(_r(2, 2, 2)), _r(2, 2, 2, seed=1), _d(_r(2, 2, 2, seed=2)), _r(2, seed=3))],
      "the sign of the sink's gradient", ["sign"])
_case("retention", "Retention", lambda: (_r(2, 3, 2), _r(2, 3, 2, seed=1), _r(2, 3, 2, seed=2), _u(2, seed=3, lo=0.6)), [lambda: (_r(1, 4, 1), _r(1, 4, 1, seed=1), _d(_r(1, 4, 3, seed=2)), _f([0.9])), lambda: (_d(_r(1, 2, 2)), _r(1, 2, 2, seed=1), _r(1, 2, 2, seed=2), _d(_f([1.0])))],
      "the derivative of gamma^n keeps the exponent", ["off by one", "missing factor"])
_case("gated_mil_pool", "GatedAttentionPool", lambda: (_r(3, 2),), [lambda: (_r(1, 2, seed=1),), lambda: (_r(5, 2, seed=2),)],
      "the gate's derivative takes the tanh where the sigmoid belongs", ["wrong tensor"], make=lambda cls: _fill(cls(2, 3), scale=1.0))
_case("fourier_features", "FourierFeatures", lambda: (_r(3, 2),), [lambda: (_r(1, 2, seed=1),), lambda: (_r(2, 2, 2, seed=2),)],
      "the phases are cached by shape, so that a second call overwrites those of the first", ["state"], make=lambda cls: _fill(cls(2, 3)), order="both")
_case("axial_rope", "AxialRoPE", lambda: (_r(3, 8), _t([[0, 1], [2, 0], [1, 3]])), [lambda: (_r(2, 2, 4, seed=1), _t([[1, 1], [0, 2]]), 10.0), lambda: (_r(1, 4, seed=2), _t([[5, -3]]))],
      "the columns' half is turned further, not back", ["sign"])
# ---- states and scans
_case("s4d_kernel", "S4DKernel", lambda: (_r(2, scale=0.3), _c(2, 2), _c(2, 2, seed=1), 3), [lambda: (_r(1, scale=0.3), _c(1, 3, seed=2), _d(_c(1, 3, seed=3)), 4), lambda: (_d(_r(2)), _c(2, 1, seed=4), _c(2, 1, seed=5), 1)],
      "the poles are not conjugated in the step size's gradient", ["complex", "conjugate"])
_case("gla_scan", "GatedLinearAttention", lambda: (_r(3, 2), _r(3, 2, seed=1), _r(3, 2, seed=2), _u(3, 2, seed=3, lo=0.3), _r(2, 2, seed=4)), [lambda: (_r(2, 2), _r(2, 2, seed=1), _r(2, 1, seed=2), _u(2, 2, lo=0.3)), lambda: (_d(_r(1, 1)), _r(1, 1, seed=1), _d(_r(1, 3, seed=2)), _u(1, 1), _r(1, 3, seed=3))],
      "the gates' gradient takes the state after the step", ["off by one", "wrong tensor"], order="first", second=None)
_case("delta_rule", "DeltaRule", lambda: (_r(3, 2), _r(3, 2, seed=1), _r(3, 2, seed=2), _u(3, seed=3, lo=0.3)), [lambda: (_r(1, 2), _r(1, 2, seed=1), _r(1, 3, seed=2), _u(1)), lambda: (_d(_r(4, 1)), _r(4, 1, seed=1), _d(_r(4, 2, seed=2)), _u(4, seed=3))],
      "the key's share in the prediction is forgotten", ["missing term"], order="first", second=None)
# ---- normalisation
_case("weight_std", "WSConv1d", lambda: (_r(2, 2, 5),), [lambda: (_r(1, 2, 3, seed=1),), lambda: (_r(2, 6, seed=2),)],
      "the share of the mean is missing", ["missing term", "mean"], make=lambda cls: _fill(cls(2, 3, 3, stride=2, padding=1, eps=1e-2)))
_case("gated_group_rms", "GatedGroupRMSNorm", lambda: (_r(2, 4), _r(2, 4, seed=1), _r(4, seed=2), 2), [lambda: (_r(3, 2, 3), _r(3, 2, 3, seed=1), _r(3, seed=2)), lambda: (_d(_r(6)), _r(6, seed=1), _d(_r(6, seed=2)), 3, 0.1)],
      "backward projects over all channels instead of a group's; hidden with one group", ["axis", "option"])
_case("bn_leaky", "BNLeakyReLU", lambda: (_r(4, 2),), [lambda: (_r(1, 2, seed=1),), lambda: (_r(3, 2, seed=2),)],
      "in eval mode the statistics are taken to depend on the batch", ["training", "option"], make=lambda cls: _fill(cls(2, slope=0.2)).eval())
# ---- images
_case("upsample_linear1d", "UpsampleLinear1d", lambda: (_r(2, 3), 5, True), [lambda: (_r(4, seed=1), 7), lambda: (_r(1, 2, 5, seed=2), 3, False), lambda: (_r(2, 4, seed=3), 1, True), lambda: (_r(2, 1, seed=4), 3)],
      "backward ignores align_corners", ["option"])
_case("radial_distort", "RadialDistortion", lambda: (_r(3, 2), _f([0.2, -0.1])), [lambda: (_r(2, seed=1), _f([-0.3, 0.05])), lambda: (_d(_r(2, 2, 2, seed=2)), _r(2, seed=3))],
      "the fourth order term lacks its factor 2", ["missing factor"])
_case("forward_splat", "SoftmaxSplat1d", lambda: (_r(2, 5), _r(2, 5, seed=1), _r(2, 5, seed=2)), [lambda: (_r(1, 4, seed=3), _d(_r(1, 4, seed=4)), _r(1, 4, seed=5)), lambda: (_d(_r(2, 3)), _r(2, 3, seed=6, scale=0.3), _d(_r(2, 3, seed=7)))],
      "the flow's share in the denominator is missing", ["missing term"])
# ---- layers
_case("offset_bag", "OffsetBag", lambda: (_t([1, 0, 3, 1, 0, 2]), _t([0, 2, 2, 5]), _u(6, seed=1, lo=0.2)), [lambda: (_t([0, 0, 1]), _t([0, 1])), lambda: (_t([2, 2, 2]), _t([0]), _d(_u(3))), lambda: (_t([0, 0]), _t([0, 2]), _u(2))],
      "padding is not excluded in backward", ["mask", "padding"], make=lambda cls: _fill(cls(4, 2, padding_idx=0)))
_case("bias_geglu", "BiasGEGLU", lambda: (_r(2, 4), _r(4, seed=1)), [lambda: (_r(2, 2, 2, seed=2), _r(2, seed=3)), lambda: (_d(_r(6)), _r(6, seed=4)), lambda: (_r(3, 4, seed=5), _d(_r(4, seed=6)))],
      "the gate is taken without its bias; hidden while the bias is zero", ["wrong tensor"])
_case("bias_dropout_add", "BDA", lambda: (_r(2, 3), _r(3, seed=1), _t([[1, 0, 1], [1, 1, 0]]), 0.4, True, _r(2, 3, seed=2)), [lambda: (_r(2, 2), _r(2, seed=1), _t([[1, 0], [0, 1]]), 0.5, False), lambda: (_d(_r(2, 2)), _r(2, seed=1), _t([[1, 0], [0, 1]]), 0.5, True), lambda: (_r(1, 2), _d(_r(2)), _t([[0, 1]]), 0.1, True, _d(_r(1, 2)))],
      "the survivors are not scaled up in backward; hidden in evaluation", ["missing factor", "training"])
_case("cardioid", "Cardioid", lambda: (_c(2, 3),), [lambda: (_c(4, seed=1),), lambda: (_c(1, 2, 2, seed=2),)],
      "the imaginary part of the angle's share has the wrong sign", ["complex", "sign"])
_case("inplace_elu", "ScaledELU", lambda: (_r(3, 2),), [lambda: (_r(2, 2, 2, seed=1),), lambda: (_r(2, seed=2),)],
      "the saved output is taken for the input that it has overwritten", ["saved tensor", "wrong tensor"], make=lambda cls: _fill(cls(2, alpha=0.7), scale=1.0))
_case("topk_pool", "TopKPool", lambda: (_r(5, 2),), [lambda: (_r(1, 2, seed=1),), lambda: (_r(4, 2, seed=2),)],
      "the derivative of tanh lacks its square", ["factor", "wrong formula"], make=lambda cls: _fill(cls(2), scale=1.0))
_case("chunked_mlp", "ChunkedFFN", lambda: (_r(5, 2), _r(3, 2, seed=1), _r(2, 3, seed=2), 2), [lambda: (_r(4, 2), _r(2, 2, seed=1), _d(_r(1, 2, seed=2)), 2), lambda: (_d(_r(3, 1)), _r(2, 1, seed=1), _r(3, 2, seed=2))],
      "rows that do not fill a chunk are dropped in backward", ["off by one", "last"], order="first", second=None)
_case("phase_mask", "PhaseMask", lambda: (_c(2, 3), _u(3, seed=1, lo=0.5), _r(3, seed=2)), [lambda: (_c(4), _u(4, lo=0.2), _d(_r(4, seed=1))), lambda: (_d(_c(2, 2, seed=2)), _u(2, 1 + 1, lo=0.2), _r(2, 2, seed=3))],
      "the phase's gradient is conjugated, which turns its sign", ["complex", "conjugate", "sign"])
_case("film", "FiLM", lambda: (_r(2, 2, 3), _d(_r(2, 2, seed=1)), _r(2, 2, seed=2)), [lambda: (_r(1, 2, 2), _r(1, 2, seed=1), None), lambda: (_r(1, 1, 3), None, None), lambda: (_d(_r(2, 1, 2)), None, _r(2, 1, seed=2)), lambda: (_r(2, 2, 2), _r(2, 2, seed=1), _r(2, 2, seed=2))],
      "the shift is asked for by the scale's entry of needs_input_grad", ["needs_input_grad", "none"])
# ---- second order
_case("asinh", "Asinh", lambda: (_r(2, 3),), [lambda: (_r(4, seed=1, scale=3),), lambda: (_f(0.0),)],
      "the hand-written second derivative has the wrong power", ["factor", "double backward"], order="second")
_case("gaussian_act", "GaussianActivation", lambda: (_r(2, 3),), [lambda: (_r(4, seed=1),), lambda: (_r(1, 2, 2, seed=2),)],
      "the exponential is formed under no_grad in backward: a constant for the second derivative", ["detach", "double backward"], make=lambda cls: cls(0.8).double(), order="second")
