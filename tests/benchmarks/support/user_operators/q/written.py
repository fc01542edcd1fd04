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


# ---- audio and signals
_case("teager_energy", "TeagerKaiser", lambda: (_r(2, 6),), [lambda: (_r(3, seed=3),), lambda: (_r(2, 2, 5, seed=4),)],
      "the two neighbours' contributions land on each other's sample", ["swapped", "off by one"])
_case("comb_filter", "FeedbackComb", lambda: (_r(2, 7), _f(0.6), 2), [lambda: (_r(5, seed=3), _f(-0.4), 1), lambda: (_r(2, 2, 3, seed=4), _d(_f(0.9)), 3), lambda: (_d(_r(1, 4)), _f(0.5), 3)],
      "the feedback gain's gradient takes the incoming gradient instead of the one run back through the recursion", ["wrong tensor", "missing term"])
_case("spectral_flatness", "SpectralFlatness", lambda: (_u(2, 5, 3, lo=0.1, hi=2), 1), [lambda: (_u(3, 4, lo=0.1),), lambda: (_u(4, seed=2, lo=0.05), 0, 1e-2)],
      "the bins are counted along the last axis whatever dim is", ["axis", "option", "factor"])
_case("goertzel", "GoertzelPower", lambda: (_r(2, 5), _f([0.11, 0.3, 0.42])), [lambda: (_r(1, 4, seed=2), _f([0.2])), lambda: (_d(_r(3, 6, seed=3)), _f([0.05, 0.25]))],
      "the cosine part of the frequency's gradient has the wrong sign", ["sign"])
_case("mdct_frames", "MDCTFrames", lambda: (_r(3, 8), _u(8, seed=1, lo=0.2)), [lambda: (_r(2, 2, 4), _u(4, seed=1)), lambda: (_r(2), _u(2, seed=1)), lambda: (_d(_r(1, 6)), _u(6, seed=2))],
      "the frames are saved after they were windowed, so the window's gradient has the window in it", ["saved tensor", "wrong tensor"])
# ---- images
_case("integral_image", "IntegralImage", lambda: (_r(2, 3, 4), True), [lambda: (_r(2, 1, 2, 3, seed=2),), lambda: (_r(3, 2, seed=3), True), lambda: (_r(1, 4),)],
      "for exclusive sums backward shifts the same way as forward instead of back", ["off by one", "option"])
_case("space_to_depth", "SpaceToDepth", lambda: (_r(1, 2, 4, 6), 2), [lambda: (_r(2, 1, 3, 3, seed=2), 3), lambda: (_r(1, 3, 2, 2), 1), lambda: (_r(2, 2, 2, 4), 2)],
      "rows and columns inside a block change places on the way back", ["transpose", "axis"])
_case("spatial_soft_argmax", "SoftArgmax2d", lambda: (_r(2, 2, 3, 4), _f(0.6)), [lambda: (_r(1, 1, 2, 2), _f([1.5])), lambda: (_r(1, 3, 1, 4, seed=4), _d(_f(2.0)))],
      "the temperature's gradient lacks one of its two divisions by the temperature", ["missing factor"])
_case("rgb_to_ycbcr", "RGBToYCbCr", lambda: (_u(2, 3, 2, 2),), [lambda: (_u(1, 3, 1, 4, seed=3),), lambda: (_r(3, 3, 2, 1),)],
      "backward applies the colour matrix instead of its transpose", ["transpose"])
_case("gamma_correct", "GammaCorrection", lambda: (_u(2, 3, 2, 3),), [lambda: (_u(1, 3, 2, 1, seed=4),), lambda: (_u(2, 3, 1, 1, seed=2, lo=-0.3),)],
      "pixels below the floor are left out of gamma's gradient, though the lifted value still depends on gamma", ["saturated", "mask"],
      make=lambda cls: _positive(cls(3, gain=1.3, floor=0.3)))
_case("roi_mean", "RoIMean", lambda: (_r(2, 4, 5), _t([[0, 0, 2, 1], [1, 1, 4, 3], [3, 0, 3, 0]])), [lambda: (_r(1, 3, 2), _t([[0, 1, 1, 2]])), lambda: (_r(3, 2, 2), _t([[0, 0, 1, 1], [0, 0, 1, 1]]))],
      "where boxes overlap the later one overwrites the earlier one's gradient", ["repeated index"])
# ---- losses
_case("wing_loss", "WingLoss", lambda: (_r(3, 2, scale=2), _r(3, 2, seed=1, scale=2), 3.0, 0.5), [lambda: (_r(2, 4, scale=9), _r(2, 4, seed=1)), lambda: (_r(3), _d(_r(3, seed=1)), 0.5, 2.0)],
      "the logarithmic part lacks the division by eps; hidden at eps = 1", ["missing factor", "option"])
_case("concordance", "ConcordanceLoss", lambda: (_r(2, 5), _r(2, 5, seed=1, shift=0.8)), [lambda: (_r(4, seed=2), _r(4, seed=3)), lambda: (_r(2, 2, 3), _d(_r(2, 2, 3, seed=1)))],
      "the difference of the means keeps its sign in y's gradient", ["sign"])
_case("barlow_twins", "BarlowTwinsLoss", lambda: (_r(4, 3), _r(4, 3, seed=1), 0.1), [lambda: (_r(2, 2), _r(2, 2, seed=1), 5e-3), lambda: (_r(3, 4), _d(_r(3, 4, seed=1)), 1.0)],
      "the cross-correlation's gradient is not transposed for the first view", ["transpose"])
# ---- language models
_case("entmax15", "Entmax15", lambda: (_r(2, 5, scale=1.5),), [lambda: (_r(3, 2, 2, seed=1), 0), lambda: (_r(4, seed=3, scale=3),), lambda: (_r(2, 3, 2, seed=7, scale=0.3), -2)],
      "the mean is weighted by the probabilities, as in softmax, instead of by their square roots", ["wrong tensor"])
_case("pointer_mix", "PointerMix", lambda: (_u(2, 1, lo=0.2, hi=0.8), _u(2, 5, seed=1), _u(2, 3, seed=2), _t([[1, 4, 1], [0, 2, 2]])),
      [lambda: (_u(1, 1), _u(1, 2, seed=1), _d(_u(1, 4, seed=2)), _t([[0, 0, 0, 1]])), lambda: (_u(3, 1), _d(_u(3, 4, seed=1)), _u(3, 1, seed=2), _t([[3], [0], [2]]))],
      "p_gen's gradient forgets what the copy distribution loses", ["missing term"])
_case("t5_bias", "RelativeBias", lambda: (_r(2, 2, 3, 4),), [lambda: (_r(1, 2, 6, 2, seed=1),), lambda: (_r(3, 2, 1, 1, seed=2),)],
      "the pairs of one bucket overwrite each other's gradient", ["repeated index"], make=lambda cls: _fill(cls(2)), order="first")
_case("softmax_one", "QuietSoftmax", lambda: (_r(2, 4),), [lambda: (_r(3, 2, 2, seed=2), 1), lambda: (_r(3, seed=3, shift=-4.0), 0)],
      "the probabilities are renormalised in backward although they do not sum to one", ["factor"])
_case("talking_heads", "TalkingHeadsMix", lambda: (_r(2, 2, 2, 3), _r(2, 3, seed=1), _t([[False, True, True], [False, False, True]])),
      [lambda: (_r(1, 3, 2, 2), _r(3, 1, seed=1)), lambda: (_r(1, 2, 1, 2), _d(_r(2, 2, seed=1)), _t([[[[True, False]]]]))],
      "the mask is inverted in backward; shows only with a mask", ["mask", "option"])
_case("fused_linear_ce", "FusedLinearCrossEntropy", lambda: (_r(5, 3), _r(4, 3, seed=1), _t([1, 0, -100, 3, 3])), [lambda: (_r(2, 2), _r(3, 2, seed=1), _t([0, 2]), 8), lambda: (_r(3, 2), _d(_r(2, 2, seed=1)), _t([1, 1, 7]), 1, 7)],
      "the weight's gradient, computed in forward, is not scaled by the incoming one", ["ignores grad_output", "missing factor"], order="first", second=None)
_case("dpo_loss", "DPOLoss", lambda: (_r(3, shift=-2.0), _r(3, seed=1), _d(_r(3, seed=2)), _d(_r(3, seed=3)), 0.5, 0.2),
      [lambda: (_r(2), _r(2, seed=1), _r(2, seed=2), _r(2, seed=3)), lambda: (_r(4), _d(_r(4, seed=1)), _r(4, seed=2), _d(_r(4, seed=3)), 2.0, 0.1)],
      "the smoothed part has the wrong sign; shows only with label_smoothing", ["sign", "option"])
_case("grouped_linear", "GroupedLinear", lambda: (_r(6, 3), _r(3, 3, 2, seed=1), [3, 1, 2]), [lambda: (_r(3, 2), _r(2, 2, 2, seed=1), [0, 3]), lambda: (_r(2, 1), _d(_r(1, 1, 4, seed=1)), [2])],
      "an expert's weight gradient is averaged over its rows instead of summed", ["factor", "reduction"])
# ---- graphs and knowledge bases
_case("sym_norm_adj", "SymNormAdjacency", lambda: (_u(4, 4),), [lambda: (_u(2, 3, 3, seed=1),), lambda: (_u(1, 1, seed=1),)],
      "the column's share of the degree's gradient is taken to equal the row's, true only for symmetric g * a", ["transpose", "axis"])
_case("pair_norm", "PairNorm", lambda: (_r(4, 3),), [lambda: (_r(5, 2, seed=1),), lambda: (_r(3, 1, seed=4),)],
      "the norm's term is averaged over all entries instead of over the nodes", ["factor"], make=lambda cls: cls(2.0))
_case("complex_score", "ComplExScore", lambda: (_c(4, 2), _c(2, 2, seed=1), _t([[0, 1, 3], [2, 0, 0], [1, 1, 1]])), [lambda: (_c(2, 3), _c(1, 3, seed=1), _t([[0, 0, 1]])), lambda: (_d(_c(3, 1)), _c(3, 1, seed=1), _t([[0, 2, 1], [2, 2, 1]]))],
      "the relation's gradient is the conjugate of the right one", ["complex", "conjugate"])
_case("laplacian_energy", "DirichletEnergy", lambda: (_r(4, 2), _u(4, seed=1), _t([[0, 1, 2, 0], [1, 2, 3, 3]])), [lambda: (_r(3, 1), _u(2, seed=1), _t([[0, 1], [2, 2]])), lambda: (_r(2, 3), _d(_u(1, seed=1)), _t([[1], [0]]))],
      "the target node is pushed the same way as the source", ["sign"])
# ---- recommendation
_case("logq_softmax", "LogQSoftmax", lambda: (_r(3, 2), _r(3, 2, seed=1), _r(3, seed=2), 0.7, _t([5, 2, 5])), [lambda: (_r(4, 2), _r(4, 2, seed=1), _r(4, seed=2), 1.0), lambda: (_r(2, 3), _d(_r(2, 3, seed=1)), _d(_r(2, seed=2)), 0.5)],
      "log_q's gradient is summed over the items instead of the users", ["axis"])
_case("din_pool", "InterestPool", lambda: (_r(2, 2), _r(2, 4, 2, seed=1), _t([2, 3])), [lambda: (_r(1, 3), _r(1, 2, 3, seed=1)), lambda: (_d(_r(3, 1)), _r(3, 2, 1, seed=1), _t([0, 2, 1]))],
      "backward counts one step past each length; shows only with lengths", ["off by one", "mask", "option"])
# ---- physics and partial differential equations
_case("leapfrog_chain", "LeapfrogChain", lambda: (_r(3), _r(3, seed=1), _f(1.5), _f(0.4), 0.2, 3), [lambda: (_r(2, 2), _r(2, 2, seed=1), _d(_f(1.0)), _f(0.1), 0.1, 1), lambda: (_r(2, seed=3), _d(_r(2, seed=4)), _f(2.0), _d(_f(0.0)), 0.3, 4)],
      "the reversed drift comes after the first half kick, which is then taken at the wrong position", ["wrong order", "wrong tensor"], order="first", second=None)
_case("morse_bonds", "MorseBonds", lambda: (_r(4, 3), _u(3, lo=0.5), _f(1.2), _u(3, seed=1, lo=0.7, hi=1.3), _t([[0, 1], [1, 2], [3, 1]])),
      [lambda: (_r(2, 3, seed=2), _f(1.0), _f([0.8]), _d(_f(1.0)), _t([[1, 0]])), lambda: (_d(_r(3, 3)), _u(2), _u(2, seed=1), _f(0.9), _t([[0, 1], [0, 2]]))],
      "the force points along the bond vector instead of its unit vector", ["missing factor"])
_case("rusanov_flux", "RusanovFlux", lambda: (_r(2, 4), _r(2, 4, seed=1)), [lambda: (_r(3, seed=2), _r(3, seed=3)), lambda: (_r(1, 2, seed=5), _d(_r(1, 2, seed=6)))],
      "the wave speed's gradient goes to the slower state", ["mask", "inverted"], order="first", second=None)
_case("spectral_derivative", "SpectralDerivative", lambda: (_r(2, 6), 1), [lambda: (_r(5, seed=1), 2), lambda: (_r(2, 2, 4, seed=2), 3, 1.0), lambda: (_r(1, 7, seed=2), 1, 3.0)],
      "the adjoint's symbol is not conjugated, so odd orders have the wrong sign", ["sign", "conjugate"])
_case("coulomb_energy", "CoulombEnergy", lambda: (_r(4, 3), _r(4, seed=1)), [lambda: (_r(2, 3, seed=2), _r(2, seed=3), 1.0), lambda: (_r(3, 2, seed=3), _d(_r(3, seed=4)), 0.3)],
      "a charge's gradient counts only the pairs in which it comes first", ["missing term"])
_case("barycentric_interp", "BarycentricInterp", lambda: (_u(3, 2), _u(3, 3, 2, seed=1, hi=4), _r(3, 3, 2, seed=2)), [lambda: (_u(1, 2), _u(1, 3, 2, seed=3, hi=2), _r(1, 3, 1, seed=4)), lambda: (_d(_u(2, 2)), _u(2, 3, 2, seed=2, hi=3), _d(_r(2, 3, 4, seed=2)))],
      "a vertex gets the point's slope through its own weight only", ["missing term"])
_case("hermite_spline", "CubicHermite", lambda: (_f([0.3, 1.7, 2.9, 0.9]), _d(_f([0.0, 0.5, 2.0, 3.2])), _r(4, 2), _r(4, 2, seed=1)),
      [lambda: (_f([0.2]), _d(_f([0.0, 2.0])), _r(2, 1), _r(2, 1, seed=1)), lambda: (_d(_f([0.4, 0.6])), _d(_f([0.0, 1.0, 1.5])), _r(3, 3), _d(_r(3, 3, seed=1)))],
      "the slopes' gradient lacks the interval's length; hidden for unit knots", ["missing factor"])
# ---- robotics and geometry
_case("euler_zyx", "EulerZYX", lambda: (_r(2, 3),), [lambda: (_r(3, seed=3),), lambda: (_r(2, 1, 3, seed=4),)],
      "the roll axis is not turned by the pitch", ["missing factor", "missing term"])
_case("dh_transform", "DHTransform", lambda: (_r(3), _r(3, seed=1), _r(3, seed=2), _r(3, seed=3)), [lambda: (_r(1), _d(_r(1, seed=1)), _r(1, seed=2), _r(1, seed=3)), lambda: (_r(2, 2), _r(2, 2, seed=1), _d(_r(2, 2, seed=2)), _d(_r(2, 2, seed=3)))],
      "theta's gradient misses the y component of the link offset", ["missing term"])
_case("solid_angle", "SolidAngle", lambda: (_r(2, 3, 3),), [lambda: (_r(3, 3, seed=2),), lambda: (_r(2, 1, 3, 3, seed=3),)],
      "the operands of b's cross product are swapped", ["sign", "swapped"])
_case("point_to_plane", "PointToPlane", lambda: (_r(6, scale=0.3), _r(3, 3, seed=1), _r(3, 3, seed=2), _r(3, 3, seed=3), _u(3, lo=0.2)),
      [lambda: (_r(6), _r(1, 3, seed=1), _d(_r(1, 3, seed=2)), _d(_r(1, 3, seed=3))), lambda: (_d(_r(6)), _r(2, 3, seed=1), _r(2, 3, seed=2), _r(2, 3, seed=3), _d(_u(2)))],
      "the weights' gradient is formed after the incoming gradient was weighted; shows only with weights", ["wrong order", "option"])
_case("unicycle_rollout", "UnicycleRollout", lambda: (_r(2, 3), _r(2, 3, 2, seed=1), 0.3), [lambda: (_r(1, 3), _r(1, 1, 2, seed=1)), lambda: (_d(_r(1, 3)), _r(1, 4, 2, seed=1), 1.0)],
      "the turn rate is given the heading's gradient one step early", ["off by one"], order="first", second=None)
_case("spherical_coords", "ToSpherical", lambda: (_r(4, 3),), [lambda: (_r(3, seed=2),), lambda: (_r(2, 2, 3, seed=3, scale=3),)],
      "the polar angle's share of z's gradient lacks one division by the radius", ["missing factor", "several outputs"])
# ---- quantum and linear algebra
_case("state_fidelity", "StateFidelity", lambda: (_c(2, 3), _c(2, 3, seed=1)), [lambda: (_c(4, seed=2), _c(4, seed=3)), lambda: (_c(1, 2, 2, seed=2), _d(_c(1, 2, 2, seed=3)))],
      "the overlap is conjugated in both states' gradients", ["complex", "conjugate"])
_case("spd_sqrt", "SPDSqrt", lambda: ((_d(_r(2, 3, 3)) @ _d(_r(2, 3, 3)).mT + 0.5 * torch.eye(3, dtype=torch.float64)).requires_grad_(),),
      [lambda: (_f([[2.0, 0.3], [0.3, 1.0]]),), lambda: (_f([[1.5]]),), lambda: (_f([[1.0, 0.0], [0.0, 1.0]]),)],
      "the Sylvester equation's denominator takes one eigenvalue twice", ["missing term"], order="first", second=None)
# ---- finance
_case("nelson_siegel", "NelsonSiegel", lambda: (_r(2, 3), _u(2, seed=1, lo=0.5, hi=3), _d(_f([0.25, 1.0, 5.0, 10.0]))), [lambda: (_r(1, 3), _f([1.8]), _f([0.5, 2.0])), lambda: (_d(_r(3, 3)), _u(3, seed=1, lo=1.0, hi=2), _f([3.0]))],
      "the curvature loading's derivative has the wrong sign in its exponential", ["sign"])
_case("average_drawdown", "AverageDrawdown", lambda: (_f([[1.0, 1.3, 1.1, 0.9, 1.4, 1.2], [1.0, 0.8, 0.7, 0.9, 0.95, 0.6]]),), [lambda: (_u(3, 4, lo=0.5, hi=2),), lambda: (_u(1, 1, lo=0.5),)],
      "of all days under one peak only the last counts for the peak's gradient", ["repeated index"], order="first")
# ---- chemistry and biology
_case("hill_response", "HillResponse", lambda: (_u(3, 2, lo=0.2, hi=4),), [lambda: (_u(2, seed=1, lo=0.2),), lambda: (_u(2, 2, 2, seed=2, lo=0.1, hi=2),)],
      "the slope's gradient forgets log_ec50; hidden at its initial zero", ["missing term"], make=lambda cls: _fill(cls(2), slope=1.0))
_case("debye_scattering", "DebyeScattering", lambda: (_r(4, 3), _u(4, lo=0.5, hi=2), _f([0.5, 1.5, 3.0])), [lambda: (_r(2, 3, seed=2), _r(2, seed=1), _d(_f([1.0]))), lambda: (_d(_r(3, 3)), _d(_r(3, seed=1)), _f([0.7, 2.0]))],
      "the self scattering term's derivative lacks its factor 2", ["factor"])
_case("tanimoto", "TanimotoSimilarity", lambda: (_u(3, 4), _u(2, 4, seed=1)), [lambda: (_u(1, 2), _u(1, 2, seed=1)), lambda: (_u(2, 3), _d(_u(3, 3, seed=1)))],
      "the inner product's occurrence in the denominator is forgotten", ["missing term"])
_case("hmm_forward", "HMMLogLikelihood", lambda: (_r(2), _r(2, 2, seed=1), _r(2, 4, 2, seed=2)), [lambda: (_r(3), _r(3, 3, seed=1), _r(1, 2, 3, seed=2)), lambda: (_d(_r(2)), _r(2, 2, seed=1), _d(_r(3, 1, 2, seed=2)))],
      "the sequences' incoming gradients are summed before weighting, right for a batch of one only", ["reduction"], order="first", second=None)
# ---- quantisation and compression
_case("vq_losses", "VectorQuantise", lambda: (_r(5, 2), _r(3, 2, seed=1), 1.0), [lambda: (_r(2, 3), _r(4, 3, seed=1)), lambda: (_r(3, 1), _d(_r(2, 1, seed=1)), 0.5)],
      "the loss's share of the codebook's gradient is dropped as soon as the codes are used as well", ["missing term", "several outputs"])
_case("groupwise_dequant_linear", "GroupwiseDequantLinear", lambda: (_r(2, 4), _t([[1, -3, 7, 0], [5, 2, -8, 4], [0, 1, 1, -2]], torch.int8), _u(3, 2, lo=0.1, hi=0.5), _r(3, 2, seed=1)),
      [lambda: (_r(1, 3), _t([[1, 2, 3]], torch.int8), _u(1, 1, lo=0.1), _d(_r(1, 1))), lambda: (_d(_r(2, 2)), _t([[4, 2], [-3, 1]], torch.int8), _u(2, 2, lo=0.1), _r(2, 2))],
      "the zero point's gradient lacks the scale", ["missing factor"])
# ---- layers
_case("group_norm_affine", "GroupNormAffine", lambda: (_r(2, 4, 3),), [lambda: (_r(1, 4, 2, 2, seed=1),), lambda: (_r(3, 4, seed=2),)],
      "the weight is applied after the projection although it varies inside a group; hidden at the initial ones", ["wrong order"], make=lambda cls: _fill(cls(2, 4)))
_case("scalar_mix", "ScalarMix", lambda: (_d(_r(3)), _r(2, 2, seed=1), _r(2, 2, seed=2), _r(2, 2, seed=3)), [lambda: (_r(2), _r(3, seed=1), _r(3, seed=2)), lambda: (_r(1), _r(1, 2, seed=1)), lambda: (_r(2), _d(_r(2, seed=1)), _r(2, seed=2))],
      "needs_input_grad is read one place too early: with frozen logits the first layer gets None", ["none", "needs_input_grad", "off by one"])
_case("squareplus", "SquarePlus", lambda: (_r(2, 4),), [lambda: (_r(3, seed=1), 1.0), lambda: (_r(2, 1, 2, seed=1, scale=3), 0.5)],
      "the hand-written second derivative lacks b; hidden at b = 1", ["missing factor", "double backward"], order="second")
_case("masked_scale", "KeepAndScale", lambda: (_r(2, 3), _t([[True, False, True], [False, True, True]]), 0.4), [lambda: (_r(2, 2, 2), _t([True, False]), 0.0), lambda: (_r(4), _t([False, False, True, True]), 0.5)],
      "the incoming gradient is masked in place", ["modified input"], order="first")
