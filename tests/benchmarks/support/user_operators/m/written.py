"""The operators' cases.

Besides the keys of every case: "more" are two further inputs, "shows" inputs at which the wrong version differs,
"scenario" (few cases) what has to happen for it to show: two_forwards (`shows`, then `inputs`, then the first one's
backward), two_backwards (of one forward), input_changed (forward alters its arguments, the gradient is right);
"tol" the difference counted as one, where it is below 1e-6.
"""
import torch

CASES = []


def _case(name, object, inputs, more, bug, fits, shows=None, make=None, kind="function", **extra):
    case = {"name": name, "group": name, "object": object, "inputs": inputs, "more": list(more), "kind": kind,
            "bug": bug, "fits": list(fits), "shows": shows or inputs}
    if make is not None:
        case["make"] = make
    case.update(extra)
    CASES.append(case)


def r(*shape, s=0, grad=True, dtype=torch.float64):
    g = torch.Generator().manual_seed(s)
    return torch.randn(*shape, generator=g, dtype=dtype).requires_grad_(grad)


def u(*shape, s=0, lo=0.0, hi=1.0, grad=True):
    g = torch.Generator().manual_seed(s)
    return (lo + (hi - lo) * torch.rand(*shape, generator=g, dtype=torch.float64)).requires_grad_(grad)


def v(data, grad=True):
    return torch.tensor(data, dtype=torch.float64).requires_grad_(grad)


def i(data):
    return torch.tensor(data, dtype=torch.long)


def b(data):
    return torch.tensor(data, dtype=torch.bool)

# --- statistics and calibration
_case("student_t_nll", "StudentTNLL",
      lambda: (r(4, 3, s=1), r(3, s=2), u(3, s=3, lo=0.5, hi=2), u(1, s=4, lo=2, hi=5)),
      [lambda: (r(5, s=1), r(5, s=2), u(5, s=3, lo=0.5, hi=2), u(5, s=4, lo=1, hi=9)),
       lambda: (r(2, 1, 3, s=1), r(4, 1, s=2), v(1.3), v([[4.0]]))],
      "the gradient of df lacks the term from z^2/df inside the log1p", ["missing term"])
_case("clayton_copula", "ClaytonLogDensity",
      lambda: (u(5, s=1, lo=0.1, hi=0.9), u(5, s=2, lo=0.1, hi=0.9), v(1.5)),
      [lambda: (u(3, 2, s=3, lo=0.1, hi=0.9), u(3, 2, s=4, lo=0.1, hi=0.9), v(0.7)),
       lambda: (u(1, s=3, lo=0.1, hi=0.9), u(1, s=4, lo=0.1, hi=0.9), v([2.5]))],
      "the gradients of u and v are returned in swapped order", ["order"])
_case("cox_partial_likelihood", "CoxPartialLikelihood",
      lambda: (r(5, s=1), v([3.0, 1.0, 4.0, 2.5, 5.0], False), b([1, 0, 1, 1, 0])),
      [lambda: (r(6, s=2), v([2.0, 2, 1, 3, 3, 3], False), b([1, 1, 1, 1, 0, 1])),
       lambda: (r(3, s=2), v([2.0, 2, 1], False), b([1, 0, 0]))],
      "backward builds risk sets from ranks, so subjects with equal times are not all at risk together",
      ["ties"], shows=lambda: (r(6, s=2), v([2.0, 2, 1, 3, 3, 3], False), b([1, 1, 1, 1, 0, 1])))
_case("weibull_aft", "WeibullAFTLoss",
      lambda: (r(4, s=1), v(0.8), r(4, s=2), b([1, 1, 1, 1])),
      [lambda: (r(6, s=3), v(1.4), r(6, s=4, grad=False), b([1, 0, 1, 0, 0, 1])),
       lambda: (r(2, s=5), v(0.6), r(2, s=6), b([0, 0]))],
      "the gradient of sigma counts the 1/sigma of censored rows too", ["mask"],
      shows=lambda: (r(6, s=3), v(1.4), r(6, s=4), b([1, 0, 1, 0, 0, 1])))
_case("zero_inflated_poisson", "ZeroInflatedPoissonNLL",
      lambda: (r(2, 3, s=1), r(2, 3, s=2), i([[0, 1, 3], [2, 0, 0]])),
      [lambda: (r(4, 1, s=3), r(4, 1, s=4), i([[0], [5], [1], [2]])),
       lambda: (r(1, 5, s=5), r(1, 5, s=6), i([[0, 0, 0, 0, 0]]))],
      "for zero counts the log-rate gradient is weighted with w instead of 1-w", ["branch", "wrong factor"])
_case("von_mises_nll", "VonMisesNLL",
      lambda: (r(4, s=1), r(4, s=2), u(4, s=3, lo=0.5, hi=4)),
      [lambda: (r(5, s=1), r(5, s=2), u(5, s=3, lo=0.5, hi=9), "mean"),
       lambda: (r(3, s=1), r(3, s=2), u(3, s=3, lo=0.1, hi=1), "sum")],
      "with reduction='mean' the gradient is not divided by the count", ["option", "factor"],
      shows=lambda: (r(5, s=1), r(5, s=2), u(5, s=3, lo=0.5, hi=9), "mean"))
_L = lambda d, s: (torch.tril(r(d, d, s=s, grad=False)) * 0.4 + 1.5 * torch.eye(d, dtype=torch.float64)).requires_grad_()
_case("mvn_scale_tril", "MVNLogProb",
      lambda: (r(4, 3, s=1), r(3, s=2), _L(3, 3)),
      [lambda: (r(2, 2, s=4), r(2, s=5), _L(2, 6)), lambda: (r(5, 1, s=4), r(1, s=5), _L(1, 6))],
      "the gradient of scale_tril is not restricted to the lower triangle", ["mask", "triangle"])
_case("pinball_loss", "PinballLoss",
      lambda: (r(4, 3, s=1), r(4, s=2)),
      [lambda: (r(5, 2, s=1), r(5, s=2), (0.05, 0.95), "none"), lambda: (r(3, 1, s=1), r(3, s=2), [0.3], "sum")],
      "the mean reduction divides by the rows, not by rows times quantiles", ["factor"])
_case("quantile_huber", "QuantileHuberLoss",
      lambda: (r(2, 3, s=1), r(2, 4, s=2), u(3, s=3, grad=False)),
      [lambda:
               (r(3, 2, s=4), r(3, 2, s=5), u(2, s=3, grad=False), 0.5),
       lambda: (r(1, 4, s=4), r(1, 1, s=5), u(4, s=3, grad=False), 2.0)],
      "outside the threshold the slope is sign(u)/kappa instead of sign(u), wrong unless kappa is 1",
      ["option", "factor"], shows=lambda: (r(3, 2, s=4), r(3, 2, s=5), u(2, s=3, grad=False), 0.5))
_case("crps_gaussian", "CRPSGaussian",
      lambda: (r(4, s=1), u(4, s=2, lo=0.5, hi=2), r(4, s=3)),
      [lambda: (r(2, 3, s=4), u(2, 3, s=5, lo=0.5, hi=2), r(2, 3, s=6)),
       lambda: (v(0.3), v(0.7), v(-0.4))],
      "None is returned for the observation's gradient", ["none"])
_case("crps_ensemble", "EnsembleCRPS",
      lambda: (r(3, 4, s=1), r(3, s=2)),
      [lambda: (r(2, 3, s=3), r(2, s=4), True), lambda: (r(2, 1, s=3), r(2, s=4))],
      "with fair=True the spread's gradient is still divided by M^2", ["option", "factor"],
      shows=lambda: (r(2, 3, s=3), r(2, s=4), True))
_case("temperature_scaling", "TemperatureScaling",
      lambda: (r(4, 3, s=1), i([0, 2, 1, 1])),
      [lambda: (r(5, 2, s=2), i([0, -100, 1, -100, 0])), lambda: (r(1, 4, s=3), i([3]))],
      "ignored rows still add to the temperature's gradient", ["mask", "padding"], kind="module",
      make=lambda cls: cls(1.7).double(),
      shows=lambda: (r(5, 2, s=2), i([0, -100, 1, -100, 0])))

# --- signal and audio
_case("pre_emphasis", "PreEmphasis", lambda: (r(2, 6, s=1),),
      [lambda: (r(5, s=2),), lambda: (r(1, 2, 3, s=3),)],
      "the last sample receives the first sample's gradient (roll instead of shift)", ["boundary"],
      kind="module", make=lambda cls: cls(0.9).double())
_case("one_pole_filter", "OnePoleFilter", lambda: (r(2, 5, s=1), u(2, s=2, lo=0.2, hi=0.9)),
      [lambda: (r(1, 7, s=3), u(1, s=4)), lambda: (r(3, 1, s=5), u(3, s=6))],
      "the output needed in backward is kept on the class, so a second forward before backward spoils it",
      ["state"], shows=lambda: (r(2, 5, s=8), u(2, s=9, lo=0.2, hi=0.9)), scenario="two_forwards")
_case("frame_signal", "FrameSignal", lambda: (r(2, 8, s=1), 4, 4),
      [lambda: (r(2, 9, s=2), 4, 2), lambda: (r(1, 7, s=3), 2, 3)],
      "backward averages overlapping frames instead of summing them", ["overlap", "factor", "repeated index"],
      shows=lambda: (r(2, 9, s=2), 4, 2))
_case("power_spectrum", "PowerSpectrum", lambda: (r(2, 8, s=1),), [lambda: (r(7, s=2),), lambda: (r(2, 1, 6, s=3),)],
      "irfft doubles the interior bins, so their gradient is twice too large", ["factor"])
_case("amplitude_to_db", "PowerToDB", lambda: (u(2, 5, s=1, lo=0.1, hi=2),),
      [lambda: (v([[1.0, 0.02, 0.5, 0.005], [2.0, 0.3, 0.008, 0.04]]),),
       lambda: (v([[[3.0, 0.3], [0.05, 0.002]]]),)],
      "bins clamped to max - top_db no longer pass their gradient to the maximum", ["clamp", "missing term"],
      kind="module", make=lambda cls: cls(1e-2, 14.0),
      shows=lambda: (v([[1.0, 0.02, 0.5, 0.005], [2.0, 0.3, 0.008, 0.04]]),))
_case("mu_law", "MuLawCompress", lambda: (u(5, s=1, lo=0.05, hi=1),),
      [lambda: (v([[-0.5, 0.3], [0.9, -0.05]]), 15.0), lambda: (v([-0.7]), 3.0)],
      "x is used for |x| in the derivative, wrong for negative samples", ["sign", "value"],
      shows=lambda: (v([-0.5, 0.3, 0.9, -0.05]), 15.0))
_case("fractional_delay", "FractionalDelay", lambda: (r(2, 6, s=1), v([1.3, 2.6])),
      [lambda: (r(3, 5, s=2), v([0.4, -1.7, 5.5])), lambda: (r(1, 3, s=3), v([0.25]))],
      "the delay's gradient has the wrong sign", ["sign"])
_case("complex_power_compress", "PowerLawCompress", lambda: (r(2, 3, s=1, dtype=torch.complex128),),
      [lambda: (r(4, s=2, dtype=torch.complex128), 0.5), lambda: (r(1, 2, 2, s=3, dtype=torch.complex128), 1.7, 1e-3)],
      "the incoming gradient is not conjugated in the conjugate Wirtinger term", ["conjugate"])
_case("si_sdr", "SISDR", lambda: (r(2, 6, s=1), r(2, 6, s=2)),
      [lambda: (r(1, 5, s=3), r(1, 5, s=4), False), lambda: (r(3, 4, s=5), r(3, 4, s=6), True)],
      "the estimate's gradient lacks the cross term of the noise energy", ["missing term", "product rule"])
# --- geometry and robotics
_case("quaternion_rotate", "QuaternionRotate", lambda: (r(3, 4, s=1), r(3, 3, s=2)),
      [lambda: (r(1, 4, s=3), r(1, 3, s=4)), lambda: (r(5, 4, s=3), r(5, 3, s=4))],
      "the vector part's gradient lacks the outer cross product", ["missing term", "product rule"])
_case("so3_exp", "SO3Exp", lambda: (r(3, 3, s=1),),
      [lambda: (v([[0.0, 0, 0], [1e-3, -2e-3, 5e-4], [0.02, 0, 0.01]]),), lambda: (r(1, 3, s=4),)],
      "the gradient is set to zero for small rotation angles", ["threshold", "value"],
      shows=lambda: (v([[0.0, 0, 0], [0.3, -0.2, 0.5]]),))
_case("rigid_transform", "RigidTransform", lambda: (r(2, 4, 3, s=1), r(2, 3, 3, s=2), r(2, 3, s=3)),
      [lambda: (r(1, 1, 3, s=1), r(1, 3, 3, s=2), r(1, 3, s=3)),
       lambda: (r(2, 2, 3, s=1, grad=False), r(2, 3, 3, s=2), r(2, 3, s=3))],
      "the gradient of the points is multiplied by the transposed rotation", ["transpose"])
_case("planar_arm", "PlanarArm", lambda: (r(2, 3, s=1),), [lambda: (r(1, 3, s=2),), lambda: (r(4, 3, s=3),)],
      "the joint angles' gradient sums forwards instead of backwards along the chain", ["axis", "order"],
      kind="module", make=lambda cls: cls([1.0, 0.7, 0.4]).double())
_case("pinhole_camera", "PinholeCamera", lambda: (torch.cat([r(3, 2, s=1, grad=False), u(3, 1, s=2, lo=1, hi=3, grad=False)], 1).requires_grad_(),),
      [lambda: (v([0.3, -0.2, 1.5]),), lambda: (u(2, 2, 3, s=3, lo=1, hi=2),)],
      "the gradient arriving at the depth output is dropped", ["output ignored"], kind="module",
      make=lambda cls: cls(2.0, 1.5, 0.3, 0.1).double())
_case("rotation_6d", "Rotation6D", lambda: (r(3, 6, s=1),), [lambda: (r(1, 6, s=2),), lambda: (r(5, 6, s=3),)],
      "the projection's product rule lacks the term through the dot product", ["product rule", "missing term"])
_case("nearest_neighbor", "NearestNeighbor", lambda: (v([[0.1, 0], [2, 0.3], [5, 1]]), v([[0.0, 0], [2, 0], [5, 0.5]])),
      [lambda: (r(5, 2, s=1), r(3, 2, s=2)), lambda: (r(4, 3, s=1), r(1, 3, s=2))],
      "reference points that are nearest to several queries keep only one query's gradient", ["repeated index"],
      shows=lambda: (r(5, 2, s=1), r(3, 2, s=2)))
_case("face_areas", "FaceAreas", lambda: (r(4, 3, s=1), i([[0, 1, 2], [0, 2, 3]])),
      [lambda: (r(5, 3, s=2), i([[0, 1, 2], [2, 1, 3], [3, 4, 0], [0, 1, 2]])), lambda: (r(3, 3, s=3), i([[2, 0, 1]]))],
      "the first vertex of each face receives no gradient", ["missing term"])
_case("se2_between", "SE2Between", lambda: (r(3, 3, s=1), r(3, 3, s=2)),
      [lambda: (v([[0.0, 0, 3.0]]), v([[1.0, 2, -3.0]])), lambda: (r(5, 3, s=4), r(5, 3, s=5))],
      "the heading of a ignores that it turns the relative translation", ["missing term"])

# --- rendering and graphics
_case("volume_render", "VolumeRender", lambda: (u(2, 4, s=1, hi=2), u(2, 4, s=2, lo=0.1), u(2, 4, 3, s=3)),
      [lambda: (u(1, 6, s=1), u(1, 6, s=2, lo=0.1), u(1, 6, 1, s=3)), lambda: (u(3, 1, s=1), u(3, 1, s=2), u(3, 1, 2, s=3))],
      "the occlusion sum includes the sample itself (off by one)", ["off by one"])
_case("texture_sample", "TextureSample", lambda: (r(3, 4, 2, s=1), v([[0.4, 1.3], [2.6, 0.2], [0.7, 1.8]])),
      [lambda: (r(4, 3, 1, s=2), v([[-0.5, 1.5], [2.7, 2.2], [1.1, 3.6], [1.1, 2.6]])),
       lambda: (r(2, 2, 3, s=3), v([[0.5, 0.5], [0.5, 0.5]]))],
      "gradients are added to a reshape of zeros_like, a copy when the texture is not contiguous", ["layout"],
      shows=lambda: (r(4, 3, 2, s=1, grad=False).transpose(0, 1).requires_grad_(), v([[0.4, 1.3], [2.6, 0.2]])))
_case("linear_to_srgb", "LinearToSRGB", lambda: (u(2, 3, s=1, lo=0.05),),
      [lambda: (v([0.001, 0.002, 0.2, -0.1]),), lambda: (u(4, 1, 2, s=2, lo=0.01),)],
      "below the threshold the slope of the curve is used instead of 12.92", ["branch", "threshold"],
      shows=lambda: (v([0.001, 0.002, 0.2, -0.1]),))
_case("smooth_min", "SmoothMin", lambda: (r(5, s=1), r(5, s=2), v(0.8)),
      [lambda: (v([[0.3, 0.5, -0.2]]), v([[0.3, 0.1, 1.5]]), v([0.5])), lambda: (r(2, 3, s=1), r(2, 3, s=2), v(2.0))],
      "where both distances are equal the smooth blend's gradient goes to b alone instead of half to each", ["ties"],
      shows=lambda: (v([[0.3, 0.5, -0.2]]), v([[0.3, 0.1, 1.5]]), v(0.5)))
_case("interpolate_faces", "InterpolateFaceAttributes", lambda: (i([1, 0, 1]), u(3, 3, s=1), r(2, 3, 2, s=2)),
      [lambda: (i([-1, 1, 0, 0, -1]), u(5, 3, s=3), r(2, 3, 2, s=4)), lambda: (i([-1, -1]), u(2, 3, s=3), r(1, 3, 1, s=4))],
      "background pixels (-1) add to the gradients of face 0 and of their weights", ["padding", "mask"],
      shows=lambda: (i([-1, 1, 0, 0, -1]), u(5, 3, s=3), r(2, 3, 2, s=4)))
# --- physics and chemistry
_case("lennard_jones", "LennardJonesEnergy", lambda: (u(5, s=1, lo=0.9, hi=2.5), v(1.0), v(0.7)),
      [lambda: (v([1.1, 1.6, 2.4, 3.2]), v([1.2]), v([0.5]), 2.0, True), lambda: (u(3, s=2, lo=1, hi=2), v(0.9), v(1.0), 1.5)],
      "with shift=True the sigma gradient leaves out the shift", ["option", "missing term"],
      shows=lambda: (v([1.1, 1.6, 2.4, 3.2]), v(1.2), v(0.5), 2.0, True))
_case("minimum_image_distance", "MinimumImageDistance",
      lambda: (u(4, 3, s=1, lo=1.0, hi=2.0), v([5.0, 5.0, 6.0]), i([[0, 1], [1, 2], [2, 3], [0, 3]])),
      [lambda: (v([[0.2, 0.3, 0.1], [4.8, 0.5, 0.2], [0.4, 4.7, 5.5]]), v([5.0, 5.0, 6.0]), i([[0, 1], [1, 0], [0, 2], [1, 2]])),
       lambda: (u(2, 3, s=3, hi=9), v([3.0, 2.0, 4.0]), i([[0, 1]]))],
      "the cell gradient uses |images| with the wrong sign, so it is wrong for pairs that cross the cell upwards",
      ["sign", "value"],
      shows=lambda: (v([[0.2, 0.3, 0.1], [4.8, 0.5, 0.2], [0.4, 4.7, 5.5]]), v([5.0, 5.0, 6.0]), i([[0, 1], [0, 2], [1, 2]])))
_case("diffusion_step", "DiffusionStep", lambda: (r(5, s=1), u(5, s=2), 0.1),
      [lambda: (r(2, s=3), u(2, s=4), 0.4), lambda: (r(7, s=5), u(7, s=6), 0.25)],
      "backward multiplies the kept differences in place, so a second backward is wrong", ["state", "in-place"],
      scenario="two_backwards")
_case("arrhenius_rate", "ArrheniusRate", lambda: (u(3, 1, s=1, lo=300, hi=500), u(2, s=2), v([0.0, 0.0]), u(2, s=3, lo=1000, hi=3000)),
      [lambda: (u(2, 1, s=4, lo=300, hi=500), u(3, s=5, lo=-3, hi=-2), v([0.5, -0.3, 0.2]), u(3, s=6, lo=1000, hi=3000)),
       lambda: (u(1, 1, s=4, lo=2, hi=5), u(1, s=5), v([0.5]), u(1, s=6, lo=5, hi=20))],
      "the temperature gradient lacks n/T, wrong unless n is 0", ["missing term", "value"],
      shows=lambda: (u(1, 1, s=4, lo=2, hi=5), u(2, s=5), v([0.5, 1.0]), u(2, s=6, lo=5, hi=20)))
# --- sparse and segmented data
_case("coo_spmm", "CooSpMM", lambda: (i([0, 1, 1, 2]), i([1, 0, 2, 2]), r(4, s=1), r(3, 2, s=2), 3),
      [lambda: (i([0, 0, 0, 3]), i([1, 1, 2, 0]), r(4, s=3), r(4, 1, s=4), 5), lambda: (i([0]), i([0]), r(1, s=3), r(1, 3, s=4), 1)],
      "the dense gradient is added up in float32 for float64 inputs", ["dtype", "precision"], tol=5e-9)
_case("segment_logsumexp", "SegmentLogSumExp", lambda: (r(5, 2, s=1), i([0, 1, 0, 2, 1]), 3),
      [lambda: (r(4, 3, s=2), i([0, 0, 0, 0]), 1), lambda: (r(3, 1, s=3), i([2, 0, 1]), 3)],
      "the softmax is taken over all rows, not over those of the segment", ["axis", "normalisation"])
_case("segment_max", "SegmentMax", lambda: (r(6, s=1), i([0, 1, 0, 2, 1, 2]), 3),
      [lambda: (v([1.0, 2.0, 2.0, 0.5, 0.5]), i([0, 0, 0, 1, 1])), lambda: (r(4, s=3), i([3, 0, 3, 1]), 5, -1.0)],
      "values tied for the maximum each receive the whole gradient", ["ties"],
      shows=lambda: (v([1.0, 2.0, 2.0, 0.5, 0.5]), i([0, 0, 0, 1, 1]), 2))

_case("weighted_bag", "WeightedBag", lambda: (i([[0, 2, 1], [1, 1, 3]]), u(2, 3, s=1)),
      [lambda: (i([[0, 4, 4], [2, 2, 4], [4, 4, 4]]), r(3, 3, s=2)), lambda: (i([[3]]), r(1, 1, s=3))],
      "the table's gradient takes in the padding entries", ["padding"], kind="module",
      make=lambda cls: cls(5, 2, padding_idx=4, seed=1).double(),
      shows=lambda: (i([[0, 4, 4], [2, 2, 4]]), r(2, 3, s=2)))
# --- finance
_bs = lambda n, s: (u(n, s=s, lo=0.8, hi=1.2), u(n, s=s + 1, lo=0.8, hi=1.2), u(n, s=s + 2, lo=0.1, hi=0.5),
                    u(n, s=s + 3, lo=0.01, hi=0.08), u(n, s=s + 4, lo=0.3, hi=2))
_case("black_scholes", "BlackScholes", lambda: _bs(3, 1), [lambda: _bs(4, 10) + (False,), lambda: _bs(1, 20) + (True,)],
      "a put's rho has the sign of a call's", ["option", "sign"], shows=lambda: _bs(4, 10) + (False,))
_case("bond_price", "BondPrice", lambda: (u(2, 3, s=1, lo=1, hi=5), v([0.5, 1.0, 1.5], False), u(2, s=2, lo=0.01, hi=0.1)),
      [lambda: (u(1, 4, s=3, lo=1, hi=5), v([1.0, 2, 3, 4], False), u(1, s=4, hi=0.1), 1),
       lambda: (r(3, 2, s=3), v([0.25, 0.75], False), u(3, s=4, hi=0.1), 4)],
      "forward discounts the caller's cash flows in place", ["modified input"], scenario="input_changed")
_case("turnover_cost", "TurnoverCost", lambda: (u(3, 2, s=1), u(2, s=2)),
      [lambda: (u(4, 3, s=3), u(3, s=4), u(3, s=5)), lambda: (u(1, 2, s=3), u(2, s=4), u(2, s=5))],
      "the rate's gradient leaves out the first trade when initial holdings are given", ["option", "missing term"],
      shows=lambda: (u(4, 3, s=3), u(3, s=4), u(3, s=5)))
_case("garch", "GARCH11", lambda: (r(5, s=1),), [lambda: (r(2, s=2),), lambda: (r(9, s=3),)],
      "the variance's adjoint is not carried back through the recursion", ["recursion", "missing term"], kind="module",
      make=lambda cls: cls(0.2, 0.15, 0.6, 0.9).double())
# --- control
_st = lambda n, s: (0.35 * r(n, n, s=s, grad=False)).requires_grad_()
_case("discrete_lyapunov", "DiscreteLyapunov", lambda: (_st(3, 1), r(3, 3, s=2)),
      [lambda: (_st(2, 3), r(2, 2, s=4)), lambda: (_st(1, 5), r(1, 1, s=6))],
      "the adjoint equation is solved with A instead of its transpose", ["transpose"])
_case("saturate", "Saturate", lambda: (r(4, 2, s=1), v([-0.5, -0.3]), v([0.4, 0.2])),
      [lambda: (r(1, 3, s=2), v([-0.5, -0.3, -1.0]), v([0.4, 0.2, 1.0])), lambda: (r(6, 1, s=3), v([-0.2]), v([0.3]))],
      "the bounds' gradients are averaged over the batch instead of summed", ["factor", "axis"])
_case("linear_rollout", "LinearDynamics", lambda: (r(2, 2, s=1), r(2, 3, 1, s=2)),
      [lambda: (r(1, 2, s=3), r(1, 5, 1, s=4)), lambda: (r(3, 2, s=3), r(3, 1, 1, s=4))],
      "A's gradient pairs the adjoint with the state after the step", ["off by one", "saved tensor"], kind="module",
      make=lambda cls: cls([[0.9, 0.2], [-0.1, 0.8]], [[0.3], [0.5]]).double())
# --- geoscience
_case("haversine", "Haversine", lambda: (u(3, s=1), u(3, s=2), u(3, s=3), u(3, s=4)),
      [lambda: (u(2, s=5, lo=-60, hi=60), u(2, s=6, lo=-170, hi=170), u(2, s=7, lo=-60, hi=60), u(2, s=8, lo=-170, hi=170), True),
       lambda: (u(2, 2, s=1), u(2, 2, s=2), u(2, 2, s=3), u(2, 2, s=4), False, 1.0)],
      "with degrees=True the pi/180 of the conversion is missing", ["option", "factor"],
      shows=lambda: (u(2, s=5, lo=-60, hi=60), u(2, s=6, lo=-170, hi=170), u(2, s=7, lo=-60, hi=60), u(2, s=8, lo=-170, hi=170), True))
_case("van_genuchten", "VanGenuchten", lambda: (u(4, s=1, lo=0.1, hi=3),),
      [lambda: (u(2, 3, s=2, lo=0.05, hi=10),), lambda: (v([-0.5, 0.2, 1.5]),)],
      "n's gradient ignores that m depends on n", ["missing term", "chain rule"], kind="module",
      make=lambda cls: cls().double())
_case("nash_sutcliffe", "NashSutcliffe", lambda: (r(5, s=1), r(5, s=2, grad=False)),
      [lambda: (r(4, s=3), v([0.5, float("nan"), 1.5, -0.3], False)), lambda: (r(3, s=3), v([0.5, 0.1, 1.5], False))],
      "missing observations (NaN) are multiplied by zero, so their gradient is NaN", ["nan", "mask"],
      shows=lambda: (r(4, s=3), v([0.5, float("nan"), 1.5, -0.3], False)))
