"""What is in right/ and wrong/: the object of each file, inputs, and what is wrong in the latter.

``inputs`` are what a careful user gives, ``more`` others at which the right operator was checked,
``order`` the lowest derivative of the wrong one that is off.  ``like`` is a function that has the
gradient that a straight-through estimator declares; ``hidden`` marks a fault that one plain
backward does not show.
"""
import torch
import torch.nn.functional as F


def _gen(seed):
    return torch.Generator().manual_seed(seed)


def n(*shape, seed=0, scale=1.0, shift=0.0):
    return (torch.randn(*shape, generator=_gen(seed), dtype=torch.float64) * scale + shift).requires_grad_()


def u(*shape, seed=0, lo=0.0, hi=1.0):
    return (torch.rand(*shape, generator=_gen(seed), dtype=torch.float64) * (hi - lo) + lo).requires_grad_()


def z(*shape, seed=0):
    return torch.randn(*shape, generator=_gen(seed), dtype=torch.complex128).requires_grad_()


def f(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def k(t):
    """without a gradient"""
    return t.detach()


def i(values):
    return torch.tensor(values)


def unit(*shape, seed=0):
    return F.normalize(k(n(*shape, seed=seed)), dim=-1).requires_grad_()


def spd(size, seed=0):
    a = k(n(size, size, seed=seed))
    return (a @ a.T + torch.eye(size, dtype=torch.float64)).requires_grad_()


def filled(m, seed=3, lo=0.3, hi=1.1):
    """float64, parameters drawn from (lo, hi)"""
    m, g = m.double(), _gen(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.rand(p.shape, generator=g, dtype=torch.float64) * (hi - lo) + lo)
    return m


def updated(m):
    """spectral normalisation whose singular vectors are not those of some random start"""
    m.u.fill_(1.0)
    m.update()
    return m


CASES = []


def add(name, object, inputs, more, bug, fits, order="first", make=None, like=None, hidden=False):
    row = {"name": name, "object": object, "kind": "module" if make else "function", "bug": bug, "fits": fits,
           "order": order, "inputs": inputs, "more": more}
    if make:
        row["make"] = make
    if like:
        row["like"] = like
    if hidden:
        row["hidden"] = True
    CASES.append(row)


add("bilinear_warp", "BackwardWarp", lambda: (n(1, 2, 3, 3), n(1, 2, 3, 3, seed=1)), [lambda: (n(2, 1, 2, 4), n(2, 2, 2, 4, seed=3, scale=0.4)), lambda: (k(n(1, 1, 4, 2)), n(1, 2, 4, 2, seed=2, scale=2))],
    "samples that were clamped to the border still move with the flow", ["mask", "clamp"])
add("gem_pool", "GeM", lambda: (u(2, 2, 2, 3, lo=0.2, hi=2),), [lambda: (n(1, 2, 3, 2, seed=4),), lambda: (u(1, 1, 1, 1, lo=0.5),)],
    "the exponent's gradient forgets that the root depends on it too", ["missing term"], make=lambda cls: cls(2.5, 1e-2).double())
add("gaussian_soft_nms", "GaussianSoftNMS", lambda: (f([0.9, 0.3, 0.7, 0.5]), u(4, 4), 0.5), [lambda: (f([0.1, 0.2]), u(2, 2, seed=1)), lambda: (k(f([0.5, 0.4, 0.8])), u(3, 3, seed=1), 1.3)],
    "the comparison of the scores is turned round in backward", ["mask", "transpose"])
add("linear_to_srgb", "LinearToSRGB", lambda: (f([0.0, 0.001, 0.2, 0.9]),), [lambda: (u(2, 3),), lambda: (f([-0.1, 0.5]),)],
    "zero to a negative power times zero: NaN for black", ["nan"])
add("mu_law", "MuLawEncode", lambda: (n(2, 3, scale=0.4), 100), [lambda: (n(5, scale=0.4, seed=1), 255), lambda: (f(0.3), 15)],
    "log(256) is right for mu = 255 only", ["constant", "option"])
add("preemphasis", "PreEmphasis", lambda: (n(2, 5),), [lambda: (n(4, seed=1),), lambda: (n(1, 2, 2, seed=2),)],
    "backward shifts the same way as forward", ["off by one", "wrong formula"], make=lambda cls: cls(0.9).double())
add("log_power_spectrum", "LogPowerSpectrum", lambda: (n(2, 5),), [lambda: (n(6, seed=1), 0.1), lambda: (n(1, 7, seed=2), 1.0), lambda: (n(1, 2, seed=2), 1.0)],
    "the last bin is always taken for Nyquist's: right for even lengths only", ["constant", "off by one"])
add("alibi_attention", "AlibiAttention", lambda: (n(2, 3, 2), n(2, 3, 2, seed=1), n(2, 3, 2, seed=2), u(2, seed=3)), [lambda: (n(1, 4, 1), k(n(1, 4, 1, seed=1)), n(1, 4, 3, seed=2), f([0.5])), lambda: (k(n(2, 2, 2)), n(2, 2, 2, seed=1), k(n(2, 2, 1, seed=2)), u(2))],
    "the slopes' gradient lacks the softmax's second term", ["missing term"])
add("moe_combine", "MoECombine", lambda: (n(2, 2, 3), u(4, 2, seed=1), i([[0, 1], [1, 0], [0, 1], [1, 0]]), i([[0, 0], [1, 1], [-1, -1], [-1, -1]])), [lambda: (n(3, 1, 2), u(2, 1), i([[2], [0]]), i([[0], [0]])), lambda: (k(n(2, 3, 1)), u(2, 2), i([[0, 1], [1, 0]]), i([[2, 0], [-1, 1]]))],
    "the gates of dropped tokens receive a gradient", ["mask"])
add("focal_ce", "FocalCE", lambda: (n(4, 3), i([0, 2, -100, 1]), 2.0, k(f([0.2, 0.5, 1.5])), "none"), [lambda: (n(3, 2, seed=1), i([1, 0, -100])), lambda: (n(3, 2, seed=1), i([1, 0, 255]), 3.0, k(f([0.2, 0.9])), "sum", 255), lambda: (n(3, 4), i([3, 1, 0]), 1.5, k(f([0.1, 0.2, 0.3, 0.4])), "mean")],
    "the class weights are left out in backward", ["option"])
add("fused_linear_ce", "FusedLinearCrossEntropy", lambda: (n(5, 2), n(3, 2, seed=1), i([0, 2, 1, 1, 0])), [lambda: (n(4, 3), n(2, 3, seed=1), i([0, 1, 1, 1]), 3), lambda: (k(n(1, 3)), n(4, 3, seed=1), i([3]), 8)],
    "the weight's stored gradient is not multiplied by the incoming one", ["missing factor", "grad_output"])
add("scatter_softmax", "ScatterSoftmax", lambda: (n(5), i([1, 0, 1, 1, 0]), 2), [lambda: (n(4, seed=1), i([2, 0, 2, 0]), 4), lambda: (n(1), i([0]), 1)],
    "the sum is over everything, not over the group", ["reduction"])
add("gcn_spmm", "SpMM", lambda: (i([[0, 1, 2, 0, 2], [1, 2, 0, 2, 2]]), n(5), n(3, 2, seed=1)), [lambda: (i([[0, 1], [1, 0]]), None, n(2, 3)), lambda: (i([[0, 0, 1], [3, 3, 2]]), k(n(3)), n(4, 1)), lambda: (i([[0, 0], [1, 1]]), n(2), k(n(2, 2)))],
    "the ends of an edge are swapped for its weight", ["wrong tensor", "transpose"])
add("schnet_rbf", "GaussianSmearing", lambda: (f([0.7, 1.6, 2.5, 3.4]),), [lambda: (u(2, 2, lo=0.3, hi=4),)],
    "the envelope's derivative is missing", ["missing term"], make=lambda cls: cls(4, 3.0).double())
add("ewald_real", "EwaldReal", lambda: (f([1.0, -1.0, 0.5]), f([1.1, 0.9, 1.7]), i([[0, 1, 0], [1, 2, 2]]), 0.7), [lambda: (n(2), u(3, lo=0.6, hi=2), i([[0, 1, 0], [1, 0, 1]]), 1.0), lambda: (k(n(3)), u(2, lo=0.5), i([[2, 1], [1, 0]]), 2.5)],
    "the Gaussian's term lacks alpha; hidden at alpha = 1", ["missing factor"])
add("lj_neighbors", "LennardJones", lambda: (f([[0.1, 0.2, 0.0], [1.2, 0.1, 0.3], [0.2, 1.3, 0.1], [4.0, 0.1, 0.2]]), i([0, 0, 1, 0]), i([1, 2, 2, 3]), 5.0), [lambda: (f([[0.0, 0.0, 0.1], [1.1, 0.4, 0.0]]), i([1]), i([0]), 20.0), lambda: (f([[0.1, 0.0, 2.9], [1.1, 0.3, 0.2], [0.2, 1.2, 0.1]]), i([0, 2]), i([1, 0]), 3.0)],
    "an atom that is the second one of several pairs gets the last force alone", ["repeated index"])
add("verlet_pendulum", "PendulumVerlet", lambda: (n(3), n(3, seed=1), 0.5), [lambda: (n(2, 2), k(n(2, 2, seed=1)), 0.1), lambda: (k(f(0.5)), f(1.0), 1.0)],
    "the second kick is differentiated at the old angle", ["wrong tensor", "saved tensor"])
add("von_mises", "VonMisesLogProb", lambda: (n(3), f(0.3), f([0.5, 4.0, 800.0])), [lambda: (n(2, 3), n(3, seed=1), u(2, 1, lo=0.3, hi=5)), lambda: (k(f(0.1)), f(1.0), f(2.0))],
    "the Bessel functions overflow: NaN for sharp distributions", ["nan", "overflow"])
add("gaussian_copula", "GaussianCopulaLogDensity", lambda: (u(3, lo=0.1, hi=0.9), u(3, lo=0.1, hi=0.9, seed=1), f([0.5, -0.3, 0.8])), [lambda: (u(2, 2, lo=0.1, hi=0.9), k(u(2, 2, lo=0.1, hi=0.9, seed=1)), u(2, 2, lo=-0.8, hi=0.8, seed=2)), lambda: (k(f(0.4)), f(0.6), f(0.0))],
    "the second margin's quantile function is not differentiated", ["missing factor"])
add("mvn_tril", "MVNScaleTrilNLL", lambda: (n(3, 2), n(2, seed=1), f([[1.2, 0.0], [0.4, 0.7]])), [lambda: (n(1, 3), n(3, seed=1), torch.linalg.cholesky(k(spd(3))).contiguous().requires_grad_()), lambda: (k(n(2, 1)), n(1), f([[0.6]]))],
    "what lies above the diagonal receives a gradient though forward does not read it", ["mask"])
add("simplex_projection", "ProjectSimplex", lambda: (n(3, 4),), [lambda: (n(1, 2, seed=1),), lambda: (n(2, 5, seed=2, scale=0.1),)],
    "the mean is over all entries, not over the support; hidden in the interior", ["reduction", "mask"])
add("entmax15", "Entmax15", lambda: (n(3, 2, scale=2, seed=5), 0), [lambda: (n(2, 4, scale=2),), lambda: (n(2, 3, 2, seed=1), 1), lambda: (n(5, seed=2, scale=0.3),)],
    "backward reduces over the last axis whatever dim is", ["option", "axis"])
add("soft_sort", "SoftSort", lambda: (f([0.3, -1.0, 2.0, 0.8, 1.4]), 0.7), [lambda: (n(3, seed=1),), lambda: (n(1), 2.0)],
    "the permutation is applied where its inverse belongs", ["permutation", "inverse"])
add("isotonic", "IsotonicL2", lambda: (f([1.0, 0.2, 0.7, 2.0, 1.5, 3.0]),), [lambda: (f([3.0, 2.0, 1.0]),), lambda: (f([1.0, 2.0]),), lambda: (n(7, seed=3),)],
    "a block sends back its sum, not its mean", ["missing factor"])
add("deq_tanh", "DEQ", lambda: (n(3, 2),), [lambda: (n(1, 2, seed=1),)],
    "the adjoint system is not transposed", ["transpose"], make=lambda cls: filled(cls(2, 3), lo=-0.4, hi=0.4))
add("black_scholes", "BlackScholesCall", lambda: (u(3, lo=0.8, hi=1.2), u(3, lo=0.8, hi=1.2, seed=1), u(3, lo=0.3, hi=2, seed=2), f([0.03, 0.1, 0.05]), u(3, lo=0.2, hi=0.5, seed=3)), [lambda: (f(1.0), f(1.1), k(f(0.5)), f(0.0), f(0.3)), lambda: (k(u(2, 2, lo=0.9)), u(2, 2, lo=0.9), u(2, 2, lo=0.5), u(2, 2, hi=0.1), u(2, 2, lo=0.3))],
    "the discounting's share in the time's gradient is missing; hidden at zero rates", ["missing term"])
add("expected_shortfall", "ExpectedShortfall", lambda: (n(6, 2), 0.4), [lambda: (n(5, 1, seed=1), 0.05), lambda: (n(4, 3, seed=1), 1.0)],
    "the comparison leaves out the value at risk itself", ["comparison", "off by one"])
add("quat_rotate", "QuatRotate", lambda: (unit(3, 4), n(3, 3, seed=1)), [lambda: (unit(4, seed=1), n(3, seed=2)), lambda: (k(unit(2, 1, 4)), n(2, 1, 3)), lambda: (unit(2, 4), k(n(2, 3)))],
    "the vector's gradient is rotated forward, not back", ["sign", "transpose"])
add("so3_exp", "SO3Exp", lambda: (f([[0.0, 0.0, 0.0], [0.5, -1.0, 0.3], [0.01, 0.0, 0.02]]),), [lambda: (n(3, seed=1),), lambda: (n(2, 1, 3, scale=0.02),)],
    "a division by the squared angle: NaN at the identity", ["nan"])
add("chamfer", "ChamferDistance", lambda: (n(4, 3), n(3, 3, seed=1)), [lambda: (n(2, 2), k(n(2, 2, seed=1))), lambda: (k(n(1, 3)), n(5, 3, seed=2))],
    "the mean of the second direction is taken over the first set; hidden when the sets are of one size", ["constant", "wrong tensor"])
add("lsq_quant", "LSQ", lambda: (n(2, 4, scale=2), f(0.7), -2, 1), [lambda: (n(3, seed=1), f([0.3]), 0, 3), lambda: (k(n(5)), f(0.5), -4, 3)],
    "the rounding error has the wrong sign in the step's gradient", ["sign"],
    like=lambda v, s, lo, hi: s * (lambda x: torch.where(x < lo, float(lo), torch.where(x > hi, float(hi), (k(v / s).round() - k(v / s)) + x)))(v / s))
add("pact", "PACT", lambda: (f([-1.0, 0.4, 1.1, 3.0, -0.2]), f(1.5), 3), [lambda: (n(2, 3), f([0.8]), 4), lambda: (k(n(6)), f(0.5), 2)],
    "negative inputs are not masked", ["mask"], like=lambda x, a, b: torch.minimum(x.clamp(min=0), a))
add("gumbel_hard", "HardGumbel", lambda: (n(2, 4), k(n(2, 4, seed=1)), 0.5), [lambda: (n(3), n(3, seed=1), 2.0)],
    "the temperature is missing", ["missing factor", "option"], like=lambda x, g, tau: ((x + g) / tau).softmax(-1))
add("dia_matvec", "DIAMatVec", lambda: (n(3, 4), n(4, seed=1), [-1, 0, 2]), [lambda: (n(1, 3), n(3, seed=1), [0]), lambda: (k(n(2, 3)), n(3), [-2, 4]), lambda: (n(2, 3), k(n(3)), [1, -1])],
    "the vector's gradient is not multiplied with the transpose", ["transpose"])
add("modrelu", "ModReLU", lambda: (z(3, 2),), [lambda: (z(2, 2, 2, seed=1),)],
    "the phase is taken to be constant", ["missing term", "complex"], make=lambda cls: filled(cls(2), lo=-0.6, hi=0.4))
add("expectation_value", "Expectation", lambda: (z(3), z(3, 3, seed=1)), [lambda: (z(2, seed=2), k(z(2, 2, seed=3))), lambda: (k(z(2, seed=2)), z(2, 2, seed=3))],
    "the outer product is conjugated", ["complex", "conjugate", "transpose"])
add("lstm_pointwise", "LSTMPointwise", lambda: (n(2, 8), n(2, 2, seed=1)), [lambda: (n(1, 4), k(n(1, 1, seed=1))), lambda: (k(n(2, 12)), n(2, 3))],
    "what comes back through the new cell state is dropped", ["missing term"])
add("running_rms", "RunningRMSNorm", lambda: (n(4, 2),), [lambda: (n(1, 2, seed=1),)],
    "the batch's share of the running mean lacks the momentum", ["missing factor"], make=lambda cls: cls(2, momentum=0.3).double())
add("spectral_scale", "SNLinear", lambda: (n(2, 3),), [lambda: (n(3, seed=1),), lambda: (n(2, 1, 3, seed=1),)],
    "the singular value is taken for a constant", ["missing term"], make=lambda cls: updated(filled(cls(3, 2))))
add("library_swiglu", "SwiGLU", lambda: (n(3, 2),), [lambda: (n(2, seed=1),), lambda: (n(2, 2, 2, seed=1),)],
    "the gate itself is missing in the derivative of SiLU", ["wrong tensor"], make=lambda cls: filled(cls(2, 3), lo=-1))
add("library_ema", "SmoothEnvelope", lambda: (n(2, 4),), [lambda: (n(1, seed=1),), lambda: (n(1, 2, 3, seed=1),)],
    "the first sample starts the state as well, which backward forgets", ["missing term"], make=lambda cls: cls(0.6))
add("crf_log_partition", "CRFLogPartition", lambda: (n(4, 3), n(3, 3, seed=1)), [lambda: (n(1, 2), n(2, 2)), lambda: (k(n(2, 2)), n(2, 2, seed=1)), lambda: (n(3, 2, seed=4), k(n(2, 2)))],
    "the pairwise marginals are transposed", ["transpose"])
add("info_nce", "InfoNCE", lambda: (unit(3, 2), unit(3, 2, seed=1), f(0.3)), [lambda: (n(2, 3), k(n(2, 3, seed=1)), f(1.0)), lambda: (k(n(4, 1)), n(4, 1, seed=1), k(f(0.5)))],
    "the temperature is divided by twice; hidden at temperature one", ["factor", "power"])
add("causal_conv1d", "CausalDepthwiseConv1d", lambda: (n(2, 2, 6), n(2, 3, seed=1), n(2, seed=2), 2), [lambda: (n(1, 1, 3), n(1, 2, seed=1), None), lambda: (k(n(1, 2, 4)), n(2, 4, seed=1), k(n(2)), 1), lambda: (n(1, 1, 2), k(n(1, 3)), n(1), 3)],
    "the weight's gradient ignores the dilation", ["option"])
add("thin_plate", "ThinPlate", lambda: (f([[0.0, 0.0], [1.0, 0.5], [0.3, 0.8]]), f([[0.0, 0.0], [1.0, 0.0]]), n(2)), [lambda: (n(2, 2), n(3, 2, seed=1), n(3, seed=2)), lambda: (k(n(1, 2)), n(2, 2, seed=1), k(n(2)))],
    "the logarithm of zero times zero: NaN on a control point", ["nan"])
add("kepler", "EccentricAnomaly", lambda: (u(3, lo=0.3, hi=3), u(3, lo=0.1, hi=0.8, seed=1), 20), [lambda: (n(2, 2), k(u(2, 2, hi=0.7)), 30), lambda: (k(f(0.5)), f(0.0), 20)],
    "the slope lacks the eccentricity", ["missing factor"])
add("cox_loss", "CoxPHLoss", lambda: (n(5), i([1, 0, 1, 1, 0])), [lambda: (n(2, seed=1), i([0, 1])), lambda: (n(6, seed=1, scale=2), i([1, 1, 1, 1, 1, 1]))],
    "the sum over risk sets runs forward instead of backward", ["wrong order", "transpose"])
add("fast_fusion", "FastFusion", lambda: ([n(1, 2, 2), n(1, 2, 2, seed=1), n(1, 2, 2, seed=2)],), [lambda: ([n(3), n(3, seed=1), k(n(3))],)],
    "there is no entry for eps, so that all others are shifted", ["arity"], make=lambda cls: filled(cls(3), lo=-0.1))
add("linear_squared_relu", "LinearSquaredReLU", lambda: (n(3, 4), n(2, 4, seed=1)), [lambda: (n(2, 2, 3), n(2, 3, seed=1)), lambda: (n(1, 2), k(n(3, 2, seed=1)))],
    "the input is saved in bfloat16", ["dtype"])
add("k_winners", "KWinners", lambda: (n(3, 5),), [lambda: (n(1, 5, seed=1),), lambda: (n(5, seed=2),)],
    "the winners are kept on the class: a second call overwrites those of the first", ["state"], make=lambda cls: filled(cls(5, 2)), hidden=True)
add("softmax_loss", "SoftmaxLoss", lambda: (n(3, 4), i([1, 0, 3])), [lambda: (n(1, 2, scale=5), i([1])), lambda: (n(4, 3, seed=2), i([2, 2, 2, 0]))],
    "the probabilities are overwritten: a second backward through the graph is wrong", ["in-place", "saved tensor"], hidden=True)
add("clipped_relu", "ClippedReLU", lambda: (n(2, 5, scale=2), 1.5), [lambda: (n(4, seed=1), 6), lambda: (n(1, 2, 2), 0.1)],
    "the incoming gradient is overwritten", ["modified grad_output", "in-place"])
add("overlap_add", "OverlapAdd", lambda: (n(3, 4), u(4, seed=1, lo=0.2), 2), [lambda: (n(1, 3), u(3, seed=1), 1), lambda: (k(n(4, 2)), u(2), 3), lambda: (n(2, 3), k(u(3)), 3)],
    "the incoming gradient is taken to be contiguous", ["contiguous", "stride"], hidden=True)
add("mem_swish", "MemoryEfficientSwish", lambda: (n(2, 3),), [lambda: (n(4, seed=1),)],
    "the sigmoid is cut off the graph: a constant for the second derivative", ["detach", "double backward"], order="second", make=lambda cls: filled(cls()))
add("rbf_kernel", "RBFKernel", lambda: (n(3, 2), n(2, 2, seed=1), f(0.8)), [lambda: (n(1, 1), k(n(2, 1, seed=1)), f(1.5)), lambda: (k(n(2, 3)), n(2, 3, seed=1), k(f(1.0)))],
    "the kernel is kept as a number on ctx: a constant for the second derivative", ["saved tensor", "double backward"], order="second")
