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


# ---- speech and audio
_case("transducer_joint", "TransducerJoint", lambda: (_r(2, 3, 4), _r(2, 2, 4, seed=1), _t([3, 1])),
      [lambda: (_r(1, 2, 3), _r(1, 3, 3, seed=1)), lambda: (_r(2, 2, 2), _r(2, 2, 2, seed=1), _t([0, 2]))],
      "frames past enc_lens leak gradient; shows only when enc_lens is given and shorter", ["mask", "option"])
_case("mu_law", "MuLawCompand", lambda: (_f([[0.3, -0.02, 1.4], [-0.7, -1.2, 0.9]]), 255.0),
      [lambda: (_u(2, 4, lo=-0.95, hi=0.95), 15.0), lambda: (_u(3, lo=0.1, hi=0.9),)],
      "clipped samples still get a gradient", ["saturated", "mask"])
_case("stat_pool", "AttentiveStatsPool", lambda: (_r(2, 4, 3), _u(2, 4, seed=1, lo=0.1), 1e-5),
      [lambda: (_r(1, 5, 2), _d(_u(1, 5, seed=1, lo=0.1))), lambda: (_r(3, 2, 1, seed=4), _u(3, 2, seed=2, lo=0.5, hi=2), 1e-3)],
      "the scores' gradient from the second output, std, lacks the term of the normaliser (- var)",
      ["missing term", "several outputs"])
_case("snake", "Snake", lambda: (_r(2, 3, 4),), [lambda: (_r(1, 3, 2, seed=3),), lambda: (_r(3, 3, 1, seed=4),)],
      "with alpha_logscale the chain factor alpha is missing; hidden at the initial alpha of one, shows after training",
      ["option", "missing factor"], make=lambda cls: _fill(cls(3, alpha_logscale=True)))
_case("spec_compress", "PowerLawCompress", lambda: (_c(2, 3, 2), 0.3),
      [lambda: (_c(4, seed=2), 0.5, 1e-4), lambda: (_c(1, 2, seed=3), 1.0)],
      "the inner product of gradient and spectrum lacks the conjugate", ["complex", "conjugate"])

# ---- 3-D vision and rendering
_case("alpha_composite", "AlphaComposite",
      lambda: (_u(2, 4, lo=0.1, hi=2), _u(2, 4, 3, seed=1), _u(2, 4, seed=2, lo=0.1, hi=0.6), _u(3, seed=3)),
      [lambda: (_u(3, 2, lo=0.1, hi=2), _u(3, 2, 3, seed=1), _d(_u(3, 2, seed=2))),
       lambda: (_u(1, 3), _u(1, 3, 1, seed=1), _u(1, 3, seed=2), _d(_f([1.0])))],
      "the background's share is left out of sigma's gradient; shows only with a background", ["option", "missing term"])
_case("quat_rotate", "QuatRotate", lambda: (_r(2, 4), _r(2, 3, 3, seed=1)),
      [lambda: (_r(1, 4, seed=3), _r(1, 2, 3, seed=4)), lambda: (_r(3, 4, seed=5), _d(_r(3, 1, 3, seed=6)))],
      "the projection that comes from normalising the quaternion is missing", ["missing term"])
_case("hash_grid", "HashGridEncode2D", lambda: (_u(5, 2), _r(7, 2, seed=1), 4),
      [lambda: (_u(3, 2, seed=2), _r(16, 1, seed=1), 9), lambda: (_d(_u(4, 2, seed=3)), _r(5, 3, seed=1), 2)],
      "the position's gradient lacks the grid's resolution", ["missing factor"])

# ---- molecular dynamics
_case("lj_pbc", "LennardJonesEnergy",
      lambda: (_f([[0.1, 0.2, 0.0], [2.8, 0.3, 0.2], [1.2, 1.1, 0.4], [0.3, 1.6, 1.7]]), _f([4.0, 3.2, 3.4]),
               _u(6, lo=0.7, hi=1.1), _u(6, seed=1, lo=0.5, hi=1.5),
               _t([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]), 1.7),
      [lambda: (_f([[0.0, 0.0, 0.0], [1.0, 0.9, 0.2]]), _f([4.0, 4.0, 4.0]), _f([1.0]), _f([0.3]), _t([[0, 1]]), 2.5),
       lambda: (_f([[0.0, 0.0, 0.0], [1.0, 0.9, 0.2]]), _d(_f([2.1, 4.0, 4.0])), _d(_f([1.0])), _d(_f([0.3])), _t([[1, 0]]), 0.5)],
      "pairs beyond the cutoff still exert a force", ["mask", "threshold"])
_case("dihedral", "DihedralAngle", lambda: (_r(3, 4, 3),), [lambda: (_r(4, 3, seed=2),), lambda: (_r(2, 1, 4, 3, seed=3),)],
      "one of the lever terms of the middle atoms has the wrong sign", ["sign"])
_case("bessel_rbf", "BesselBasis", lambda: (_f([0.9, 2.1, 3.3, 5.4]),),
      [lambda: (_u(2, 2, lo=0.5, hi=4.8),), lambda: (_f([4.6]),)],
      "the distance's gradient lacks the derivative of the envelope", ["missing term"],
      make=lambda cls: cls(3, 5.0, 4).double())
_case("edge_length", "EdgeLength", lambda: (_r(4, 3), _t([[0, 1, 2, 0, 3], [1, 2, 3, 3, 0]])),
      [lambda: (_r(2, 3), _t([[0], [1]])), lambda: (_r(3, 2), _t([[0, 2, 0], [1, 1, 1]]))],
      "the hand-written second derivative lacks the projection off the bond", ["missing term", "double backward"],
      order="second")

# ---- weather and climate
_case("lat_weighted_mse", "LatWeightedMSE",
      lambda: (_r(1, 2, 2, 3), _r(1, 2, 2, 3, seed=1), _f([0.6, 1.4]),
               _t([[[[1, 0, 1], [1, 1, 0]], [[0, 0, 1], [1, 1, 1]]]], torch.bool)),
      [lambda: (_r(2, 1, 3, 2), _d(_r(2, 1, 3, 2, seed=1)), _d(_u(3, seed=2))), lambda: (_r(1, 1, 1, 2), _r(1, 1, 1, 2, seed=1), _f([1.3]))],
      "divides by all cells instead of the valid ones; shows only with a mask", ["factor", "mask", "option"], order="first", second=None)

# ---- recommendation
_case("qr_embedding", "QREmbedding", lambda: (_t([[1, 0, 7], [0, 3, 1]]),),
      [lambda: (_t([8, 8, 2]),), lambda: (_t([[0]]),)],
      "padding_idx is not honoured: padded positions train the tables", ["padding index", "mask"],
      make=lambda cls: _fill(cls(9, 3, 3, padding_idx=0)))

# ---- reinforcement learning
_case("vtrace", "VTraceTargets",
      lambda: (_r(4, 2, scale=0.6, shift=0.3), _r(5, 2, seed=1), _r(4, 2, seed=2), _u(4, 2, seed=3, lo=0.5), 2.0, 1.0),
      [lambda: (_r(3, 1), _r(4, 1, seed=1), _d(_r(3, 1, seed=2)), _d(_u(3, 1, seed=3))),
       lambda: (_r(1, 3), _r(2, 3, seed=1), _r(1, 3, seed=2), _u(1, 3, seed=3), 0.7, 1.3)],
      "the trace coefficient's clipping is tested against clip_rho; shows only when the two bounds differ",
      ["threshold", "option"], order="first", second=None)
_case("quantile_huber", "QuantileHuberLoss", lambda: (_r(2, 3), _r(2, 4, seed=1), _f([0.17, 0.5, 0.83]), 0.5),
      [lambda: (_r(1, 2), _d(_r(1, 3, seed=1)), _d(_f([0.25, 0.75]))), lambda: (_r(3, 1), _r(3, 2, seed=4), _f([0.5]), 2.0)],
      "backward does not divide by kappa; shows only when kappa is not 1", ["factor", "option"])
_case("running_norm", "ObsNormalizer", lambda: (_r(5, 3, scale=2, shift=1),),
      [lambda: (_r(4, 3, scale=4),), lambda: (_r(2, 3, seed=9),)],
      "the live running variance is kept for backward, so the update at the end of the very same forward changes the gradient",
      ["running state"], make=lambda cls: cls(3).double())

# ---- language models
_case("gemma_rms_norm", "RMSNormFunction", lambda: (_r(2, 3, 4), _r(4, seed=1, scale=0.3), 1e-6, True),
      [lambda: (_r(5, 2), _r(2, seed=1)), lambda: (_r(3), _u(3, seed=1, lo=0.5), 1e-3, False)],
      "the unit offset of the weight is forgotten in x's gradient; shows only with add_unit_offset=True", ["option", "missing term"])
_case("gptoss_swiglu", "ClampedSwiGLU", lambda: (_r(2, 3, 8, scale=6),),
      [lambda: (_r(4, 2), 1.0, 0.8), lambda: (_r(1, 6, seed=3, scale=3), 1.702, 2.0)],
      "the linear half is not zeroed below -limit", ["saturated", "mask"])
_case("ce_zloss", "CrossEntropyZLoss", lambda: (_r(3, 5), _t([1, 4, 0]), 0.1, 0.1),
      [lambda: (_r(4, 3), _t([2, -100, 0, 1]), 0.0, 1e-2), lambda: (_r(2, 4), _t([1, 9]), 0.2, 0.0, 9), lambda: (_r(2, 3), _t([-100, -100]))],
      "the z-loss gradient lacks the factor 2; shows only when lse_square_scale is not 0", ["factor", "option"])
_case("linear_attention", "LinearAttention", lambda: (_r(1, 2, 3, 2), _r(1, 2, 3, 2, seed=1), _r(1, 2, 3, 2, seed=2)),
      [lambda: (_r(1, 1, 2, 3), _r(1, 1, 4, 3, seed=1), _r(1, 1, 4, 1, seed=2), False), lambda: (_r(2, 1, 2, 2), _r(2, 1, 2, 2, seed=1), _r(2, 1, 2, 3, seed=2))],
      "the causal mask is not applied to the score's gradient", ["mask"])
_case("token_shift", "TokenShift", lambda: (_r(2, 3, 2), _u(2, seed=1), _r(2, 2, seed=2)),
      [lambda: (_r(1, 4, 3), _u(3, seed=1)), lambda: (_r(2, 1, 2), _u(2, seed=1), _r(2, 2, seed=2)), lambda: (_r(2, 2, 2), _u(2, seed=1), _d(_r(2, 2, seed=2)))],
      "None is returned for the carried state", ["none", "option"])
_case("lora_linear", "LoRALinear", lambda: (_r(3, 4),), [lambda: (_r(2, 2, 4),), lambda: (_r(1, 4, seed=8),)],
      "lora_a's gradient is computed only when the base weight wants one", ["none", "needs_input_grad"],
      make=lambda cls: _fill(cls(4, 3, r=2, lora_alpha=4)))

# ---- diffusion models
_case("cfg_rescale", "RescaledCFG", lambda: (_r(2, 2, 2, 2), _r(2, 2, 2, 2, seed=1), 7.5, 0.7),
      [lambda: (_r(2, 4), _r(2, 4, seed=1), 3.0), lambda: (_r(1, 2, 3, shift=1.0), _d(_r(1, 2, 3, seed=1)), 2.0, 1.0)],
      "the guided output's standard deviation is treated as constant; shows only when guidance_rescale is not 0", ["missing term", "option"])
_case("adaln", "AdaLNModulate", lambda: (_r(2, 3, 4), _r(2, 4, seed=1), _r(2, 4, seed=2)),
      [lambda: (_r(1, 2, 3), _r(1, 3, seed=1), _r(1, 3, seed=2), 1e-3), lambda: (_r(3, 1, 2), _d(_r(3, 2, seed=1)), _r(3, 2, seed=2), 1e-2)],
      "views the incoming gradient, so backward raises when it is not contiguous (e.g. after a transpose)", ["layout"], order="first")

# ---- medical imaging
_case("focal_tversky", "FocalTverskyLoss", lambda: (_u(2, 3, 2, 2, lo=0.05, hi=0.9), _t([[[0, 1], [2, 1]], [[2, 2], [0, 0]]]), 0.7, 0.3, 0.75),
      [lambda: (_u(1, 2, 3), _t([[0, 1, 1]])), lambda: (_u(2, 3, 4), _t([[0, 1, 2, 1], [1, 0, 0, 0]]), 0.2, 0.9, 1.5, 0.1)],
      "alpha and beta are swapped in backward; shows only when they differ", ["swapped", "option"])

# ---- time series and spiking
_case("kalman", "KalmanUpdate", lambda: (_r(2, 2), _f([[[2.0, 0.3], [0.3, 1.0]], [[1.5, -0.4], [-0.4, 0.8]]]), _r(2, seed=1), _f([1.0, 0.5]), _f(0.6)),
      [lambda: (_r(1, 3), (_d(torch.eye(3, dtype=torch.float64)) * 0.8 + 0.1)[None].requires_grad_(), _d(_r(1, seed=1)), _d(_f([1.0, 0.0, 1.0])), _f(0.2)),
       lambda: (_r(2, 2), _u(2, 2, 2, lo=0.5), _r(2, seed=3), _f([0.7, 1.2]), _d(_f(1.0)))],
      "the innovation variance's gradient from the second output, the covariance, is missing", ["missing term", "several outputs"])
_case("ttfs", "FirstSpikeTime", lambda: (_u(2, 4, hi=2), _u(3, 4, seed=1, lo=0.2, hi=1.0)),
      [lambda: (_u(3, 3, seed=3, hi=1.5), _r(2, 3, seed=4, shift=0.4), 0.8, 5.0), lambda: (_u(1, 2, seed=3), _f([[-0.3, -0.2], [0.5, 0.9]]))],
      "the weight's gradient lacks - t_out, the term of the denominator", ["missing term"])

# ---- graphs and sparse matrices
_case("segment_softmax", "SegmentSoftmax", lambda: (_r(6, 2), _t([0, 1, 0, 2, 1, 1]), 3),
      [lambda: (_r(3, 1), _t([3, 3, 0]), 5), lambda: (_r(2, 3), _t([0, 0]), 1)],
      "subtracts the sum over all segments instead of the edge's own", ["wrong axis", "segment"])
_case("csr_spmm", "CSRMatmul", lambda: (_r(5), _r(4, 2, seed=1), _t([0, 2, 3, 5]), _t([0, 2, 2, 0, 3])),
      [lambda: (_r(3), _d(_r(2, 3, seed=1)), _t([0, 0, 3]), _t([1, 0, 1])), lambda: (_d(_r(2)), _r(3, 1, seed=1), _t([0, 1, 2]), _t([2, 2]))],
      "the dense gradient is written by index, so a column used by several rows keeps one contribution", ["repeated index"], order="first")
_case("sddmm", "SampledDotProduct", lambda: (_r(3, 2), _r(4, 2, seed=1), _t([0, 0, 2, 1]), _t([1, 3, 3, 0])),
      [lambda: (_r(2, 3), _r(2, 3, seed=1), _t([0, 1, 1]), _t([1, 1, 1])), lambda: (_r(1, 1), _r(2, 1, seed=1), _t([0]), _t([1]))],
      "the second derivative drops the part that comes from b's gradient", ["missing term", "double backward"], order="second")

# ---- image processing
_case("bilateral", "BilateralFilter", lambda: (_u(1, 2, 3, 4), _f(0.5), 1.5, 1),
      [lambda: (_u(2, 1, 2, 3, seed=2), _d(_f(0.3))), lambda: (_u(1, 3, 3, 3, seed=3), _f(0.8), 2.0, 2)],
      "the centre pixel's gradient through the range weights is missing", ["missing term"], order="first", second=None)
_case("srgb_to_linear", "SRGBToLinear", lambda: (_u(1, 3, 2, 3, hi=0.06),), [lambda: (_u(3, 4, lo=0.1),), lambda: (_f([0.001, 0.03, 0.9]),)],
      "backward switches branches at the other direction's threshold; shows on dark pixels", ["threshold"])
_case("box_filter", "BoxFilter", lambda: (_r(2, 6), 4), [lambda: (_r(2, 5, 2), 3, 1), lambda: (_r(3, 2), 2, 0), lambda: (_r(2, 3), 5)],
      "the window is not mirrored in backward; shows only for even windows", ["off by one", "window"])
_case("homography", "WarpPoints", lambda: (_u(2, 3, 2), (torch.eye(3, dtype=torch.float64) + 0.1 * _d(_r(2, 3, 3))).requires_grad_()),
      [lambda: (_u(1, 4, 2, seed=3), (torch.eye(3, dtype=torch.float64) + 0.2 * _d(_u(1, 3, 3))).requires_grad_()),
       lambda: (_d(_u(1, 1, 2, seed=3)), (torch.eye(3, dtype=torch.float64)[None] * 1.5).requires_grad_())],
      "the homography's gradient is transposed", ["transpose"])

# ---- quantum
_case("rx_gate", "RX", lambda: (_c(2, 4), _f(0.7), 1), [lambda: (_c(3, 8, seed=2), _r(3, seed=1), 0), lambda: (_d(_c(1, 2, seed=2)), _f([1.3]), 0)],
      "the angle's gradient lacks the conjugate of the incoming gradient", ["complex", "conjugate"])

# ---- optimal transport, hyperbolic geometry
_case("soft_c_transform", "SoftCTransform", lambda: (_r(3), _u(2, 3, seed=1), _f([-1.0, -1.5, -0.7]), 0.5),
      [lambda: (_r(4), _u(4, 4, seed=1), _d(_r(4, seed=2))), lambda: (_r(2), _u(1, 2, seed=1), _r(2, seed=2), 2.0)],
      "log_b's gradient lacks eps; shows only when eps is not 1", ["factor", "option"])
_case("poincare_distance", "PoincareDistance", lambda: (_u(3, 2, lo=-0.3, hi=0.3), _u(3, 2, seed=1, lo=0.3, hi=0.65)),
      [lambda: (_u(3, lo=-0.4, hi=0.4), _u(3, seed=1, lo=-0.4, hi=0.4)), lambda: (_u(2, 2, 2, lo=-0.6, hi=0.6), _d(_u(2, 2, 2, seed=1, lo=-0.6, hi=0.6)))],
      "v's gradient uses u's conformal factor", ["wrong tensor"])
_case("expmap0", "PoincareExpMap0", lambda: (_r(3, 2),), [lambda: (_r(2, 2, 3, scale=0.02),), lambda: (_r(1, 4, seed=2, scale=2),)],
      "the curvature's gradient lacks the factor 1/2", ["factor"], make=lambda cls: cls(0.3).double(), order="first", second=None)

# ---- normalising flows
_case("affine_coupling", "MaskedAffineCoupling", lambda: (_r(2, 4), _r(2, 4, seed=1, scale=1.5), _r(2, 4, seed=2), _t([True, False, True, False])),
      [lambda: (_r(3, 2), _r(3, 2, seed=1), _r(3, 2, seed=2), _t([False, True]), 0.5), lambda: (_d(_r(1, 3)), _r(1, 3, seed=1), _d(_r(1, 3, seed=2)), _t([False, False, True]), 5.0)],
      "the second output's, logdet's, gradient skips the soft clamp's derivative", ["missing factor", "several outputs"])
_case("planar_flow", "PlanarFlow", lambda: (_r(3, 2),), [lambda: (_r(1, 2, seed=3),), lambda: (_r(4, 2, seed=4),)],
      "w's gradient lacks the term of u.w in the log determinant", ["missing term", "several outputs"], make=lambda cls: _fill(cls(2)))

# ---- statistics
_case("nb_nll", "NegativeBinomialNLL", lambda: (_t([[0, 3, 1], [5, 0, 2]]), _u(2, 3, lo=0.5, hi=4), _u(3, seed=1, lo=0.5, hi=3)),
      [lambda: (_t([[2.0, 0.0]], torch.float64), _u(1, 2, lo=0.5, hi=4), _u(1, 2, seed=1, lo=0.5, hi=3)), lambda: (_t([[1], [0], [7]]), _d(_u(3, 1, lo=0.5, hi=4)), _u(1, seed=1, lo=0.5, hi=3), 1e-6)],
      "the gradient of a dispersion shared by the cells is averaged instead of summed", ["broadcast", "reduction", "factor"])

# ---- robotics, control
_case("so3_exp", "SO3Exp", lambda: (_r(3, 3),), [lambda: (_r(2, 2, 3, scale=0.02),), lambda: (_r(3, seed=4, scale=2),), lambda: (_f([[0.0, 0.0, 0.0]]),)],
      "the generators are not transposed in the gradient of the squared term", ["transpose"], order="first", second=None)
_case("pid", "PIDRollout", lambda: (_r(2, 6, shift=0.7), _f(1.2), _f(2.0), _f(0.05), 0.1, 0.15),
      [lambda: (_r(1, 4), _f(1.2), _d(_f(0.8)), _f(0.1)), lambda: (_r(3, 1), _f([1.2]), _f(0.8), _f(0.1), 0.5, 0.2)],
      "the saturated integral state still carries gradient; shows only when i_limit is given and reached", ["saturated", "option"], order="first", second=None)

# ---- partial differential equations
_case("variable_diffusion", "VariableDiffusion", lambda: (_r(2, 5), _u(2, 5, seed=1, lo=0.2), 0.5, "periodic"),
      [lambda: (_r(1, 4), _u(1, 4, seed=1, lo=0.2)), lambda: (_r(3, 2), _d(_u(3, 2, seed=1)), 2.0, "periodic"), lambda: (_r(2, 3), _u(2, 3, seed=2), 0.7, "neumann")],
      "the face across the seam is dropped in backward also for bc='periodic'", ["boundary", "option"])

# ---- compression
_case("gdn", "GDN", lambda: (_r(2, 3, 2, 1),), [lambda: (_r(1, 3, 1, 1, seed=2),), lambda: (_r(1, 3, 2, 2, seed=3),)],
      "gamma is not transposed in x's gradient; hidden while gamma is diagonal", ["transpose"], make=lambda cls: _positive(cls(3)))

# ---- sorting, reductions
_case("sparsemax", "SparsemaxFunction", lambda: (_r(3, 4, 2), 1), [lambda: (_r(2, 5),), lambda: (_r(4, seed=3), 0), lambda: (_r(2, 3, 2, scale=0.3), -2)],
      "backward averages along the last dimension whatever dim is", ["axis", "option"])
_case("logmeanexp", "LogMeanExp", lambda: (_r(3, 4), -1, True), [lambda: (_r(2, 3, 2), 1), lambda: (_r(3, 2), -2), lambda: (_r(4), 0, True)],
      "the gradient is unsqueezed also when keepdim=True", ["option", "axis"])

# ---- convolutions
_case("dynamic_conv", "CausalDynamicConv", lambda: (_r(2, 2, 5), _r(2, 3, 5, seed=1), 2),
      [lambda: (_r(1, 3, 4), _r(1, 2, 4, seed=1)), lambda: (_r(2, 1, 3), _d(_r(2, 2, 3, seed=1)), 3)],
      "x's gradient ignores the dilation; shows only when it is not 1", ["option", "off by one"])
_case("fft_conv", "FFTLongConv", lambda: (_r(2, 2, 4), _r(2, 4, seed=1), _r(2, seed=2)),
      [lambda: (_r(1, 3, 5), _r(3, 5, seed=1), _r(3, seed=2)), lambda: (_r(2, 1, 1), _d(_r(1, 1, seed=1)), _r(1, seed=2))],
      "backward takes the filter's spectrum from a cache keyed by shape: wrong once another filter of that shape was used", ["cache"], order="first")

# ---- face recognition, unrolled optimisation, GANs, retrieval
_case("arcface", "ArcFaceLoss", lambda: (_u(3, 4, lo=-0.8, hi=0.8), _t([1, 3, 0]), 8.0, 0.4),
      [lambda: (_u(2, 3, lo=-0.5, hi=0.9, seed=2), _t([0, 0])), lambda: (_f([[-0.95, 0.2], [0.1, 0.6]]), _t([0, 1]), 2.0, 0.5)],
      "backward edits the saved probabilities in place: a second backward through the same graph is wrong", ["mutated", "saved tensor"], order="first", second=None)
_case("soft_threshold", "SoftThreshold", lambda: (_r(2, 3, 4), _f([0.3, 0.6, 0.9])), [lambda: (_r(3, 2), _f([0.2, 0.5])), lambda: (_r(1, 2, 2, 2, seed=2), _d(_f([0.0, 0.4])))],
      "backward masks the incoming gradient in place", ["modified input"], order="first")
_case("fused_bias_act", "FusedLeakyReLU", lambda: (_r(2, 3, 2), _r(3, seed=1)), [lambda: (_r(3, 2), _r(2, seed=1), 0.1, 1.0), lambda: (_r(1, 2, 2, 2), _r(2, seed=1), 0.3, 2.0)],
      "the second backward, used for gradient penalties, lacks the scale", ["factor", "double backward"], order="second")
_case("swish", "MemoryEfficientSwish", lambda: (_r(2, 4),), [lambda: (_r(3, scale=3),), lambda: (_f([[0.0, -7.0]]),)],
      "the hand-written second derivative has 1 where 2 belongs", ["factor", "double backward"], order="second")
_case("l2norm", "L2Normalize", lambda: (_r(3, 4),), [lambda: (_r(2, 3, 2), 1), lambda: (_r(2, 2, scale=0.1), -1, 0.5)],
      "the norm kept from forward has no graph, so its part of the second derivative is lost", ["detached", "double backward"], order="second")
