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


# ---- layers
_case("mgu_cell", "MGUCell", lambda: (_r(3, 2), _r(3, 2, seed=1)), [lambda: (_r(1, 2, seed=2),), lambda: (_d(_r(2, 2, seed=3)), _r(2, 2, seed=4))],
      "the candidate's recurrent weight takes the state before it was gated", ["wrong tensor"], make=lambda cls: _fill(cls(2, 2)))
_case("weight_norm_linear", "WeightNormLinear", lambda: (_r(2, 3),), [lambda: (_r(2, 2, 3, seed=1),), lambda: (_r(3, seed=2),)],
      "the projection uses the scaled weight, not the unit one; hidden at the initial gain of 1", ["wrong tensor", "factor"], make=lambda cls: _fill(cls(3, 2), g=1.5))
_case("squeeze_excite", "SEBlock", lambda: (_r(2, 4, 2, 3),), [lambda: (_r(1, 4, 1, 1, seed=1),), lambda: (_r(1, 4, 3, 2, seed=2),)],
      "the pooled mean is sent back like a sum", ["factor", "mean"], make=lambda cls: _fill(cls(4, reduction=2), scale=1.0))
_case("sru_layer", "SRULayer", lambda: (_r(2, 4, 2), _r(2, 2, seed=1)), [lambda: (_r(1, 2, 2, seed=2),), lambda: (_d(_r(3, 1, 2)), _r(3, 2, seed=1))],
      "the reset gate's peephole weight takes the cell state after the step", ["wrong tensor", "off by one"], make=lambda cls: _fill(cls(2, batch_first=True)), order="first", second=None)
_case("filter_response_norm", "FRN", lambda: (_r(2, 3, 2, 2),), [lambda: (_r(1, 3, 1, 3, seed=1),), lambda: (_r(3, 3, 2, 1, seed=2),)],
      "the learned eps is used by its absolute value, whose sign is forgotten; shows for a negative eps", ["sign", "missing factor"], make=lambda cls: _fill(cls(3), eps=-0.4))
_case("cheby_kan", "ChebyKANLayer", lambda: (_r(3, 2),), [lambda: (_r(1, 2, seed=1, scale=2),), lambda: (_r(4, 2, seed=2),)],
      "the polynomials of the derivative start with t where those of the second kind start with 2 t", ["factor"], make=lambda cls: _fill(cls(2, 2, 3)))
_case("csr_mean_agg", "SAGEMeanConv", lambda: (_r(4, 2), _t([0, 2, 3, 3, 6]), _t([1, 3, 0, 0, 1, 3])), [lambda: (_r(2, 2, seed=1), _t([0, 0, 1]), _t([0])), lambda: (_r(3, 2, seed=2), _t([0, 2, 4, 5]), _t([2, 2, 1, 0, 0]))],
      "a message is divided by the degree of the neighbour instead of the node that averages", ["wrong tensor"], make=lambda cls: _fill(cls(2, 3)))
_case("spectral_linear", "SNLinear", lambda: (_r(2, 3),), [lambda: (_r(3, seed=1),), lambda: (_r(2, 1, 3, seed=2),)],
      "the share of sigma lacks one division by sigma; hidden while sigma is 1", ["missing factor"], make=lambda cls: _fill(cls(3, 2), weight=0.7))
_case("ghost_batch_norm", "GhostBatchNorm1d", lambda: (_r(5, 2),), [lambda: (_r(6, 2, seed=1),), lambda: (_r(2, 2, seed=2),)],
      "the last virtual batch is taken to be a full one; hidden where the batch is divisible", ["factor", "last"], make=lambda cls: _fill(cls(2, virtual_batch_size=3, eps=1e-2)))
_case("dora_linear", "DoRALinear", lambda: (_r(2, 3),), [lambda: (_r(3, seed=1),), lambda: (_r(2, 2, 3, seed=2),)],
      "the row norms are taken to be constants", ["missing term"], make=lambda cls: _fill(cls(3, 4), magnitude=1.0))
_case("hier_softmax", "HierarchicalSoftmaxLoss", lambda: (_r(3, 2), _t([[0, 1, 3], [0, 2, 0], [0, 1, 2]]), _t([[1, -1, 1], [-1, 1, 1], [1, 1, -1]]), _t([3, 2, 2])), [lambda: (_r(1, 2, seed=1), _t([[0, 3]]), _t([[-1.0, 1.0]]), _t([1])), lambda: (_r(2, 2, seed=2), _t([[1, 0], [1, 1]]), _t([[1, 1], [-1, -1]]), _t([2, 0]))],
      "the padding of the paths is not masked in backward", ["mask"], make=lambda cls: _fill(cls(4, 2)))
_case("temporal_shift", "TemporalShift", lambda: (_r(6, 4, 1, 2),), [lambda: (_r(3, 5, 1, 1, seed=1),), lambda: (_r(3, 3, 2, 2, seed=2),)],
      "the channels shifted forwards in time are shifted forwards again on the way back", ["off by one", "sign"], make=lambda cls: cls(3, n_div=4), order="both")
_case("causal_dwconv", "CausalDepthwiseConv", lambda: (_r(2, 2, 4), _r(2, 2, 2, seed=1)), [lambda: (_r(1, 2, 1, seed=2),), lambda: (_d(_r(2, 2, 2)), _r(2, 2, 2, seed=1))],
      "what comes back through the returned state is dropped", ["missing term", "several outputs"], make=lambda cls: _fill(cls(2, kernel_size=3)))
_case("cosine_head", "CosineHead", lambda: ((_d(_r(3, 2)) * _t([[1.0], [0.03], [2.0]])).requires_grad_(),), [lambda: (_r(1, 2, seed=1),), lambda: (_r(4, 2, seed=2),)],
      "rows shorter than eps are projected although their norm is clamped", ["saturated", "clamp"], make=lambda cls: _fill(cls(2, 3, eps=0.1), scale=1.5))
# ---- terse ones
_case("kepler", "Kepler", lambda: (_u(3, 2, hi=6), _u(2, seed=1, lo=0.2, hi=0.6)), [lambda: (_u(4, seed=2, hi=3), _f(0.3), 20), lambda: (_d(_u(2, 1)), _u(1, 3, seed=3, hi=0.5))],
      "the eccentricity's gradient lacks the division by Kepler's derivative", ["missing factor"])
_case("lambertw", "W0", lambda: (_f([0.0, 0.5, 2.0, 10.0]),), [lambda: (_u(2, 3, lo=0.1, hi=5),), lambda: (_f(1.0),)],
      "the closed form divides by z, which is NaN at z = 0, where the derivative is 1", ["nan"])
_case("isotonic_l2", "IsotonicL2", lambda: (_f([0.3, 1.2, 0.7, 0.5, 2.0, 1.9]), _u(6, seed=1, lo=0.5, hi=2)), [lambda: (_f([1.0, 2.0, 3.0]), _u(3, lo=0.5)), lambda: (_f([3.0, 1.0, 0.0, 0.5]), _d(_u(4, lo=0.5)))],
      "pooled weights are added up in place, in a view of the given weights, which change", ["modified input", "in-place"], order="first", second=None)
_case("capped_simplex", "CappedSimplex", lambda: (_f([[2.5, 0.3, 0.6, -1.0], [0.2, 0.5, 0.4, 0.1]]), 2), [lambda: (_r(3, seed=1), 1, 80), lambda: (_r(2, 2, 5, seed=2), 3)],
      "entries at the cap count as free", ["saturated", "clamp"])
_case("herm_solve", "HSolve", lambda: (_c(3, 3), _c(3, 2, seed=1), 0.5), [lambda: (_c(2, 2, 2), _c(2, 2, 1, seed=1), 1.0), lambda: (_d(_c(1, 1)), _c(1, 3, seed=1), 0.1)],
      "the solution is transposed without conjugation", ["complex", "conjugate"])
_case("ridge_fit", "Ridge", lambda: (_r(4, 2), _r(4, seed=1), _f(0.5)), [lambda: (_r(2, 3, 2), _r(2, 3, seed=1), _f(1.0)), lambda: (_d(_r(2, 3)), _r(2, seed=1), _f(2.0))],
      "the target is taken where the residual belongs", ["wrong tensor", "missing term"])
_case("horner", "Horner", lambda: (_c(4), _c(2, 2, seed=1)), [lambda: (_r(3), _r(4, seed=1)), lambda: (_d(_c(1)), _c(2, seed=1)), lambda: (_c(2), _d(_c(3, seed=1)))],
      "the derivative is not conjugated for the point", ["complex", "conjugate"])
_case("toeplitz_mv", "ToeplitzMV", lambda: (_r(5), _r(2, 3, seed=1)), [lambda: (_r(6), _r(3, seed=1)), lambda: (_r(4), _d(_r(2, 1, 2, seed=1)))],
      "the diagonals are gathered from the transposed positions", ["transpose"])
_case("rev_logcumsumexp", "RevLogCumSumExp", lambda: (_r(2, 4),), [lambda: (_r(3, 2, seed=1), 0), lambda: (_r(1, seed=2),), lambda: (_r(2, 3, 2, seed=3), 1)],
      "the incoming gradient is flipped once too often", ["wrong order", "axis"])
_case("ragged_cumsum", "RaggedCumsum", lambda: (_r(6, 2), _t([0, 2, 3, 6]), True), [lambda: (_r(4, seed=1), _t([0, 4]), False), lambda: (_r(3, 1, seed=2), _t([0, 0, 2, 3]), True), lambda: (_r(3, seed=2), _t([0, 1, 1, 3]), False)],
      "exclusive sums are sent back like inclusive ones", ["off by one", "option"])
_case("jagged_bmm", "JaggedDenseBmm", lambda: (_r(5, 2), _r(3, 2, 2, seed=1), _t([0, 2, 2, 5])), [lambda: (_r(3, 3), _r(1, 3, 2, seed=1), _t([0, 3])), lambda: (_d(_r(2, 1)), _r(2, 1, 4, seed=1), _t([0, 1, 2]))],
      "a matrix is reshaped instead of transposed", ["transpose"])
_case("rgb_to_hsv", "Rgb2Hsv", lambda: (_u(5, 3, lo=0.1), 1e-8), [lambda: (_u(2, 2, 3, seed=1), 1e-3), lambda: (_u(3, seed=2, lo=0.2), 0.1)],
      "the hue's dependence on the chroma it is divided by is forgotten", ["missing term"])
_case("xyz_to_lab", "XYZ2Lab", lambda: (_f([[0.3, 0.4, 0.5], [0.004, 0.2, 0.003], [0.9, 0.006, 0.7]]),), [lambda: (_u(2, 2, 3, seed=1),), lambda: (_f([0.001, 0.002, 0.5]),)],
      "the slope of the linear part near black has delta once instead of squared", ["factor", "branch"], order="both")
_case("vtrap", "VTrap", lambda: (_f([-2.0, 0.0, 3.0, 0.5]), _f(1.5)), [lambda: (_r(2, 3, seed=1, scale=3), _f(0.7)), lambda: (_f(-1.0), _f(1.0))],
      "the series at zero is used in forward only: NaN at x = 0", ["nan"])
_case("dct2_fft", "DCT2", lambda: (_r(2, 5), True), [lambda: (_r(4, seed=1), False), lambda: (_r(2, 2, 3, seed=2), True), lambda: (_r(1, 1), True)],
      "the constant term's weight is multiplied by sqrt 2 instead of divided; only with ortho", ["factor", "option"])
_case("channel_shuffle", "Shuffle", lambda: (_r(2, 6, 2), 2), [lambda: (_r(1, 4, 2, 2), 2), lambda: (_r(1, 6, 1, 1, seed=1), 3), lambda: (_r(2, 3, seed=2), 3)],
      "backward shuffles with the same grouping; hidden where the groups are as many as their channels", ["transpose"])
_case("pagerank", "PageRank", lambda: (_u(4, 4, lo=0.1), _f([0.4, 0.3, 0.2, 0.1]), 0.8, 200), [lambda: (_u(2, 2, lo=0.1, seed=1), _d(_f([0.5, 0.5])), 0.85, 250), lambda: (_d(_u(3, 3, lo=0.2)), _u(3, seed=1), 0.5, 100)],
      "the outer product of the ranks and the adjoint is transposed", ["transpose"], order="first", second=None)
_case("gcc_phat", "GccPhat", lambda: (_r(2, 4), _r(2, 4, seed=1), 0.1), [lambda: (_r(5, seed=2), _r(5, seed=3), 1.0), lambda: (_r(1, 3, seed=2), _d(_r(1, 3, seed=3)), 0.5)],
      "the modulus in the derivative of the whitening has eps added, too", ["eps", "wrong tensor"])
_case("neo_hookean", "NeoHookean", lambda: ((torch.eye(3, dtype=torch.float64) + 0.2 * _d(_r(2, 3, 3))).requires_grad_(), _f(1.3), _f(0.7)),
      [lambda: ((torch.eye(3, dtype=torch.float64) + 0.1 * _d(_r(3, 3, seed=1))).requires_grad_(), _f(0.5), _d(_f(2.0))), lambda: (_d(torch.eye(3, dtype=torch.float64)) * 1.2, _f(0.5), _f(2.0))],
      "lam's gradient ignores the incoming one", ["ignores grad_output"])
_case("slerp", "Slerp", lambda: (_unit(2, 4, seed=1), _unit(2, 4, seed=2), _f(0.3)), [lambda: (_unit(3, seed=3), _unit(3, seed=4), _f([0.0])), lambda: (_unit(3, 2, seed=5), _d(_unit(3, 2, seed=6)), _u(3, 1)), lambda: (_d(_unit(2, 3, seed=1)), _d(_unit(2, 3, seed=2)), _f(1.0))],
      "the shares of the angle go to the wrong ends", ["swapped"])
_case("sampson", "Sampson", lambda: (_r(3, 3), _r(4, 2, seed=1), _r(4, 2, seed=2)), [lambda: (_r(3, 3, seed=3), _d(_r(2, 2, seed=1)), _r(2, 2, seed=2)), lambda: (_d(_r(3, 3)), _r(1, 2, seed=4), _d(_r(1, 2, seed=5)))],
      "the denominator's gradient counts the third component of the lines", ["missing factor", "mask"])
_case("analytic_env", "Envelope", lambda: (_r(2, 5),), [lambda: (_r(6, seed=1),), lambda: (_r(1, 2, 3, seed=2),)],
      "the phase factor of the modulus is conjugated", ["complex", "conjugate"])
_case("quick_gelu", "QuickGELU", lambda: (_r(2, 3), 1.702), [lambda: (_r(4, seed=1),), lambda: (_r(1, 2, 2, seed=2, scale=3), 1.0)],
      "the hand-written second derivative has a 1 in place of a 2", ["factor", "double backward"], order="second")
# ---- with flags and checks
_case("masked_bce", "MaskedBCEWithLogits", lambda: (_r(3, 2), _u(3, 2, seed=1), _u(2, seed=2, lo=0.5, hi=3), _t([[True, False], [True, True], [False, True]]), "mean"),
      [lambda: (_r(2, 3), _d(_u(2, 3, seed=1)), _d(_f([1.0, 2.0, 0.5])), None, "mean"), lambda: (_r(2, 2), _u(2, 2), _u(2), _d(_f([[1.0], [0.0]])), "sum"), lambda: (_d(_r(2, 1)), _u(2, 1), _u(1), _t([[True], [True]]), "none")],
      "the mean's gradient is divided by the count of all entries; hidden without a mask", ["factor", "mask", "mean"])
_case("distill_kl", "DistillKL", lambda: (_r(3, 4), _r(3, 4, seed=1), 2.0), [lambda: (_r(2, 3), _d(_r(2, 3, seed=1)), 1.0, _d(_f([0.5, 2.0]))), lambda: (_d(_r(1, 2)), _r(1, 2, seed=1)), lambda: (_r(2, 2), _r(2, 2, seed=3), 3.0, _d(_f([1.0, 0.0])))],
      "the teacher gets None as soon as the student is trained as well", ["none", "needs_input_grad"])
_case("supcon_loss", "SupConLoss", lambda: (_unit(4, 3, seed=1), _t([0, 1, 0, 1])), [lambda: (_unit(5, 2, seed=2), _t([2, 2, 0, 2, 1])), lambda: (_unit(3, 2, seed=3), None, _d(_f([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])))],
      "the gradient is doubled on the anchors' side instead of added on the other", ["transpose", "missing term"], make=lambda cls: cls(0.5, learnable=True).double())
_case("holt_winters", "HoltWinters", lambda: (_r(2, 5), (_r(2, seed=1), _r(2, seed=2), _r(2, 3, seed=3))), [lambda: (_r(1, 7, seed=4),), lambda: (_d(_r(2, 2)), (_d(_r(2, seed=1)), _r(2, seed=2), _d(_r(2, 3, seed=3))))],
      "the season's share of the level's gradient has the wrong sign", ["sign"], make=lambda cls: cls(3).double(), order="first", second=None)
_case("monotone_inverse", "MonotoneInverse", lambda: (_r(2, 2), torch.sinh), [lambda: (_u(3, lo=0.1, hi=0.9), torch.special.ndtr, -6.0, 6.0, 70), lambda: (_u(2, 1, seed=3, lo=-0.5, hi=4), torch.expm1, -3.0, 3.0)],
      "the slope of the inverse is not inverted", ["factor", "wrong formula"])
_case("lotka_volterra", "LotkaVolterraRK4", lambda: (_u(2, 2, lo=0.5, hi=2), _f([1.1, 0.4, 0.3, 0.8]), 0.2, 3), [lambda: (_u(2, seed=1), _f([1.0, 1.0, 1.0, 1.0]), 0.1, 1), lambda: (_d(_u(1, 3, 2)), _u(4, seed=2), 0.5, 2)],
      "the second stage's adjoint takes a whole step where the third started from a half", ["factor"], order="first", second=None)
_case("gev_nll", "GEVNegLogLik", lambda: (_r(4), _f(0.1), _f(1.5), _f(0.2)), [lambda: (_r(3, 2, seed=1), _r(2, seed=2, scale=0.1), _f([2.0, 3.0]), _f(-0.1), "none"), lambda: (_d(_r(3)), _f(0.0), _f([2.0, 2.0, 2.5]), _d(_f(0.3)))],
      "the shape's gradient lacks the exponential's dependence on its base", ["missing term"])
_case("sliding_filter", "SlidingFilter", lambda: (_rt(3, 7), _r(3, seed=1), 2), [lambda: (_r(1, 4), _r(2, seed=1), 1), lambda: (_r(2, 5), _d(_r(5, seed=1)), 3), lambda: (_d(_r(2, 6)), _r(2, seed=1), 3)],
      "backward assumes the strides of a contiguous input", ["contiguous", "strides"], order="both")
_case("carrier", "Carrier", lambda: (_u(4, lo=0.5), _f(0.3), _t([0, 96_000_001, 480_000_123, 1_000_000_007]), 441.3, 48000.0), [lambda: (_f(1.0), _r(3), _t([1, 2, 3]), 1000.0, 16000.0), lambda: (_u(2, 1, lo=0.5), _d(_r(3)), _t([5, 700, 90000]), 3.5, 8000)],
      "the phase is formed in single precision in backward, which is not enough at late samples", ["float32", "dtype"])
_case("wavetable_osc", "WavetableOscillator", lambda: (_u(2, 4, lo=1, hi=4), _u(2, seed=1)), [lambda: (_u(1, 4, lo=20, hi=90, seed=2),), lambda: (_d(_u(3, 2, lo=1, hi=9)), _u(3, seed=3))],
      "of the right hand neighbours that are read several times only one keeps its gradient", ["repeated index"], make=lambda cls: _fill(cls(6, 20.0)), order="first", second=None)
_case("spring_network", "SpringNetwork", lambda: (_u(4, lo=0.5, hi=2), _r(4), _t([[0, 1, 2, 3], [1, 2, 3, 0]]), _t([True, False, False, False])), [lambda: (_u(2, lo=0.5), _d(_r(3)), _t([[0, 1], [1, 2]]), _t([True, False, True])), lambda: (_d(_u(3, lo=0.5)), _r(3, seed=2), _t([[0, 0, 1], [1, 2, 2]]), _t([False, False, True]))],
      "the fixed nodes pass on the incoming gradient, to the loads and, through the adjoint, to the springs", ["mask"])
_case("pauli_rotation", "PauliRotation", lambda: (_c(2, 4), _r(2, seed=1), "y", 1), [lambda: (_c(1, 8), _f(0.7), "x", 0), lambda: (_d(_c(3, 2)), _r(3, seed=2), "z", 0), lambda: (_c(2, 8, seed=2), _d(_r(2)), "x", 1)],
      "the rotation is applied forwards in backward, not its adjoint", ["sign", "conjugate"])
_case("paired_comparison", "Thurstone", lambda: (_r(3), _t([0, 1, 0, 2]), _t([1, 2, 2, 0]), _t([3, 0, 1, 2]), _t([4, 2, 1, 2])), [lambda: (_r(2, seed=1), _t([0]), _t([1]), _t([1]), _t([1])), lambda: (_r(4, seed=2), _t([3, 3]), _t([0, 1]), _t([2, 5]), _t([2, 5]))],
      "the normal density's exponent lacks its half", ["missing factor"])
_case("ohem_loss", "OHEMCrossEntropy", lambda: (_r(5, 3), _t([0, 2, 1, -100, 1])), [lambda: (_r(2, 2, seed=1), _t([0, 1])), lambda: (_r(4, 2, seed=2), _t([1, 1, 0, -100]))],
      "the tensors for backward are kept on the class, so that a second call overwrites those of the first", ["state"], make=lambda cls: cls(keep=2), order="first")
_case("waveshaper", "Waveshaper", lambda: (_r(2, 3),), [lambda: (_r(4, seed=1),), lambda: (_r(1, 2, 2, seed=2),)],
      "the stages are kept without a copy and overwritten by what follows", ["saved tensor", "modified"], make=lambda cls: _fill(cls(3), drive=1.2), order="first", second=None)
_case("mish_act", "MemoryEfficientMish", lambda: (_r(2, 3),), [lambda: (_r(4, seed=1),), lambda: (_r(2, 1, 2, seed=2, scale=3),)],
      "an intermediate of forward is saved, which is a constant when backward is differentiated", ["saved tensor", "double backward"], make=lambda cls: cls(), order="second")
_case("geman_mcclure", "RobustResidual", lambda: (_r(2, 3), _u(2, 3, seed=1)), [lambda: (_r(4, seed=1),), lambda: (_r(2, 2, seed=2), _d(_u(2, 2, seed=3)))],
      "the denominator is detached in backward: the second derivative lacks it", ["detach", "double backward"], make=lambda cls: cls(0.8).double(), order="second")
_case("bachelier", "Bachelier", lambda: (_u(3, lo=0.5, hi=2), _f(1.0), _f(0.4), _u(3, seed=1, lo=0.3, hi=2), _t([1, -1, 1])), [lambda: (_u(2, 1), _d(_u(3)), _f(0.5), _f(1.0), -1, 0.9), lambda: (_f(-0.1), _f(0.2), _u(2, lo=0.2), _d(_f([0.5, 1.5])))],
      "the expiry's gradient divides by the expiry, not its root; hidden at one year", ["factor", "wrong formula"])
