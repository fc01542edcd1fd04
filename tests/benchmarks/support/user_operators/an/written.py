import torch


def r(*shape, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed + 101)
    return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_(grad)


def u(lo, hi, *shape, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed + 202)
    return (torch.rand(*shape, generator=g, dtype=torch.float64) * (hi - lo) + lo).requires_grad_(grad)


def s(v, grad=True):
    return torch.tensor(v, dtype=torch.float64).requires_grad_(grad)


def c(*shape, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed + 303)
    return torch.randn(*shape, generator=g, dtype=torch.complex128).requires_grad_(grad)


def ix(*v):
    return torch.tensor(*v) if len(v) == 1 else torch.tensor(v)


def fill(m, lo=-0.8, hi=0.8, seed=5):
    g = torch.Generator().manual_seed(seed)
    m = m.double()
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.rand(p.shape, generator=g, dtype=torch.float64) * (hi - lo) + lo)
    return m


def dctm(n):
    k = torch.arange(n, dtype=torch.float64)
    m = torch.cos(torch.pi / n * (k[None] + 0.5) * k[:, None]) * (2.0 / n) ** 0.5
    m[0] /= 2.0 ** 0.5
    return m


CASES = []


def case(name, object, kind, inputs, bug, fits=("value",), order="first", more=(), **kw):
    CASES.append(dict(name=name, object=object, kind=kind, inputs=inputs, more=list(more), bug=bug,
                      fits=list(fits), order=order, **kw))


case("ricker_trace", "RickerTrace", "function", lambda: (r(2, 14), s(22.0), 0.004, 5),
     "frequency gradient forgets the -2 term of the product rule", more=[lambda: (r(1, 9), s(12.5), 0.01, 3)])
case("nmo_correct", "NMO", "function",
     lambda: (r(3, 16), u(1.8, 2.6, 16), s([0.01, 0.05, 0.09], False), 0.004),
     "scatter_ instead of scatter_add_: samples that read the same trace sample overwrite each other",
     more=[lambda: (r(2, 12), u(1.4, 1.9, 12), s([0.03, 0.06], False))])
case("langmuir_mix", "CompetitiveLangmuir", "function", lambda: (u(.2, 2, 4, 3), u(.3, 1.5, 3, seed=1), u(1, 3, 3, seed=2)),
     "competition between species lost: own species only in the shared term", more=[lambda: (u(.2, 2, 2, 2), u(.3, 1, 2), u(1, 2, 2))])
case("bs_price", "BSPrice", "function",
     lambda: (s(100.0), u(85, 115, 5), u(.3, 1.5, 5, seed=1), s(0.03), u(.15, .4, 5, seed=2), True),
     "rho of the put uses N(d2) in place of N(-d2)",
     more=[lambda: (u(90, 110, 3), u(90, 110, 3, seed=1), s(0.7), s(0.02), s(0.25))])
case("deemphasis", "DeEmphasis", "function", lambda: (r(2, 9), s(0.85)), "incoming gradient is filtered in place",
     ["modified"], more=[lambda: (r(7), s(-0.4))])
case("ola_frames", "WindowedFrames", "function", lambda: (r(3, 14), u(.2, 1, 5), 3),
     "as_strided in backward takes the saved signal for contiguous", ["layout"], more=[lambda: (r(2, 12), r(4), 4)])
case("spgr_signal", "SPGR", "function",
     lambda: (u(.5, 1.5, 4), u(40, 90, 4, seed=1), u(20, 60, 4, seed=2), s([.1, .3, .6], False), 15.0, 4.0),
     "derivative by E1 leaves the denominator out")
case("cplx_shrink", "ComplexShrink", "function", lambda: (c(3, 5), s(0.4)), "radial part without the conjugate",
     more=[lambda: (c(6, seed=2), s(0.25))])
case("so3_exp", "SO3Exp", "function", lambda: (torch.cat([r(3, 3).detach(), torch.zeros(1, 3).double()]).requires_grad_(),),
     "0/0 at the identity: small-angle branch missing in one coefficient", ["nan"], more=[lambda: (r(2, 2, 3, seed=3),)])
case("quat_points", "RotatePoints", "function", lambda: (r(2, 4), r(2, 5, 3, seed=1)), "view on a non-contiguous incoming gradient",
     ["layout"], more=[lambda: (r(3, 4, seed=4), r(3, 2, 3, seed=5))])
case("add_rmsnorm", "FusedAddRMSNorm", "function", lambda: (r(2, 3, 4), r(2, 3, 4, seed=1), u(.5, 1.5, 4)),
     "gradient of the residual stream output is dropped", more=[lambda: (r(3, 5), r(3, 5, seed=1), r(5), 1e-3)])
case("rope_apply", "ApplyRope", "function", lambda: (r(1, 3, 2, 6), ix([[0, 2, 7]]), 100.0, True),
     "interleaved layout: gradient put together as two halves", more=[lambda: (r(2, 2, 1, 4), ix([[0, 1], [3, 4]]))])
case("clamped_glu", "ClampedGLU", "function", lambda: (u(-3, 3, 3, 8), 1.702, 2.0),
     "input kept in fp8 for backward", ["dtype", "value"], more=[lambda: (r(2, 6),)])
case("moe_combine", "MoECombine", "function",
     lambda: (r(2, 3, 4), ix([[0, 4], [-1, 3], [5, -1], [2, -1]]), u(.1, .9, 4, 2)),
     "dropped tokens add their gradient to slot 0", more=[lambda: (r(2, 2, 3), ix([[0, 3], [1, 2]]), u(.1, .9, 2, 2))])
case("zloss_xent", "ZLossXent", "function", lambda: (r(5, 6), ix(1, 0, -100, 5, 2), 0.1), "z-loss gradient lacks the factor 2",
     more=[lambda: (r(3, 4, seed=2), ix(1, 0, 3))])
case("edge_softmax", "EdgeSoftmax", "function", lambda: (r(7, 2), ix(0, 1, 1, 3, 0, 3, 3), 4),
     "pools the bare gradient, not gradient times attention", more=[lambda: (r(4, 1), ix(0, 0, 0, 2), 3)])
case("pna_std", "SegmentStd", "function", lambda: (r(6, 3), ix(0, 0, 2, 0, 3, 3), 5), "0/0 for nodes with a single message",
     ["nan"], more=[lambda: (r(4, 2), ix(0, 0, 1, 1), 2)])
case("bpr_triplets", "BPRLoss", "function",
     lambda: (r(3, 4), r(5, 4, seed=1), ix(0, 0, 1, 2), ix(0, 1, 1, 2), ix(4, 3, 4, 4), 0.01),
     "repeated negatives do not accumulate", more=[lambda: (r(2, 3), r(3, 3), ix(0, 1), ix(0, 1), ix(2, 2), 0.0)])
case("fm_pairwise", "FMPairwise", "function", lambda: (r(4, 5), r(5, 3, seed=1)), "self-interaction not taken out of the factor gradient")
case("ray_composite", "RayComposite", "function",
     lambda: (u(.1, 2, 3, 5), u(0, 1, 3, 5, 3, seed=1), u(.1, .5, 3, 5, seed=2, grad=False), u(.2, 1, 3)),
     "density gradient forgets the background behind the ray", more=[lambda: (u(.1, 2, 1, 3), u(0, 1, 1, 3, 3), u(.1, .5, 1, 3, grad=False), s([.0, .5, 1.]))])
case("splat_2d", "Splat2D", "function",
     lambda: (u(0, 3, 4, 2), torch.tensor([[1., .3, .8], [.6, -.2, .9], [1.5, .5, 1.], [.7, 0., .7]]).double().requires_grad_(),
              u(.3, 1, 4), u(0, 3, 9, 2, seed=4, grad=False)),
     "off-diagonal conic entry has the factor of the diagonal ones")
case("kde_score", "KDELogDensity", "function", lambda: (r(4), r(7, seed=1), s(-0.3)), "saved responsibilities multiplied in place",
     ["modified"], more=[lambda: (r(2, seed=4), r(3, seed=5), s(0.2))])
case("beta_binom", "BetaBinomialLogProb", "function",
     lambda: (u(.5, 3, 3), u(.5, 3, 3, seed=1), s([[0., 3, 5], [2, 7, 1]], False), s([[4., 9, 5], [8, 7, 6]], False)),
     "b takes the digamma of the successes, not of the failures")
case("isotonic_fit", "Isotonic", "function", lambda: (s([.3, -.4, 1.2, .9, .1, 2., 1.7]), u(.5, 2, 7, grad=False)),
     "projects the gradient instead of applying the adjoint (weights on the wrong side)",
     more=[lambda: (r(5, seed=9), torch.ones(5).double())])
case("dlyap", "DiscreteLyapunov", "function", lambda: (u(-.4, .4, 3, 3), r(3, 3)), "takes solution and gradient for symmetric")
case("pid_windup", "PID", "function", lambda: (s([.5, .9, 1.3, .2, -.7, -.4, .3]), s([1.2, .7, .05]), 0.1, 0.2),
     "gradient runs through the saturated integrator", more=[lambda: (r(5), s([.4, 1.1, .02]), 0.05, 10.0)])
case("symbol_bits", "GaussianBits", "function", lambda: (u(-4, 4, 3, 4), u(-1, 1, 3, 4, seed=1), u(-.5, .8, 3, 4, seed=2)),
     "uses the mass kept by forward, a constant to the second derivative", order="second")
case("dct_codes", "DCTCodes", "function", lambda: (r(3, 6), u(.2, .9, 6, grad=False)), "inverse transform not transposed",
     surrogate=lambda x, t: (lambda x, t: x @ dctm(x.shape[1]).t() / t))
case("elo_season", "EloSeason", "function",
     lambda: (u(1400, 1700, 4), ix([[0, 1], [2, 1], [3, 0], [0, 1], [2, 3]]), s([1., .5, 0., 0., 1.]), 32.0),
     "no gradient for the scores, though the final ratings depend on them", ["None for"])
case("shift_rule", "ReuploadCircuit", "function", lambda: (r(5), r(3, seed=1)), "data gradient shifts all gates at once",
     more=[lambda: (r(2, seed=3), r(2, seed=4))])
case("state_fidelity", "Fidelity", "function", lambda: (c(3, 4), c(3, 4, seed=1)), "overlap not conjugated in the gradient of the bra")

case("pcen_frontend", "PCEN", "module", lambda: (u(.1, 3, 2, 3, 6),), "gradient of r keeps the reduced dimensions", ["shape"],
     make=lambda cls: fill(cls(3, s=0.2), .3, .9), more=[lambda: (u(.1, 3, 1, 3, 4, seed=7),)])
case("sinc_bands", "SincBands", "module", lambda: (r(2, 14),), "lower edge: upper edge moves along, its part is missing",
     make=lambda cls: fill(cls(3), -.2, .2))
case("reset_recurrence", "PackedRNN", "module",
     lambda: (r(2, 5, 3), torch.tensor([[1, 0, 0, 1, 0], [1, 0, 1, 0, 0]]).bool()),
     "states kept on the class, a second call overwrites them", ["state"], make=lambda cls: fill(cls(3)),
     more=[lambda: (r(1, 3, 3, seed=3), torch.tensor([[0, 0, 1]]).bool())])
case("hat_edges", "HatEdges", "module", lambda: (u(-1.3, 1.3, 9, 3),), "cells read from the module, a second call overwrites them",
     ["state"], make=lambda cls: fill(cls(3)), more=[lambda: (u(-1.5, 1.5, 4, 3, seed=3),)])
case("std_weight_linear", "StdWeightLinear", "module", lambda: (r(3, 5),), "std kept from forward, a constant to the second derivative",
     order="second", make=lambda cls: fill(cls(5, 4)))
case("stream_norm", "StreamNorm", "module", lambda: (r(6, 3),), "buffers kept by reference and updated after the forward", ["state"],
     make=lambda cls: fill(cls(3, momentum=0.3)), more=[lambda: (r(4, 3, seed=8),)])
case("deq_tanh", "DEQ", "module", lambda: (r(3, 4),), "solves with the Jacobian instead of its transpose",
     make=lambda cls: fill(cls(4), -.25, .25))
case("lora_linear", "LoRALinear", "module", lambda: (r(2, 3, 4),), "incoming gradient scaled in place", ["modified"],
     make=lambda cls: fill(cls(4, 5)), more=[lambda: (r(3, 4),)])
case("rev_coupling", "RevCoupling", "module", lambda: (r(3, 6),), "rebuilds the input in place in a saved tensor", ["modified"],
     make=lambda cls: fill(cls(6)))
case("lj_typed", "TypedLennardJones", "module",
     lambda: (s([[0., 0, 0], [1.1, .1, 0], [.2, 1.2, .3], [1.4, 1.3, .9], [3.9, 0, .2]]), ix(0, 1, 1, 0, 1),
              ix([[0, 0, 0, 1, 1, 2, 1, 0], [1, 2, 3, 2, 3, 3, 4, 4]])),
     "sigma also moves the energy shift at the cutoff", make=lambda cls: fill(cls(2), -.2, .1))
case("weighted_history", "WatchHistory", "module", lambda: (ix([[1, 3, 0], [3, 3, 2]]), u(.2, 1, 2, 3)),
     "gradient of the table allocated in the default dtype", ["dtype"], make=lambda cls: fill(cls(5, 4)),
     more=[lambda: (ix([[0, 0], [4, 1]]), u(.2, 1, 2, 2))])
case("cheb_filter", "ChebFilter", "module", lambda: (r(5, 3, grad=False), u(-.5, .5, 5, 5, grad=False)),
     "coefficients get no gradient where the node features need none", ["None for"], make=lambda cls: fill(cls(3, 2, 4)),
     more=[lambda: (r(4, 3), u(-.5, .5, 4, 4, grad=False))])


def lsq_surrogate(m, x):
    v = x / m.step.detach()
    res, low, high = (v.round() - v).detach().clone(), v < m.qn, v > m.qp
    return lambda x: torch.where(low, m.qn * m.step, torch.where(high, m.qp * m.step, x + res * m.step))


case("lsq_act", "LSQAct", "module", lambda: (u(-3, 3, 8, 3),), "step gradient below the range uses -qp where it must be qn",
     make=lambda cls: fill(cls(3), .3, .6), surrogate=lsq_surrogate)


def arcs(cls):
    m = cls(4, 3).double()
    with torch.no_grad():
        m.A.copy_(torch.tensor([[0., 2, .75, .5], [3, .25, 1, 0], [1, 1.5, 0, 4]]))
    return m


case("max_plus", "MaxPlusStep", "module", lambda: (s([[1., -1, 0, -3], [0, .5, .25, -.5]]),), "ties get the whole gradient each",
     make=arcs, more=[lambda: (s([[.5, .25, 2.5, -2.]]),)])
case("prony_relax", "Prony", "module", lambda: (u(.1, 3, 2, 4),), "no gradient for the times", ["None for"],
     make=lambda cls: fill(cls(3)), more=[lambda: (u(.1, 3, 5),)])
case("safe_pade", "SafePade", "module", lambda: (u(-2, 2, 3, 4),), "denominator coefficients lose the sign where the polynomial is negative",
     make=lambda cls: fill(cls(4, 3)), more=[lambda: (r(6),)])
case("crf_partition", "CRFPartition", "module", lambda: (r(3, 5, 3), ix(5, 2, 3)), "transitions counted in the padding, too",
     make=lambda cls: fill(cls(3)), more=[lambda: (r(2, 3, 3, seed=4),)])

case("great_circle", "great_circle", "callable",
     lambda: (u(-60, 60, 5), u(-120, 120, 5, seed=1), u(-60, 60, 5, seed=2), u(-120, 120, 5, seed=3)),
     "first latitude also enters through its cosine")
case("van_leer", "van_leer", "callable", lambda: (r(3, 4), r(3, 4, seed=1)), "gradients of the two slopes exchanged")
case("ragged_lse", "ragged_logsumexp", "callable", lambda: (r(8, 2), ix(0, 3, 4, 8)), "first row of a segment counted to the one before",
     more=[lambda: (r(3, 3), ix(0, 3))])
case("mod_arrhenius", "rates", "callable", lambda: (u(-1, 2, 3), u(-1, 2, 3, seed=1), u(2, 12, 3, seed=2), u(300, 900, 4)),
     "temperature gradient forgets the power-law prefactor", more=[lambda: (r(2), r(2, seed=1), u(3, 9, 2), u(250, 400, 3), 298.15)])
case("bond_pv", "bond_pv", "callable", lambda: (u(.01, .08, 3), u(2, 6, 5), s([.5, 1., 1.5, 2., 2.5]), "quarterly"),
     "modified duration divides by 1 + y, not 1 + y / f",
     more=[lambda: (u(.01, .08, 2), u(2, 6, 3), s([1., 2., 3.])), lambda: (u(.01, .08, 2), u(2, 6, 3), s([1., 2., 3.]), "continuous")])
case("planar_arm", "planar_arm", "callable", lambda: (r(2, 4), u(.3, 1, 4)), "a joint turns the links after it: cumulates the wrong way",
     more=[lambda: (r(2, 3), u(.3, 1, 2, 3))])
case("poincare_dist", "poincare_distance", "callable", lambda: (u(-.4, .4, 4, 3), u(-.4, .4, 4, 3, seed=1)),
     ".data in backward cuts the second derivative", order="second")
case("clip_bundle", "clip_bundle", "callable", lambda: ([r(3, 2), r(4, seed=1), s(0.6)], 0.7), "projection per tensor, not joint",
     more=[lambda: ([r(2), r(3, seed=1)], 50.0)])
case("depth_tv", "depth_tv", "callable",
     lambda: (u(1, 3, 4, 5), torch.tensor([[1, 1, 1, 1, 0], [1, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]]).bool()),
     "backward looks at the pixel only, not at its neighbours, for holes", more=[lambda: (u(1, 3, 3, 3),)])
case("inst_freq", "instantaneous_frequency", "callable", lambda: (u(-3, 3, 2, 5), 64, 8000), "an argument more than gradients returned",
     ["number of gradients"], more=[lambda: (u(-3, 3, 3, 4), 64, 8000, s([.4, 1.1, 2.0], False))])
case("nash_cascade", "runoff", "callable", lambda: (u(0, 5, 9, grad=False), s(1.7), s(2.4)),
     "parameters get no gradient where the rain needs none", ["None for"], more=[lambda: (u(0, 5, 6), s(2.1), s(1.3), 0.5)])
case("smooth_rank", "smooth_rank", "callable",
     lambda: (r(2, 5), 0.5, torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]).bool()), "a score also changes the ranks of the others",
     more=[lambda: (r(1, 4), 0.8)])
