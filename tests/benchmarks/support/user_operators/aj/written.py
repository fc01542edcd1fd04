import torch


def r(*shape, seed=0, grad=True, scale=1.0, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=g, dtype=torch.float64) * scale + shift).requires_grad_(grad)


def u(*shape, seed=0, lo=0.1, hi=1.0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=g, dtype=torch.float64) * (hi - lo) + lo).requires_grad_(grad)


def t(*values, grad=True):
    return torch.tensor(values, dtype=torch.float64).requires_grad_(grad)


def s(value, grad=True):
    return torch.tensor(value, dtype=torch.float64).requires_grad_(grad)


def ix(*values):
    return torch.tensor(values)


def fill(m, seed=0, lo=None, hi=None, scale=0.5):
    g = torch.Generator().manual_seed(seed)
    m = m.double()
    with torch.no_grad():
        for p in m.parameters():
            if lo is None:
                p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * scale)
            else:
                p.copy_(torch.rand(p.shape, generator=g, dtype=torch.float64) * (hi - lo) + lo)
    return m


CASES = []


def add(name, object, kind, inputs, bug, fits, more=(), order="first", **extra):
    CASES.append(dict(name=name, object=object, kind=kind, inputs=inputs, more=list(more), bug=bug,
                      fits=[fits] if isinstance(fits, str) else fits, order=order, **extra))


F = "function"


def conic(n, seed):
    a, c, b = u(n, seed=seed, lo=0.4, hi=1.0, grad=False), u(n, seed=seed + 1, lo=0.4, hi=1.0, grad=False), u(n, seed=seed + 2, lo=-0.25, hi=0.25, grad=False)
    return torch.stack([a, b, c], 1).requires_grad_()


add("splat_alpha", "SplatAlpha", F, lambda: (r(5, 2, seed=1), r(3, 2, seed=2), conic(3, 5), u(3, seed=8, lo=0.3, hi=0.9)),
    "off-diagonal entry of the conic gets half its gradient", "value",
    more=[lambda: (r(4, 2, seed=3, scale=0.1), r(2, 2, seed=4, scale=0.1), conic(2, 9), t(0.5, 1.3), 0.05)])
add("ray_weights", "RayWeights", F, lambda: (u(2, 5), u(2, 5, seed=1)),
    "the sum over the samples behind includes the sample itself", "value",
    more=[lambda: (u(3, 1, seed=2), u(3, 1, seed=3))])


def cam(n, seed):
    p = r(n, 3, seed=seed, grad=False)
    p[:, 2] = p[:, 2].abs() + 1.5
    return p.requires_grad_()


def behind():
    p = cam(4, 3).detach().clone()
    p[1, 2] = -1.0
    return p.requires_grad_()


add("radial_pinhole", "RadialPinhole", F, lambda: (cam(5, 1), t(1.5, 1.4), t(0.2, -0.1), t(0.3, 0.2)),
    "factor 2 of the k2 term missing in the gradient of the points", "value",
    more=[lambda: (behind(), t(1.5, 1.4), t(0.2, -0.1), t(-0.1, 0.05), 0.1)])
add("quat_rotate_points", "QuatRotate", F, lambda: (r(2, 4, seed=1), r(2, 3, 3, seed=2)),
    "cross product with swapped arguments (sign) in one term of the axis gradient", "value",
    more=[lambda: (r(1, 4, seed=3), r(1, 1, 3, seed=4))])
add("angle_energy", "AngleEnergy", F, lambda: (r(5, 3, seed=1), ix([0, 1, 2], [1, 2, 3], [4, 1, 0]), t(1.9, 1.6, 2.1), t(1.0, 2.0, 0.5)),
    "middle atom lacks the reaction of the third atom", "value",
    more=[lambda: (r(3, 3, seed=2), ix([2, 0, 1]), t(2.0), t(3.0))])
add("segment_std", "SegmentStd", F, lambda: (r(7, 2, seed=1), ix(0, 2, 0, 2, 2, 0, 4), 5, 1e-2),
    "one None too few where eps is passed", "number of gradients",
    more=[lambda: (r(5, 3, seed=2), ix(1, 1, 0, 1, 0), 2)])
add("selective_scan", "SelectiveScan", F,
    lambda: (r(2, 4, 3, seed=1), u(2, 4, 3, seed=2), (-u(3, 2, seed=3, grad=False)).requires_grad_(), r(2, 4, 2, seed=4), r(2, 4, 2, seed=5)),
    "states kept on the class, a second call before backward overwrites them", "state",
    more=[lambda: (r(1, 1, 2, seed=6), u(1, 1, 2, seed=7), (-u(2, 3, seed=8, grad=False)).requires_grad_(), r(1, 1, 3, seed=9), r(1, 1, 3, seed=10))])
add("allpole_filter", "AllPole", F, lambda: (r(2, 7, seed=1), r(2, 3, seed=2, scale=0.3)),
    "gradient of the coefficients uses the raw gradient, not the filtered one", "value",
    more=[lambda: (r(1, 2, seed=3), r(1, 4, seed=4, scale=0.3))])
add("mulaw", "MuLaw", F, lambda: (t(-0.8, -0.3, -0.11, 0.2, 0.7, 0.95), 15), "abs missing: wrong for negative samples", "value",
    more=[lambda: (t(0.3, -0.4),)])
add("preemphasis", "PreEmphasis", F, lambda: (r(2, 6, seed=1), 0.9), "changes the incoming gradient in place", "modified",
    more=[lambda: (r(5, seed=2),), lambda: (r(2, 1, seed=2),)])
add("soft_dtw", "SoftDTW", F, lambda: (u(2, 3, 4, seed=1, lo=0.1, hi=2), 0.7), "table R lies in a buffer shared by calls of equal shape", "state",
    more=[lambda: (u(1, 4, 2, seed=2),)])


def lsq_like(x, s, qn, qp, g):
    v = x / s
    r0, lo, hi = v.round() - v, v < qn, v > qp

    def f(x1, s1, *_):
        e = s1 * g + s * (1 - g)
        return torch.where(lo, qn * e, torch.where(hi, qp * e, x1 + r0 * e))

    return f


add("lsq_quant", "LSQ", F, lambda: (r(3, 5, seed=1), t(0.37), -2, 3, 0.4), "sign of the rounding term in the step gradient", "value",
    more=[lambda: (r(6, seed=2), t(0.21), 0, 3, 1.0)], surrogate=lsq_like)


def fast_sigmoid(v, thr, k=10.0):
    return lambda v, thr, *_: (v - thr) / (1 + k * (v - thr).abs())


add("spike_fast_sigmoid", "Spike", F, lambda: (r(4, 3, seed=1), t(0.3, 0.5, -0.2), 2.0), "sign of the threshold gradient", "value",
    more=[lambda: (r(2, 2, 3, seed=2), t(0.3, 0.5, -0.2))], surrogate=fast_sigmoid)
add("l1_ball", "ProjectL1", F, lambda: ((r(3, 5, seed=1, grad=False) * torch.tensor([[1.0], [0.05], [2.0]])).double().requires_grad_(), 1.0),
    "rows inside the ball treated as if projected", "value", more=[lambda: (r(2, 4, seed=5), 2.5)])
add("psd_cone", "ProjectPSD", F, lambda: (r(4, 4, seed=1),), "gradient not symmetrised though forward symmetrises", "value",
    more=[lambda: (r(2, 3, 3, seed=2),), lambda: (torch.diag(t(2.0, 1.0, -1.0, -3.0, grad=False)).add(r(4, 4, seed=3, grad=False, scale=0.1)).requires_grad_(),)])


def spd(n, seed):
    a = r(n, n, seed=seed, grad=False)
    return (a @ a.t() / n + torch.eye(n, dtype=a.dtype) + 0.1 * r(n, n, seed=seed + 1, grad=False)).requires_grad_()


add("eq_qp", "EqQP", F, lambda: (spd(4, 1), r(4, seed=3), r(2, 4, seed=4), r(2, seed=5)), "term with the multipliers missing in the gradient of A", "value",
    more=[lambda: (spd(3, 6), r(3, seed=7), r(1, 3, seed=8), r(1, seed=9))])
add("kepler", "EccentricAnomaly", F, lambda: (r(5, seed=1), u(5, seed=2, lo=0.05, hi=0.7)), "the solution is kept detached, second derivatives wrong", "value",
    more=[lambda: (r(2, 2, seed=3), u(2, 2, seed=4, lo=0.0, hi=0.5), 40)], order="second")
add("max_drawdown", "MaxDrawdown", F, lambda: (u(3, 6, seed=1, lo=1, hi=3),), "gradient at the peak lacks one power of the peak", "value",
    more=[lambda: (u(2, 4, seed=7, lo=0.5, hi=2),)])
add("bpr_triplet", "BPR", F, lambda: (r(3, 2, seed=1), r(5, 2, seed=2), ix(0, 1, 1, 2, 0), ix(1, 2, 2, 4, 0), ix(3, 3, 0, 3, 0 + 2), 0.1),
    "repeated negatives: += with an index keeps one contribution", "value",
    more=[lambda: (r(2, 3, seed=3), r(3, 3, seed=4), ix(0, 0), ix(1, 1), ix(2, 2))])
add("sample_points", "SamplePoints", F, lambda: (r(2, 3, 4, seed=1), t([0.3, 1.4], [2.7, 0.6], [-0.4, 1.2], [3.4, 2.3])),
    "zeros_like keeps the strides, reshape then writes into a copy", "layout",
    more=[lambda: (r(1, 2, 5, seed=2), t([1.5, 0.5], [1.2, 0.3]))])
add("gwd_box_loss", "GaussianBoxLoss", F, lambda: (u(4, 4, seed=1, hi=3), u(4, 4, seed=2, hi=3), 1.5), "distance saved as a constant, second derivatives wrong", "value",
    more=[lambda: (u(2, 4, seed=3), u(2, 4, seed=4))], order="second")
add("edge_aware_smooth", "EdgeAwareSmooth", F, lambda: (u(1, 1, 3, 4, seed=1), u(1, 3, 3, 4, seed=2), 2.0), "image gradient lacks 1/C of the channel mean", "value",
    more=[lambda: (u(2, 1, 2, 3, seed=3), u(2, 2, 2, 3, seed=4))])
add("cost_volume", "CostVolume", F, lambda: (r(1, 2, 2, 5, seed=1), r(1, 2, 2, 5, seed=2), 3), "gradient of the right image not shifted by the disparity", "value",
    more=[lambda: (r(2, 1, 1, 3, seed=3), r(2, 1, 1, 3, seed=4), 5)])
add("zinb_nll", "ZINB", F, lambda: (t([0, 3, 1], [2, 0, 0], grad=False), u(2, 3, seed=1, hi=3), u(2, 3, seed=2, lo=0.3, hi=2), r(2, 3, seed=3)),
    "dispersion gradient at zero counts lacks a term", "value",
    more=[lambda: (t([5, 0], grad=False), u(1, 2, seed=4), u(1, 2, seed=5), r(1, 2, seed=6))])
add("cox_breslow", "CoxPH", F, lambda: (r(6, seed=1), t(3, 1, 2, 2, 5, 2, grad=False), t(1, 1, 1, 1, 0, 0, grad=False)),
    "tied times left out of the risk set in backward", "value",
    more=[lambda: (r(3, seed=2), t(1, 2, 3, grad=False), t(0, 1, 0, grad=False)), lambda: (r(2, seed=2), t(1, 1, grad=False), t(0, 0, grad=False))])
add("kde_logpdf", "KDE", F, lambda: (r(3, 2, seed=1), r(4, 2, seed=2), s(0.7)), "normaliser of the bandwidth lacks the dimension D", "value",
    more=[lambda: (r(2, 1, seed=3), r(3, 1, seed=4), s(1.2))])
add("matern32", "Matern32", F, lambda: (t([0.1, 0.2], [1.0, -0.5], [0.7, 0.3]), t([1.0, -0.5], [0.3, 0.9]), s(0.8)),
    "divides by the distance, NaN at coincident points", "nan", more=[lambda: (r(2, 3, seed=1), r(3, 3, seed=2), s(1.5))])
add("phase_mask", "PhaseMask", F, lambda: (torch.complex(r(2, 2, 3, seed=1, grad=False), r(2, 2, 3, seed=2, grad=False)).requires_grad_(), r(2, 3, seed=3), u(2, 3, seed=4)),
    "sign of the phase gradient", "value",
    more=[lambda: (torch.complex(r(1, 1, 2, seed=5, grad=False), r(1, 1, 2, seed=6, grad=False)).requires_grad_(), r(1, 2, seed=7), u(1, 2, seed=8))])
add("upwind_step", "UpwindStep", F, lambda: (r(2, 5, seed=1), t(0.5, -0.7, 0.3, -0.2, -0.9), 0.4), "speed gradient takes the left cell also where the wind is negative", "value",
    more=[lambda: (r(1, 3, seed=2), t(0.5, 0.7, 0.3), 1.0)])
add("bessel_basis", "BesselBasis", F, lambda: (t(0.6, 1.5, 3.1, 4.4, 5.6), t(3.1, 6.3, 9.4), 5.0), "asks needs_input_grad of the cutoff instead of the frequencies", "None for",
    more=[lambda: (t(0.9, 0.5), t(3.2), 1.5, 3)])

M = "module"
add("pcen", "PCEN", M, lambda: (u(2, 2, 4, seed=1),), "the subtracted delta^r is left out of the delta gradient", "value",
    make=lambda cls: fill(cls(2, s=0.3), seed=1, lo=0.4, hi=1.5), more=[lambda: (u(2, 1, seed=2),)])
add("implicit_diffusion", "ImplicitDiffusion", M, lambda: (r(2, 5, seed=1), r(2, 5, seed=2)), "adjoint uses the old state instead of the new one", "value",
    make=lambda cls: fill(cls(5, dt=0.4, steps=2)), more=[lambda: (r(1, 5, seed=3),)])
add("fm_layer", "FactorizationMachine", M, lambda: (r(3, 5, seed=1),), "input kept in fp8 for backward", "dtype",
    make=lambda cls: fill(cls(5, 3)), more=[lambda: (r(1, 5, seed=2),)])
add("tone_curve", "ToneCurve", M, lambda: (u(2, 2, 4, seed=1, lo=-0.3, hi=1.6),), "samples above 1 keep a gradient", "value",
    make=lambda cls: fill(cls(2, 5)), more=[lambda: (u(1, 2, 2, 3, seed=3, lo=0.05),)])
add("ard_kernel", "ARDKernel", M, lambda: (r(4, 3, seed=1),), "Gram matrix of one set: second argument's half missing", "value",
    make=lambda cls: fill(cls(3)), more=[lambda: (r(3, 3, seed=2), r(2, 3, seed=3))])
add("householder_flow", "HouseholderFlow", M, lambda: (r(3, 4, seed=1),), "term from the norm of v missing", "value",
    make=lambda cls: fill(cls(4, 3), scale=1.0), more=[lambda: (r(1, 4, seed=2),)])
add("cayley_linear", "CayleyLinear", M, lambda: (r(3, 4, seed=1),), "inverse not transposed in the weight gradient", "value",
    make=lambda cls: fill(cls(4)), more=[lambda: (r(2, 2, 4, seed=2),)])
add("givens_mesh", "GivensMesh", M, lambda: (r(3, 4, seed=1),), "saved output is rotated back in place", "modified",
    make=lambda cls: fill(cls(4, layers=3, ports=(0, 1, 3))), more=[lambda: (r(1, 4, seed=2),)])
add("expert_linear", "ExpertLinear", M, lambda: (r(6, 3, seed=1), ix(2, 0, 0, 2, 0, 3)), "weight gradient transposed", "value",
    make=lambda cls: fill(cls(4, 3, 3)), more=[lambda: (r(2, 3, seed=2), ix(1, 1))])


def circ(cls):
    m = fill(cls(5))
    m.sign = torch.tensor([1.0, -1, -1, 1, 1]).double()
    return m


add("circulant_linear", "CirculantLinear", M, lambda: (r(3, 5, seed=1),), "conjugate missing in the kernel gradient", "value",
    make=circ, more=[lambda: (r(2, 2, 5, seed=2),), lambda: (r(5, seed=2),)])
add("snake_act", "SnakeBeta", M, lambda: (r(2, 3, 4, seed=1),), "beta gradient summed over the batch only", "shape",
    make=lambda cls: fill(cls(3, logscale=True)), more=[lambda: (r(2, 3, seed=2),)])
add("kan_rbf", "KANLayer", M, lambda: (r(4, 3, seed=1),), "1/h missing in the input gradient", "value",
    make=lambda cls: fill(cls(3, 2, n_grid=4)), more=[lambda: (r(1, 3, seed=2),)])


def vq_like(m, z):
    with torch.no_grad():
        i = torch.cdist(z, m.codebook).argmin(1)
        e0, z0 = m.codebook[i].clone(), z.clone()
    return lambda z: (z + (e0 - z0), m.beta * ((z - e0) ** 2).mean() + ((z0 - m.codebook[i]) ** 2).mean(), i)


add("vq_codebook", "VectorQuantizer", M, lambda: (r(6, 2, seed=1),), "commitment weight applied to the codebook term too", "value",
    make=lambda cls: fill(cls(4, 2), scale=1.0), more=[lambda: (r(1, 2, seed=2),)], surrogate=vq_like)
add("arc_margin", "ArcMargin", M, lambda: (r(6, 3, seed=1), ix(0, 1, 2, 3, 0, 1)), "margin slope used also past the threshold", "value",
    make=lambda cls: fill(cls(3, 4, s=5.0, m=1.2)), more=[lambda: (r(2, 3, seed=4), ix(3, 3))])


def dead():
    x = r(2, 2, 2, 3, seed=1, grad=False)
    x[1, :, :, 2] = 0
    return x.requires_grad_()


add("grn", "GRN", M, lambda: (dead(),), "dead channel: 0/0 in the norm", "nan",
    make=lambda cls: fill(cls(3)), more=[lambda: (r(1, 3, 1, 3, seed=2),)])
add("gated_rmsnorm", "RMSNormGated", M, lambda: (r(2, 2, 4, seed=1), r(2, 2, 4, seed=2)), "weight missing in the gate gradient with norm_before_gate", "value",
    make=lambda cls: fill(cls(4, norm_before_gate=True)), more=[lambda: (r(3, 4, seed=3), r(3, 4, seed=4))])
add("planar_arm", "PlanarArm", M, lambda: (r(3, 4, seed=1),), "link directions kept on the module, a second call overwrites them", "state",
    make=lambda cls: fill(cls(4, base=(0.2, -0.1)), lo=0.5, hi=1.5), more=[lambda: (r(1, 4, seed=2),)])
add("rotate_kge", "RotatE", M, lambda: (r(4, 6, seed=1), ix(0, 2, 0, 1), r(4, 6, seed=2)), "head gradient rotated the wrong way", "value",
    make=lambda cls: fill(cls(3, 3)), more=[lambda: (r(1, 6, seed=3), ix(1), r(1, 6, seed=4))])

C = "callable"
add("robust_residual", "robust_residual", C, lambda: (r(3, 4, seed=1), 0, 0.7, u(3, 4, seed=2), "sum"), "factor 2 missing for alpha 0 (Cauchy)", "value",
    more=[lambda: (r(5, seed=3), -2.0), lambda: (r(5, seed=3), -float("inf"), 1.3, None, "none")])


def lattice(k=2, seed=1):
    g = torch.stack(torch.meshgrid(*[torch.arange(k, dtype=torch.float64)] * 3, indexing="ij"), -1).reshape(-1, 3)[:6]
    return (1.15 * g + 0.1 * r(6, 3, seed=seed, grad=False)).requires_grad_()


def pairs(n):
    return torch.combinations(torch.arange(n)).t().contiguous()


add("lj_energy", "lj_energy", C, lambda: (lattice(), pairs(6)), "no reaction on the second atom", "value",
    more=[lambda: (lattice(seed=2), pairs(6), torch.tensor([4.0, 4.1, 4.2], dtype=torch.float64), 0.5, 1.05, 1.7)])
add("power_to_db", "power_to_db", C, lambda: (t([1.3, 0.4, 0.002], [0.7, 3.1, 0.0005]), 1.0, 1e-10, 20.0), "floor moves with the maximum: that path is missing", "value",
    more=[lambda: (u(2, 3, seed=1),), lambda: (t(0.3, 1e-3, 0.5), 2.0, 1e-2, None)])
add("black_scholes", "black_scholes", C, lambda: (t(100, 95, 110.0), t(100, 105, 100.0), t(0.5, 1, 2.0), s(0.03), t(0.2, 0.3, 0.25), True), "no gradient for the rate", "None for",
    more=[lambda: (t(1.0, 1.2), t(1.1, 0.9), t(0.3, 1.5), s(-0.01), t(0.4, 0.15))])
add("ewma_vol", "ewma_vol", C, lambda: (r(5, 2, seed=1), u(2, seed=2), 0.8), "lam missing in the gradient of the initial variance", "value",
    more=[lambda: (r(1, 3, seed=3), u(3, seed=4), 0.94)])
add("weighted_bag", "weighted_bag", C, lambda: (r(5, 2, seed=1), ix(1, 0, 4, 1, 1, 0, 3), ix(0, 3, 3, 5), r(7, seed=2), "sum", 0), "padding entries get a gradient on their weight", "value",
    more=[lambda: (r(4, 3, seed=3), ix(1, 2, 2, 0), ix(0, 2), None, "mean", 2), lambda: (r(4, 3, seed=3), ix(1, 2, 2, 0), ix(0, 1))])
add("srgb_decode", "srgb_decode", C, lambda: (t([0.9, 0.02, 0.3], [0.001, 0.5, 0.035]),), "branch chosen by the threshold of the other curve", "value",
    more=[lambda: (t(-0.2, 0.0, 1.0),)])
add("expectile_td", "expectile_td", C, lambda: (r(5, seed=1), r(5, seed=2), r(5, seed=3), t(0, 0, 1, 0, 1, grad=False), 0.9, 0.8), "error saved as a constant, second derivatives wrong", "value",
    more=[lambda: (r(2, seed=4), r(2, seed=5), r(2, seed=6, grad=False), t(1, 0, grad=False))], order="second")
add("topk_gate", "topk_gate", C, lambda: (r(3, 5, seed=1), 2), "multiplies the incoming gradient in place", "modified",
    more=[lambda: (r(2, 4, seed=2), 3, False), lambda: (r(2, 4, seed=2), 1)])
add("chamfer", "chamfer", C, lambda: (r(2, 4, 3, seed=1), r(2, 5, 3, seed=2)), "scatter overwrites where scatter_add is meant", "value",
    more=[lambda: (r(1, 1, 3, seed=3), r(1, 3, 3, seed=4))])
add("jagged_to_dense", "jagged_to_dense", C, lambda: (r(7, 2, seed=1), ix(0, 4, 4, 5, 7), 3), "rows cut off receive the gradient of the last slot", "value",
    more=[lambda: (r(4, 1, seed=2), ix(0, 1, 4), 4, -1.0), lambda: (r(5, 1, seed=2), ix(0, 1, 3), 2)])
add("uncertainty_sum", "uncertainty_sum", C, lambda: ([r(3, seed=1), r(2, 2, seed=2), s(0.8)], t(0.2, -0.3, 0.5)), "1/numel of the mean missing", "value",
    more=[lambda: ([r(2, seed=3)], t(0.1))])
