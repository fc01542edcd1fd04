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
add("ycbcr_layer", "RGBToYCbCr", lambda: (u(2, 3, 2, 2),), [lambda: (u(1, 3, 1, 4, seed=1),)],
    "the colour matrix is not transposed", ["transpose"], make=lambda cls: cls().double())
add("mu_law", "MuLawEncode", lambda: (n(2, 3, scale=0.4), 100), [lambda: (n(5, scale=0.4, seed=1), 255), lambda: (f(0.3), 15)],
    "log(256) is right for mu = 255 only", ["constant", "option"])
add("preemphasis", "PreEmphasis", lambda: (n(2, 5),), [lambda: (n(4, seed=1),), lambda: (n(1, 2, 2, seed=2),)],
    "backward shifts the same way as forward", ["off by one", "wrong formula"], make=lambda cls: cls(0.9).double())
add("log_power_spectrum", "LogPowerSpectrum", lambda: (n(2, 5),), [lambda: (n(6, seed=1), 0.1), lambda: (n(1, 7, seed=2), 1.0), lambda: (n(1, 2, seed=2), 1.0)],
    "the last bin is always taken for Nyquist's: right for even lengths only", ["constant", "off by one"])
add("alibi_attention", "AlibiAttention", lambda: (n(2, 3, 2), n(2, 3, 2, seed=1), n(2, 3, 2, seed=2), u(2, seed=3)), [lambda: (n(1, 4, 1), k(n(1, 4, 1, seed=1)), n(1, 4, 3, seed=2), f([0.5])), lambda: (k(n(2, 2, 2)), n(2, 2, 2, seed=1), k(n(2, 2, 1, seed=2)), u(2))],
    "the slopes' gradient lacks the softmax's second term", ["missing term"])
add("rel_shift", "RelShift", lambda: (n(1, 2, 3, 3),), [lambda: (n(2, 1, 2, 4, seed=1),), lambda: (n(1, 1, 4, 3, seed=1),), lambda: (n(1, 1, 1, 2),)],
    "the row that forward cut off is put back at the wrong end", ["off by one", "padding"])
add("moe_combine", "MoECombine", lambda: (n(2, 2, 3), u(4, 2, seed=1), i([[0, 1], [1, 0], [0, 1], [1, 0]]), i([[0, 0], [1, 1], [-1, -1], [-1, -1]])), [lambda: (n(3, 1, 2), u(2, 1), i([[2], [0]]), i([[0], [0]])), lambda: (k(n(2, 3, 1)), u(2, 2), i([[0, 1], [1, 0]]), i([[2, 0], [-1, 1]]))],
    "the gates of dropped tokens receive a gradient", ["mask"])
add("router_z_loss", "RouterZLoss", lambda: (n(2, 3, 4), i([[1, 1, 0], [1, 0, 0]])), [lambda: (n(4, 2, seed=1), i([1, 0, 1, 1])), lambda: (n(1, 1, 3), i([[1]]))],
    "the mean's gradient counts the padding", ["reduction", "mask"])
add("focal_ce", "FocalCE", lambda: (n(4, 3), i([0, 2, -100, 1]), 2.0, k(f([0.2, 0.5, 1.5])), "none"), [lambda: (n(3, 2, seed=1), i([1, 0, -100])), lambda: (n(3, 2, seed=1), i([1, 0, 255]), 3.0, k(f([0.2, 0.9])), "sum", 255), lambda: (n(3, 4), i([3, 1, 0]), 1.5, k(f([0.1, 0.2, 0.3, 0.4])), "mean")],
    "the class weights are left out in backward", ["option"])
add("tversky", "TverskyLoss", lambda: (u(2, 3, lo=0.1, hi=0.9), i([[1, 0, 1], [0, 0, 1]]), 0.3, 0.7), [lambda: (u(1, 2, 2, seed=1), i([[[1, 0], [1, 1]]])), lambda: (u(2, 4, seed=1), i([[0, 0, 0, 0], [1, 1, 1, 1]]), 0.2, 1.0, 0.1)],
    "alpha and beta are swapped; hidden while they are equal", ["option", "wrong formula"])
add("fused_linear_ce", "FusedLinearCrossEntropy", lambda: (n(5, 2), n(3, 2, seed=1), i([0, 2, 1, 1, 0])), [lambda: (n(4, 3), n(2, 3, seed=1), i([0, 1, 1, 1]), 3), lambda: (k(n(1, 3)), n(4, 3, seed=1), i([3]), 8)],
    "the weight's stored gradient is not multiplied by the incoming one", ["missing factor", "grad_output"])
add("scatter_softmax", "ScatterSoftmax", lambda: (n(5), i([1, 0, 1, 1, 0]), 2), [lambda: (n(4, seed=1), i([2, 0, 2, 0]), 4), lambda: (n(1), i([0]), 1)],
    "the sum is over everything, not over the group", ["reduction"])
add("scatter_std", "ScatterStd", lambda: (n(6), i([0, 0, 1, 1, 1, 2]), 3), [lambda: (n(5, seed=1), i([1, 1, 1, 0, 0]), 2, False), lambda: (n(4, seed=1), i([0, 0, 0, 0]), 2, True, 0.1)],
    "the gradient divides by n where forward divided by n - 1", ["option", "factor"])
add("gcn_spmm", "SpMM", lambda: (i([[0, 1, 2, 0, 2], [1, 2, 0, 2, 2]]), n(5), n(3, 2, seed=1)), [lambda: (i([[0, 1], [1, 0]]), None, n(2, 3)), lambda: (i([[0, 0, 1], [3, 3, 2]]), k(n(3)), n(4, 1)), lambda: (i([[0, 0], [1, 1]]), n(2), k(n(2, 2)))],
    "the ends of an edge are swapped for its weight", ["wrong tensor", "transpose"])
add("schnet_rbf", "GaussianSmearing", lambda: (f([0.7, 1.6, 2.5, 3.4]),), [lambda: (u(2, 2, lo=0.3, hi=4),)],
    "the envelope's derivative is missing", ["missing term"], make=lambda cls: cls(4, 3.0).double())
add("morse", "Morse", lambda: (u(3, lo=0.6, hi=2), u(3, lo=1, hi=3, seed=1), u(3, lo=1, hi=2, seed=2), u(3, lo=0.7, hi=1.3, seed=3)), [lambda: (u(2, 2, lo=0.6, hi=2), k(u(2, 2, seed=1)), u(2, 2, lo=1, seed=2), u(2, 2, seed=3)), lambda: (f(1.0), f(2.0), k(f(1.5)), f(0.8))],
    "the width's gradient has the distance, not the elongation", ["wrong tensor"])
add("ewald_real", "EwaldReal", lambda: (f([1.0, -1.0, 0.5]), f([1.1, 0.9, 1.7]), i([[0, 1, 0], [1, 2, 2]]), 0.7), [lambda: (n(2), u(3, lo=0.6, hi=2), i([[0, 1, 0], [1, 0, 1]]), 1.0), lambda: (k(n(3)), u(2, lo=0.5), i([[2, 1], [1, 0]]), 2.5)],
    "the Gaussian's term lacks alpha; hidden at alpha = 1", ["missing factor"])
add("lj_neighbors", "LennardJones", lambda: (f([[0.1, 0.2, 0.0], [1.2, 0.1, 0.3], [0.2, 1.3, 0.1], [4.0, 0.1, 0.2]]), i([0, 0, 1, 0]), i([1, 2, 2, 3]), 5.0), [lambda: (f([[0.0, 0.0, 0.1], [1.1, 0.4, 0.0]]), i([1]), i([0]), 20.0), lambda: (f([[0.1, 0.0, 2.9], [1.1, 0.3, 0.2], [0.2, 1.2, 0.1]]), i([0, 2]), i([1, 0]), 3.0)],
    "an atom that is the second one of several pairs gets the last force alone", ["repeated index"])
add("implicit_upwind", "ImplicitUpwind", lambda: (n(4), f(0.8)), [lambda: (n(3, seed=1), k(f(0.3))), lambda: (k(n(5)), f(2.0))],
    "the adjoint system is not transposed", ["transpose"])
add("verlet_pendulum", "PendulumVerlet", lambda: (n(3), n(3, seed=1), 0.5), [lambda: (n(2, 2), k(n(2, 2, seed=1)), 0.1), lambda: (k(f(0.5)), f(1.0), 1.0)],
    "the second kick is differentiated at the old angle", ["wrong tensor", "saved tensor"])
add("bessel_j", "BesselJ1", lambda: (f([0.0, 0.5, -2.0, 7.0]),), [lambda: (u(2, 2, lo=-4, hi=4),), lambda: (f(1.0),)],
    "J1' = J0 - J1 / x has the wrong sign", ["sign"])
