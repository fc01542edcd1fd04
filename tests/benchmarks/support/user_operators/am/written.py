import torch
import torch.nn.functional as F


def r(*shape, seed=0, grad=True, scale=1.0, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=g, dtype=torch.float64) * scale + shift
    return x.requires_grad_(grad)


def u(*shape, lo=0.0, hi=1.0, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(*shape, generator=g, dtype=torch.float64) * (hi - lo) + lo
    return x.requires_grad_(grad)


def t(values, grad=True):
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def ix(values):
    return torch.tensor(values, dtype=torch.long)


def tf(values):
    return torch.tensor(values, dtype=torch.bool)


def fill(m, seed=5, scale=0.4):
    m = m.double()
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * scale)
    return m


CASES = []
CASES.append(dict(
    name="kepler_anomaly", object="EccentricAnomaly", kind="function",
    inputs=lambda: (r(3, 5), u(3, 1, lo=0.1, hi=0.6, seed=1), 20),
    more=[lambda: (r(4), u(4, lo=0.05, hi=0.5, seed=2)), lambda: (r(2, 3, seed=4), t(0.3))],
    bug='gradient of the eccentricity lacks the implicit factor 1/(1 - e cos E)',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="frac_diff", object="FracDiff", kind="function",
    inputs=lambda: (r(2, 3, 7), u(3, lo=0.2, hi=0.9, seed=1), 5),
    more=[lambda: (r(1, 2, 4, seed=3), u(2, lo=-0.4, hi=0.4, seed=2))],
    bug='the recursion for dw/dd uses the weight of the new lag instead of the previous one',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="tridiag_solve", object="Tridiag", kind="function",
    inputs=lambda: (r(2, 6, scale=0.4), u(2, 6, lo=2, hi=3, seed=1), r(2, 6, seed=2, scale=0.4), r(2, 6, seed=3)),
    more=[lambda: (r(4, scale=0.3), u(4, lo=2, hi=3, seed=1), r(4, seed=2, scale=0.3), r(4, seed=3))],
    bug='the transposed system swaps the off-diagonals without moving them by one row',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="hurdle_lognormal", object="HurdleLogNormal", kind="function",
    inputs=lambda: (r(6), r(6, seed=1), r(6, seed=2), t([0.0, 1.5, 0.0, 3.2, 0.7, 12.0], False)),
    more=[lambda: (r(3), r(3, seed=1), r(3, seed=2), t([0.0, 0.0, 2.0], False), 'none'), lambda: (r(3), r(3, seed=1), r(3, seed=2), t([0.4, 0.0, 2.0], False), 'sum')],
    bug='derivative of softplus missing in the gradient of the raw scale',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="ray_composite", object="CompositeRays", kind="function",
    inputs=lambda: (r(3, 5, 3), u(3, 5, lo=0.1, hi=0.9, seed=1), ix([5, 3, 4]), r(3, seed=2)),
    more=[lambda: (r(2, 4, 1), u(2, 4, lo=0.1, hi=0.8, seed=1), ix([0, 4]))],
    bug='the gradient of the second output (remaining transmittance) never reaches alpha',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="turn_angles", object="TurnAngle", kind="function",
    inputs=lambda: (r(5, 3), ix([[0, 1, 2], [3, 0, 2], [1, 4, 2], [4, 3, 1]])),
    more=[lambda: (r(4, 3, seed=3), ix([[0, 1, 2], [1, 2, 3]]))],
    bug='contributions of triplets that share their last node are lost',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="group_neighbours", object="GroupNeighbours", kind="function",
    inputs=lambda: (r(6, 2), ix([[1, 2, -1], [0, -1, -1], [5, 4, 3], [2, 2, -1]]), ix([0, 1, 4, 3])),
    more=[lambda: (r(4, 3), ix([[1, -1], [0, 3]]), ix([2, 2]), False)],
    bug='gradient at the -1 padding goes to node 0 and to the centre',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="rician_nll", object="rician_nll", kind="callable",
    inputs=lambda: (u(2, 4, lo=0.5, hi=2.5), u(2, 4, lo=0.3, hi=2, seed=1), u(2, 1, lo=0.6, hi=1.2, seed=2), tf([[1, 1, 0, 1], [1, 0, 1, 1]])),
    more=[lambda: (u(5, lo=0.5, hi=2.5), u(5, lo=0.3, hi=2, seed=1), t(0.8), None, 'none')],
    bug='factor 2 missing on the Bessel term of the gradient of sigma',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="ternary_group", object="TernaryGroup", kind="function",
    inputs=lambda: (r(3, 8), u(3, 2, lo=0.5, hi=1.5, seed=1)),
    more=[lambda: (r(2, 6, seed=4), u(2, 3, lo=0.5, hi=1.5, seed=1), 2, 0.5)],
    surrogate=lambda w, s, size=4, clip=1.0: (lambda a, b, *_: ((w.reshape(w.shape[0], -1, size).sign() * (w.reshape(w.shape[0], -1, size).abs() > 0.7 * w.reshape(w.shape[0], -1, size).abs().mean(-1, keepdim=True))).reshape(w.shape) + (a - w) * (w.abs() <= clip)) * b.repeat_interleave(size, 1)),
    bug='gradient of the group scale is averaged over the group instead of summed',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="pointer_mix", object="PointerMix", kind="function",
    inputs=lambda: (u(2, 1, lo=0.2, hi=0.8), u(2, 5, seed=1), u(2, 4, seed=2), ix([[0, 6, 2, 6], [5, 1, 1, 3]]), 2),
    more=[lambda: (u(1, 1, lo=0.2, hi=0.8), u(1, 3, seed=1), u(1, 3, seed=2), ix([[0, 2, 2]]), 0)],
    bug="p_gen's gradient lacks the part through (1 - p_gen) * attention",
    fits=['value'], order="first",
))

CASES.append(dict(
    name="poincare_distance", object="poincare_distance", kind="callable",
    inputs=lambda: (r(3, 4, scale=0.2), r(3, 4, scale=0.2, seed=1), t(0.8)),
    more=[lambda: (r(2, 3, 2, scale=0.2), r(2, 3, 2, scale=0.2, seed=1), t(1.3))],
    bug='gradient of the curvature lacks the derivative of 1/sqrt(c)',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="haar_lifting", object="HaarAnalysis", kind="module",
    make=lambda cls: cls(3),
    inputs=lambda: (r(2, 11),),
    more=[lambda: (r(2, 2, 8),)],
    bug='at an odd length the repeated last sample gets no gradient from its copy',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="fractional_delay", object="frac_delay", kind="callable",
    inputs=lambda: (r(3, 7), t([1.3, 0.4, -2.6])),
    more=[lambda: (r(2, 5, seed=2), t([9.5, 3.7]))],
    bug='sign of the gradient of the delay',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="pcen_layer", object="PCEN", kind="module",
    make=lambda cls: fill(cls(3)),
    inputs=lambda: (u(2, 3, 6, lo=0.2, hi=2),),
    more=[lambda: (u(1, 3, 1, lo=0.2, hi=2),), lambda: (u(1, 3, 2, lo=0.2, hi=2),)],
    bug='backward overwrites the saved smoothed energy in place',
    fits=['modified'], order="first",
))

CASES.append(dict(
    name="dora_linear", object="DoRALinear", kind="module",
    make=lambda cls: fill(cls(4, 3, 2, 0.5)),
    inputs=lambda: (r(2, 3, 4, grad=False),),
    more=[lambda: (r(5, 4),)],
    bug='no weight gradients when the input itself needs none (first layer)',
    fits=['None for'], order="first",
))

CASES.append(dict(
    name="cox_strata", object="CoxLoss", kind="module",
    make=lambda cls: cls(),
    inputs=lambda: (r(7), t([2., 3., 2., 5., 3., 1., 2.], False), ix([1, 1, 1, 0, 1, 1, 0])),
    more=[lambda: (r(6, seed=2), t([2., 3., 2., 5., 3., 1.], False), tf([1, 0, 1, 1, 1, 1]), ix([0, 0, 0, 1, 1, 1]))],
    bug='at tied times the others of the same time are left out of the risk set in backward',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="plackett_luce_topk", object="PlackettLuceTopK", kind="function",
    inputs=lambda: (r(3, 5), ix([[0, 3, 1], [4, 2, 0], [1, 0, 2]]), ix([3, 2, 1]), tf([[1, 1, 1, 1, 1], [1, 1, 1, 0, 1], [1, 1, 1, 1, 0]])),
    more=[lambda: (r(2, 4, seed=2), ix([[0, 3, 1, 2], [3, 2, 0, 1]]), ix([4, 0]))],
    bug='places beyond the depth of a list get gradient',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="isotonic_pav", object="IsotonicPAV", kind="function",
    inputs=lambda: (t([0.3, -0.2, 0.9, 0.4, 0.5, 1.7, 1.1]), u(7, lo=0.5, hi=2)),
    more=[lambda: (t([0.3, 0.5, -1.0, 0.1]), u(4, lo=0.5, hi=2), False)],
    bug='no gradient for the weights',
    fits=['None for'], order="first",
))

CASES.append(dict(
    name="water_filling", object="water_filling", kind="callable",
    inputs=lambda: (t([[0.3, 1.9, 0.7, 4.0], [1.2, 0.1, 2.6, 0.9]]), t([1.1, 1.5])),
    more=[lambda: (t([0.3, 0.9, 0.7]), t(3.0))],
    bug="the level's gradient is averaged over all channels instead of the active ones",
    fits=['value'], order="first",
))

CASES.append(dict(
    name="minmod_faces", object="MinmodFaces", kind="module",
    make=lambda cls: cls(1.5, 'linear'),
    inputs=lambda: (r(2, 9).detach().cumsum(1).requires_grad_(),),
    more=[lambda: (t([0.1, 0.5, 1.4, 1.1, 0.2, 0.15]),)],
    bug="with bc='linear' the last cell loses the gradient of the repeated difference",
    fits=['value'], order="first",
))

CASES.append(dict(
    name="biquad_filter", object="Biquad", kind="function",
    inputs=lambda: (r(2, 8), t([0.5, -0.3, 0.2]), t([-0.6, 0.25])),
    more=[lambda: (r(5, seed=3), t([0.5, 0.1, 0.2]), t([0.4, 0.1]))],
    bug='the adjoint recursion runs in the incoming gradient itself',
    fits=['modified'], order="first",
))

CASES.append(dict(
    name="si_sdr", object="si_sdr", kind="callable",
    inputs=lambda: (r(2, 9), r(2, 9, seed=1), ix([9, 6])),
    more=[lambda: (r(2, 5, seed=2), r(2, 5, seed=3), None, False)],
    bug="the reference energy's gradient takes the incoming gradient instead of that of the target energy",
    fits=['value'], order="first",
))

CASES.append(dict(
    name="attentive_stats", object="AttentiveStats", kind="module",
    make=lambda cls: fill(cls(3, 0.1)),
    inputs=lambda: ((r(2, 5, 3, grad=False) * torch.tensor([1.0, 0.03, 0.5], dtype=torch.float64)).requires_grad_(), ix([5, 3])),
    more=[lambda: (r(2, 4, 3, seed=4), ix([1, 4]))],
    bug='channels whose deviation lies at the floor still get its gradient',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="l0_gate", object="L0Gate", kind="module",
    make=lambda cls: fill(cls(4)),
    inputs=lambda: (r(3, 4), t([[0.02, 0.4, 0.97, 0.6], [0.3, 0.99, 0.5, 0.01], [0.7, 0.2, 0.45, 0.9]], False)),
    more=[lambda: (r(4, seed=2), t([0.02, 0.4, 0.98, 0.6], False))],
    bug='the closed and fully open gates are found on s, not on the stretched value',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="complex_modrelu", object="ModReLU", kind="function",
    inputs=lambda: (torch.complex(r(2, 3, 4, grad=False), r(2, 3, 4, seed=1, grad=False)).requires_grad_(), t([-0.4, 0.3, -1.0])),
    more=[lambda: (torch.complex(r(3, 2, grad=False), r(3, 2, seed=1, grad=False)).requires_grad_(), t([-0.5, 0.2]))],
    bug='the modulus is treated as constant in the gradient of z',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="holographic_corr", object="circular_correlation", kind="callable",
    inputs=lambda: (r(3, 6), r(6, seed=1)),
    more=[lambda: (r(2, 1, 5), r(2, 3, 5, seed=1)), lambda: (r(4), r(4, seed=1))],
    bug='the conjugate sits on the wrong factor in the gradient of a',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="so3_exp", object="SO3Exp", kind="function",
    inputs=lambda: (t([[0.3, -0.7, 1.1], [0.0, 0.0, 0.0], [0.02, -0.01, 0.03]]),),
    more=[lambda: (r(2, 2, 3),)],
    bug='0/0 in the derivatives of the coefficients at the zero rotation',
    fits=['nan'], order="first",
))

CASES.append(dict(
    name="sampson_distance", object="SampsonDistance", kind="function",
    inputs=lambda: (r(3, 3), r(5, 2, seed=1), r(5, 2, seed=2)),
    more=[lambda: (r(3, 3, seed=4), r(1, 2, seed=1), r(1, 2, seed=2))],
    bug='outer product of the second epipolar line is transposed in the gradient of F',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="idw_interpolate", object="InverseDistanceInterp", kind="function",
    inputs=lambda: (r(4, 3), ix([[0, 1, 2], [3, 1, 0], [2, 1, 3], [0, 1, 3], [2, 0, 3]]), u(5, 3, lo=0.1, hi=1, seed=1)),
    more=[lambda: (r(3, 2), ix([[0, 1], [1, 1]]), u(2, 2, lo=0.1, hi=1, seed=1), 2)],
    bug='gradient of the distances ignores the normalisation of the weights',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="fwfm_pairs", object="FieldWeightedFM", kind="module",
    make=lambda cls: fill(cls(4)),
    inputs=lambda: (r(3, 4, 2),),
    more=[lambda: (r(1, 4, 3, seed=2),)],
    bug='gradient reaches the unused lower triangle and diagonal of r',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="bag_offsets", object="WeightedBag", kind="function",
    inputs=lambda: (r(5, 3), ix([1, 4, 4, 0, 2, 1, 0]), ix([0, 3, 3, 5]), u(7, lo=0.2, hi=1.5, seed=1), 0, 'mean'),
    more=[lambda: (r(4, 2), ix([1, 1, 3]), ix([0, 1]), None)],
    bug="the table's gradient buffer has the default dtype",
    fits=['dtype'], order="first",
))

CASES.append(dict(
    name="tt_embedding", object="TTEmbedding", kind="module",
    make=lambda cls: fill(cls((2, 3), (2, 2), 2, padding_idx=0)),
    inputs=lambda: (ix([[1, 5, 0], [3, 3, 4]]),),
    more=[lambda: (ix([2, 0, 2, 5]),)],
    bug='view of the incoming gradient fails when it is not contiguous',
    fits=['layout'], order="first",
))

CASES.append(dict(
    name="min_gru", object="MinGRU", kind="module",
    make=lambda cls: fill(cls(2, 3)),
    inputs=lambda: (r(2, 5, 2), r(2, 3, seed=1), tf([[0, 0, 1, 0, 0], [0, 0, 0, 0, 1]])),
    more=[lambda: (r(2, 3, 2),), lambda: (r(1, 3, 2), None, tf([[0, 1, 0]]))],
    bug='the gradient of the state passes through a reset',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="hawkes_loglik", object="HawkesLogLik", kind="function",
    inputs=lambda: (t(0.6), t(0.4), t(1.3), t([[0.2, 0.5, 1.7, 2.1], [0.4, 1.1, 0.0, 0.0]], False), ix([4, 2]), 3.0),
    more=[lambda: (t(1.2), t(0.2), t(0.7), t([[0.2, 0.9, 1.7]], False), ix([3]), 2.5)],
    bug='gradient of the decay lacks the factor beta in front of the kernel',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="crps_ensemble", object="crps_ensemble", kind="callable",
    inputs=lambda: (r(2, 3, 4), r(2, 3, seed=1)),
    more=[lambda: (r(3, 5), r(3, seed=1), False, 'none')],
    bug="with fair=True the spread term's gradient is normalised by M^2",
    fits=['value'], order="first",
))

CASES.append(dict(
    name="tweedie_deviance", object="TweedieDeviance", kind="function",
    inputs=lambda: (r(5), u(5, lo=0.3, hi=3, seed=1, grad=False), u(5, lo=0.5, hi=1.5, seed=2), 2),
    more=[lambda: (r(5), t([0.0, 1.0, 3.0, 0.0, 2.0], False), None, 1), lambda: (r(5), t([0.0, 1.2, 3.0, 0.0, 2.0], False), u(5, seed=2))],
    bug='no gradient for the weights although they may be trained',
    fits=['None for'], order="first",
))

CASES.append(dict(
    name="dihedral_angles", object="DihedralAngle", kind="function",
    inputs=lambda: (r(2, 5, 3), ix([[0, 1, 2, 3], [1, 2, 3, 4], [4, 0, 2, 1]])),
    more=[lambda: (r(4, 3, seed=3), ix([[3, 1, 0, 2]]))],
    bug='sign of one term in the gradient of the second atom',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="minimum_image", object="MinimumImageDistance", kind="function",
    inputs=lambda: (u(5, 3, lo=0, hi=3, seed=3), t([3.0, 2.5, 2.8]), ix([[0, 1], [0, 2], [3, 4], [1, 4], [2, 3]])),
    more=[lambda: (u(3, 3, lo=-2, hi=3, seed=4), t([2.0, 2.0, 2.0]), ix([[0, 1], [1, 2]]))],
    bug='gradient of the box multiplies two sums instead of summing the products',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="gauss_splats", object="Splat2D", kind="function",
    inputs=lambda: (u(2, 2, lo=0.5, hi=2.5), r(2, 2, scale=0.3, seed=1), r(2, seed=2), r(2, 3, seed=3), 4, 5),
    more=[lambda: (u(1, 2, lo=0.5, hi=2.5), r(1, 2, scale=0.3, seed=1), r(1, seed=2), r(1, 1, seed=3), 3, 2)],
    bug='sign inside the gradient of the angle',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="affinity_propagation", object="AffinityPropagation", kind="module",
    make=lambda cls: cls(2),
    inputs=lambda: (r(1, 8, 3, 3), r(1, 2, 3, 3, seed=1)),
    more=[lambda: (r(1, 8, 2, 4), r(1, 1, 2, 4, seed=1))],
    bug='sign of the affinity missing in the derivative of the absolute normaliser',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="convex_upsample", object="ConvexUpsample", kind="module",
    make=lambda cls: fill(cls(2)),
    inputs=lambda: (r(1, 2, 2, 2), r(1, 36, 2, 2, seed=1)),
    more=[lambda: (r(2, 1, 1, 2), r(2, 36, 1, 2, seed=1))],
    bug='gradient of the logits lacks the temperature',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="segment_align", object="segment_align", kind="callable",
    inputs=lambda: (r(2, 6), t([[0.3, 3.1], [2.2, 7.4], [-1.3, 2.6]])),
    more=[lambda: (r(1, 1), t([[0.3, 0.6]])), lambda: (r(3, 4), t([[0.37, 2.9]]), 3, 1)],
    bug='zeros_like keeps the strides of feats, so that reshape(-1) is a copy and the sums are lost',
    fits=['layout'], order="first",
))

CASES.append(dict(
    name="partial_rope", object="partial_rope", kind="callable",
    inputs=lambda: (r(2, 3, 2, 5), u(2, lo=0.2, hi=1, seed=1), ix([[0, 1, 2], [3, 4, 6]])),
    more=[lambda: (r(1, 2, 1, 4), u(2, lo=0.2, hi=1, seed=1), ix([[5, 2]]), True)],
    bug='the second derivative takes the saved sines and cosines as constants in the frequencies',
    fits=['value'], order="second",
))

CASES.append(dict(
    name="alibi_attention", object="alibi_softmax", kind="callable",
    inputs=lambda: (r(2, 3, 3, 4), u(3, lo=0.1, hi=0.6, seed=1), tf([[0, 0, 0, 0], [1, 1, 0, 0]])),
    more=[lambda: (r(1, 3, 2, 2), u(3, lo=0.1, hi=0.6, seed=1), None, False)],
    bug='gradient of the slopes is summed over the heads instead of the batch',
    fits=['shape'], order="first",
))

CASES.append(dict(
    name="thin_plate", object="ThinPlate", kind="function",
    inputs=lambda: (t([[0.1, 0.9], [1.0, 0.5], [-0.3, 0.4]]), t([[1.0, 0.5], [0.2, -0.6], [0.8, 1.4]]), r(3, 2), r(3, 2, seed=1)),
    more=[lambda: (r(3, 2), r(2, 2, seed=1), r(2, 1, seed=2))],
    bug='log(0) * 0 where a point lies on a control point',
    fits=['nan'], order="first",
))

CASES.append(dict(
    name="holt_smoother", object="HoltSmoother", kind="module",
    make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 3, 5),),
    more=[lambda: (r(1, 3, 1),), lambda: (r(1, 3, 3, seed=2),)],
    bug="backward reads the levels of the module's last call",
    fits=['state'], order="first",
))

CASES.append(dict(
    name="mean_std_aggregate", object="MeanStdAggregate", kind="module",
    make=lambda cls: fill(cls(2, 3)),
    inputs=lambda: (r(7, 2), ix([0, 2, 2, 0, 3, 2, 0]), 4),
    more=[lambda: (r(3, 2, seed=2), ix([1, 1, 0]), 2)],
    bug='the deviations are kept on the class and overwritten by the next call',
    fits=['state'], order="first",
))

CASES.append(dict(
    name="fourier_shift", object="FourierShift", kind="module",
    make=lambda cls: cls(),
    inputs=lambda: (r(2, 7), t([0.7, -1.4])),
    more=[lambda: (r(2, 2, 6, seed=2), r(2, 2, seed=3))],
    bug='backward takes the phases of the first call with the same shape',
    fits=['state'], order="first",
))

CASES.append(dict(
    name="beta_binomial", object="BetaBinomialNLL", kind="function",
    inputs=lambda: (u(3, 1, lo=0.5, hi=3), u(4, lo=0.5, hi=3, seed=1), t([[0., 2., 5., 1.]], False), t([[4., 3., 5., 9.]], False)),
    more=[lambda: (u(3, lo=0.5, hi=3), u(3, lo=0.5, hi=3, seed=1), t([1., 2., 0.], False), t(6., False))],
    bug='the slopes come from forward, so the second derivative is missing',
    fits=['value'], order="second",
))

CASES.append(dict(
    name="ou_likelihood", object="OULogLik", kind="function",
    inputs=lambda: (r(2, 5), t([[0.3, 0.5, 1.1, 0.2], [0.8, 0.4, 0.0, 0.0]]), t(0.9), t(0.2), t(1.1), ix([5, 3])),
    more=[lambda: (r(2, 3, seed=2), u(2, 2, lo=0.2, hi=1), t(0.6), t(-0.2), t(0.8))],
    bug="theta's gradient lacks the 1/theta of the stationary variance",
    fits=['value'], order="first",
))

CASES.append(dict(
    name="affine_coupling", object="AffineCoupling", kind="module",
    make=lambda cls: fill(cls(4, False, 3), scale=0.8),
    inputs=lambda: (r(3, 4),),
    more=[lambda: (r(2, 2, 4, seed=2),)],
    bug='gradient of the bound forgets that the bound is also inside the tanh',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="lorentz_centroid", object="LorentzCentroid", kind="function",
    inputs=lambda: (torch.cat([(1 + r(4, 2, grad=False).square().sum(1, keepdim=True)).sqrt(), r(4, 2, grad=False)], 1).requires_grad_(), u(3, 4, lo=0.1, seed=1), t(0.9)),
    more=[lambda: (torch.cat([(1 + r(2, 3, grad=False).square().sum(1, keepdim=True)).sqrt(), r(2, 3, grad=False)], 1).requires_grad_(), u(1, 2, lo=0.1, seed=1), t(1.4))],
    bug='Euclidean instead of Minkowski gradient of the norm',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="rotate_score", object="RotatEScore", kind="function",
    inputs=lambda: (r(3, 4), r(2, 2, seed=1), ix([1, 0, 1]), r(3, 2, 4, seed=2)),
    more=[lambda: (r(2, 2), r(3, 1, seed=1), ix([2, 2]), r(2, 1, 2, seed=2), 12.0)],
    bug='the incoming gradient is negated in place',
    fits=['modified'], order="first",
))

CASES.append(dict(
    name="token_unlikelihood", object="TokenUnlikelihood", kind="module",
    make=lambda cls: cls(),
    inputs=lambda: (r(2, 2, 5), ix([[[1, 1, 3], [4, -1, -1]], [[2, 0, 2], [3, -1, 0]]])),
    more=[lambda: (r(1, 3, 4, seed=2), ix([[[1], [-1], [3]]]))],
    bug='a token listed twice gets the gradient of one entry only',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="token_merge", object="TokenMerge", kind="function",
    inputs=lambda: (r(2, 5, 3), u(2, 5, lo=0.5, hi=2, seed=1), ix([[0, 1, 0, 3, 1], [2, 2, 2, 0, 0]]), 4),
    more=[lambda: (r(1, 3, 2), u(1, 3, lo=0.5, hi=2, seed=1), ix([[1, 0, 1]]), 2)],
    bug='gradient of the sizes ignores the denominator of the average',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="sh_color", object="SHColor", kind="function",
    inputs=lambda: (r(3, 9, 2, scale=0.7), r(3, 3, seed=1)),
    more=[lambda: (r(2, 9, 3), r(2, 3, seed=1), 1), lambda: (r(2, 9, 3), r(2, 3, seed=1), 0)],
    bug='derivative of 2 z^2 taken as 2 z',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="van_genuchten", object="VanGenuchten", kind="module",
    make=lambda cls: cls().double(),
    inputs=lambda: (t([[-2.3, 0.4, -0.6], [1.7, -5.2, 0.9]]),),
    more=[lambda: (u(5, lo=-4, hi=-0.1),)],
    bug='saturated points give theta_s no gradient',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="cheb_series", object="cheb_series", kind="callable",
    inputs=lambda: (r(5), u(2, 3, lo=0.2, hi=2.8, seed=1), 0.0, 3.0),
    more=[lambda: (r(1), u(4, lo=-1, hi=1, seed=1), -1.0, 1.0), lambda: (r(2), u(4, lo=-1, hi=1, seed=1), -1.5, 1.0)],
    bug='derivative of the map from [lo, hi] to [-1, 1] missing',
    fits=['value'], order="first",
))

CASES.append(dict(
    name="diode_current", object="SolarCellCurrent", kind="function",
    inputs=lambda: (u(4, lo=0.2, hi=0.6), u(4, lo=0.8, hi=1.5, seed=1), u(4, lo=0.02, hi=0.06, seed=2), u(4, lo=0.05, hi=0.2, seed=3)),
    more=[lambda: (u(2, 2, lo=-0.2, hi=0.5), u(2, 2, lo=0.8, hi=1.5, seed=1), u(2, 2, lo=0.02, hi=0.06, seed=2), u(2, 2, lo=0.05, hi=0.2, seed=3), 0.3)],
    bug='the exponential is taken from forward, which drops it from the second derivative',
    fits=['value'], order="second",
))

CASES.append(dict(
    name="masked_local_mean", object="masked_local_mean", kind="callable",
    inputs=lambda: (r(2, 3, 4), tf([[[1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 0]], [[0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]]])),
    more=[lambda: (r(1, 4, 3), tf([[[1, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]]]), 2)],
    bug='the count is that of the receiving pixel instead of the one that was averaged',
    fits=['value'], order="first",
))
