"""Inputs that show the fault of each operator of wrong/ and suit the one of right/."""

import torch


def _gen(seed):
    return torch.Generator().manual_seed(seed)


def _r(gen, *shape, grad=True, scale=1.0, shift=0.0):
    x = torch.randn(*shape, generator=gen, dtype=torch.float64) * scale + shift
    return x.requires_grad_(grad)


def _u(gen, *shape, low=0.0, high=1.0, grad=True):
    x = torch.rand(*shape, generator=gen, dtype=torch.float64) * (high - low) + low
    return x.requires_grad_(grad)


def _c(gen, *shape):
    return torch.randn(*shape, generator=gen, dtype=torch.complex128).requires_grad_()


# remote_sensing


def inputs_SpectralAngle():
    g = _gen(1)
    return _u(g, 4, 6, low=0.1), _u(g, 3, 6, low=0.1), True


def inputs_RidgeUnmix():
    g = _gen(2)
    return _u(g, 5, 6), _u(g, 3, 6), 0.05


def inputs_BilinearSwath():
    g = _gen(3)
    rows = torch.tensor([1.2, 1.7, 2.4, 0.3], dtype=torch.float64, requires_grad=True)
    cols = torch.tensor([2.6, 2.1, 3.5, 0.8], dtype=torch.float64, requires_grad=True)
    return _r(g, 2, 4, 5), rows, cols


def inputs_ToaReflectance():
    g = _gen(4)
    return (
        _u(g, 3, 4, low=40.0, high=90.0, grad=False),
        _u(g, 4, low=5.0, high=15.0),
        _u(g, 3, 1, low=0.6, high=0.9),
        _u(g, 4, low=0.05, high=0.2),
        1500.0,
        35.0,
    )


def inputs_SarMultilook():
    return _c(_gen(5), 5, 7), 2, 3, True


def inputs_WindowedCoherence():
    g = _gen(6)
    return _c(g, 2, 9), _c(g, 2, 9), 4


def inputs_TemporalComposite():
    g = _gen(7)
    valid = torch.ones(5, 2, 3, dtype=torch.bool)
    valid[0, 0, 0] = valid[3, 1, 2] = False
    valid[:, 0, 2] = False
    return _r(g, 5, 2, 3), valid, "median", -1.0


def inputs_DarkObjectSubtract():
    return _u(_gen(8), 2, 3, 4, low=0.1), 3


def inputs_HillShade():
    return _u(_gen(9), 4, 5, high=20.0), 300.0, 50.0, 30.0


def make_PlanckInversion(cls):
    return cls([10.6, 11.0, 11.4])


def inputs_PlanckInversion():
    g = _gen(10)
    return _u(g, 4, low=7.0, high=14.0), _u(g, 3, low=0.2, high=0.5)


# recommender


def inputs_TripletRankLoss():
    g = _gen(11)
    triplets = torch.tensor([[0, 1, 2], [1, 0, 3], [0, 3, 1], [2, 2, 0]])
    return _r(g, 3, 3), _r(g, 4, 3), triplets, 0.3, "mean"


def inputs_SampledSoftmaxLoss():
    g = _gen(12)
    targets, negatives = torch.tensor([0, 3, 2]), torch.tensor([1, 2, 4, 2])
    return _r(g, 3, 4), _r(g, 6, 4), targets, negatives, _r(g, 6), 0.7


def inputs_PackedFactorScore():
    g = _gen(13)
    features = torch.tensor([0, 2, 4, 2, 1, 0, 3])
    row_start = torch.tensor([0, 3, 5, 5, 7])
    return _r(g, 7), features, row_start, _r(g, 5), _r(g, 5, 3)


def inputs_FieldPairScore():
    g = _gen(14)
    return _r(g, 2, 3, 3, 2), _r(g, 3, 3)


def inputs_ListRelevanceLoss():
    g = _gen(15)
    return _r(g, 3, 5), _r(g, 3, 5), torch.tensor([5, 2, 3]), 0.8


def inputs_SmoothNdcg():
    g = _gen(16)
    return _r(g, 2, 4), _u(g, 2, 4, low=0.2, high=3.0), 0.6


def inputs_AlsRowSolve():
    g = _gen(17)
    items = _r(g, 7, 3, grad=False)
    items[:, 2] = items[:, 0] + 0.2 * items[:, 2]
    return items.requires_grad_(), _u(g, 2, 7), _u(g, 2, 7, low=0.5, high=4.0), 0.02


def inputs_WeightedBag():
    g = _gen(18)
    ids, offsets = torch.tensor([0, 3, 1, 3, 3, 2, 0]), torch.tensor([0, 3, 5])
    return _r(g, 4, 3), ids, offsets, _u(g, 7, low=0.4, high=2.0), "mean", 3


def make_InBatchTowerLoss(cls):
    return cls(scale=16.0)


def inputs_InBatchTowerLoss():
    g = _gen(19)
    return _r(g, 4, 3), _r(g, 4, 3)


def make_RecencyPool(cls):
    return cls(7.0)


def inputs_RecencyPool():
    g = _gen(20)
    return _r(g, 2, 4, 3), _u(g, 2, 4, high=20.0)


# fluids


def inputs_ScalarTransportStep():
    g = _gen(21)
    return _r(g, 2, 6), _r(g, 6), 0.4, "lax_wendroff"


def inputs_HelmholtzPeriodic():
    g = _gen(22)
    kappa = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    return _r(g, 2, 4, 5), kappa, 0.5, 0.8


def inputs_ImplicitDiffusionStep():
    g = _gen(23)
    widths = torch.tensor([0.3, 0.5, 0.9, 0.6, 0.4], dtype=torch.float64)
    return _r(g, 2, 5), _u(g, 4, low=0.5, high=2.0), widths, 0.2


def inputs_ArakawaJacobian():
    g = _gen(24)
    return _r(g, 4, 5), _r(g, 4, 5), 0.9, 1.2


def inputs_BacktraceAdvect():
    g = _gen(25)
    field = _r(g, 5, 4, grad=False).t().requires_grad_()
    return field, _r(g, 4, 5), _r(g, 4, 5), 0.7


def inputs_ParticleDensity():
    g = _gen(26)
    positions = _r(g, 5, 2, grad=False)
    positions[3] = positions[1]
    return positions.requires_grad_(), _u(g, 5, low=0.5, high=1.5), 1.1


def inputs_ShallowRusanov():
    g = _gen(27)
    left = torch.stack([_u(g, 4, low=0.5, high=2.0, grad=False), _r(g, 4, grad=False)], -1)
    right = torch.stack([_u(g, 4, low=0.5, high=2.0, grad=False), _r(g, 4, grad=False)], -1)
    return left.requires_grad_(), right.requires_grad_(), 9.81


def inputs_LogLawFriction():
    g = _gen(28)
    return (
        _u(g, 3, 1, low=1.0, high=5.0),
        _u(g, 4, low=0.1, high=1.0),
        _u(g, 1, low=0.01, high=0.02),
    )


def make_SmagorinskyStress(cls):
    return cls(delta=2.0)


def inputs_SmagorinskyStress():
    velocity_gradient = _r(_gen(29), 3, 3, 3, grad=False)
    velocity_gradient[1] = velocity_gradient[1] - velocity_gradient[1].t()
    return (velocity_gradient.requires_grad_(),)


def make_BurgersRollout(cls):
    return cls(3, dt=0.04, recompute=True)


def inputs_BurgersRollout():
    g = _gen(30)
    return _r(g, 2, 6), _r(g, 6)


# tokenmodels


def inputs_PartialRotary():
    return _r(_gen(31), 2, 3, 2, 6), torch.tensor([0, 1, 2]), 4, 100.0, False


def inputs_CausalFeatureAttention():
    g = _gen(32)
    return _r(g, 2, 4, 3), _r(g, 2, 4, 3), _r(g, 2, 4, 2)


def inputs_GatedStateScan():
    g = _gen(33)
    return (
        _r(g, 2, 4, 3),
        _u(g, 2, 4, 3, low=0.5, high=0.95),
        _r(g, 2, 4, 2),
        _r(g, 2, 4, 2),
        _r(g, 2, 3, 2),
    )


def inputs_SmoothedCrossEntropy():
    return _r(_gen(34), 4, 5), torch.tensor([1, -100, 4, 0]), 0.1, -100, "mean"


def inputs_GatedRmsNorm():
    g = _gen(35)
    return _r(g, 2, 3, 4), _r(g, 4), None, 1e-5


def inputs_DistanceBiasSoftmax():
    g = _gen(36)
    return _r(g, 2, 2, 3, 4), _u(g, 2, low=0.1, high=0.9), False


def inputs_CausalChannelConv():
    g = _gen(37)
    return _r(g, 2, 6, 3), _r(g, 3, 3), _r(g, 3), 2


def inputs_TopKGate():
    return _r(_gen(38), 3, 5), 2, True


def make_TiledHeadLoss(cls):
    return cls(tile=2)


def inputs_TiledHeadLoss():
    g = _gen(39)
    return _r(g, 5, 3), _r(g, 6, 3), torch.tensor([1, 5, -100, 0, 3])


def make_BalancedMixer(cls):
    return cls(rounds=2)


def inputs_BalancedMixer():
    g = _gen(40)
    return _r(g, 2, 3, 3), _r(g, 2, 3, 2)


# geometry


def inputs_VertexNormals():
    faces = torch.tensor([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])
    return _r(_gen(41), 2, 4, 3), faces, True


def inputs_RodriguesMatrix():
    vector = _r(_gen(42), 3, 3, grad=False)
    vector[1] = 0.0
    return (vector.requires_grad_(),)


def inputs_RigidAlign():
    g = _gen(43)
    source = _r(g, 6, 3, grad=False)
    target = source * torch.tensor([1.0, 1.0, -1.0]) + 0.1 * _r(g, 6, 3, grad=False)
    return source.requires_grad_(), target.requires_grad_(), _u(g, 6, low=0.5, high=1.5)


def inputs_PolygonMoments():
    g = _gen(44)
    angle = torch.arange(5, dtype=torch.float64) * (2 * torch.pi / 5)
    ring = torch.stack([angle.cos(), angle.sin()], -1)
    return ((ring + 0.2 * _r(g, 2, 5, 2, grad=False)).requires_grad_(),)


def inputs_TrimmedChamfer():
    g = _gen(45)
    return _r(g, 4, 3), _r(g, 5, 3), 1.2, "mean"


def inputs_SegmentDistance():
    g = _gen(46)
    return _r(g, 5, 3), _r(g, 5, 3), _r(g, 5, 3), False


def inputs_ShortSlerp():
    g = _gen(47)
    q0 = torch.nn.functional.normalize(_r(g, 3, 4, grad=False), dim=1)
    q1 = torch.nn.functional.normalize(q0 + _r(g, 3, 4, grad=False, scale=0.4), dim=1)
    q1 = q1 * torch.tensor([[-1.0], [1.0], [-1.0]])
    return q0.requires_grad_(), q1.requires_grad_(), _u(g, 3, low=0.1, high=0.9)


def inputs_RationalBezier():
    g = _gen(48)
    return _r(g, 4, 2, grad=False), _u(g, 5), _u(g, 4, low=0.5, high=2.0)


def make_NeighbourSmoother(cls):
    return cls(torch.tensor([[0, 1], [0, 2], [0, 3], [2, 3]]), 5, amount=0.4)


def inputs_NeighbourSmoother():
    return (_r(_gen(49), 5, 3),)


def make_TrilinearVoxels(cls):
    return cls(size=(3, 4, 3))


def inputs_TrilinearVoxels():
    g = _gen(50)
    return _u(g, 5, 3, low=-0.3, high=1.3), _r(g, 5, 2)


def _case(group, name, kind, fault, shows="first", second=True, module=False):
    case = {
        "group": group,
        "name": name,
        "kind": kind,
        "fault": fault,
        "shows": shows,
        "second_order_right": second,
        "inputs": f"inputs_{name}",
    }
    if module:
        case["make"] = f"make_{name}"
    return case


CASES = [
    _case(
        "remote_sensing",
        "SpectralAngle",
        "option ignored",
        "backward leaves out the factor 180/pi that degrees=True puts into forward",
    ),
    _case(
        "remote_sensing",
        "RidgeUnmix",
        "second derivative (saved intermediate)",
        "the Cholesky factor of forward, a constant to autograd, is used in backward, so second "
        "derivatives with respect to endmembers lose the part through it",
        "second",
    ),
    _case(
        "remote_sensing",
        "BilinearSwath",
        "repeated index",
        "the image gradient is written by indexed assignment, so pixels shared by several points "
        "keep the part of one of them",
        "both",
    ),
    _case(
        "remote_sensing",
        "ToaReflectance",
        "needs_input_grad of another input",
        "the gradient of path_radiance is made only when radiance requires one, else it is None",
    ),
    _case(
        "remote_sensing",
        "SarMultilook",
        "conjugate of complex",
        "the gradient of the image carries conj(slc) in place of slc",
        "both",
    ),
    _case(
        "remote_sensing",
        "WindowedCoherence",
        "window off by one",
        "the box sums of backward for power and cross product keep the reach of forward in place "
        "of the mirrored one, wrong for even windows",
        "both",
    ),
    _case(
        "remote_sensing",
        "TemporalComposite",
        "even count of a median",
        "with an even count of valid dates the whole gradient of the median goes to the lower of "
        "the two middle values",
    ),
    _case(
        "remote_sensing",
        "DarkObjectSubtract",
        "mutates input in place (fault in forward)",
        "forward subtracts the dark values in place in a view of cube, so the input is changed",
    ),
    _case(
        "remote_sensing",
        "HillShade",
        "boundary",
        "the gradient of the replicated border columns is dropped and not folded back (the border "
        "rows are folded)",
    ),
    _case(
        "remote_sensing",
        "PlanckInversion",
        "slope of another point",
        "the attached step uses the slope at the start temperature, not at the solution, so the "
        "gradient is off by their ratio",
        second=False,
        module=True,
    ),
    _case(
        "recommender",
        "TripletRankLoss",
        "scale of mean",
        "with reduction mean the decay part of the gradient is not divided by the batch",
    ),
    _case(
        "recommender",
        "SampledSoftmaxLoss",
        "None for log_q",
        "backward returns None for log_q, which has a gradient",
    ),
    _case(
        "recommender",
        "PackedFactorScore",
        "repeated index",
        "the gradient of factors is assigned by index, so features in several rows lose parts",
        "both",
    ),
    _case(
        "recommender",
        "FieldPairScore",
        "transposition",
        "the gradient of embedding uses embedding itself, not its transpose over the two fields",
    ),
    _case(
        "recommender",
        "ListRelevanceLoss",
        "wrong axis",
        "the softmax Jacobian for relevance is centred over the batch in place of the list",
    ),
    _case(
        "recommender",
        "SmoothNdcg",
        "second derivative (saved intermediate)",
        "the pairwise sigmoids saved in forward are constants in backward, so second derivatives "
        "in scores are wrong",
        "second",
    ),
    _case(
        "recommender",
        "AlsRowSolve",
        "dtype: float32 inside",
        "the adjoint system of backward is solved in float32",
    ),
    _case(
        "recommender",
        "WeightedBag",
        "NaN for a bag of padding",
        "backward divides by the total weight without the guard of forward, NaN in mean mode for "
        "a bag with padding only",
        "both",
    ),
    _case(
        "recommender",
        "InBatchTowerLoss",
        "hook clamps the gradient",
        "the hook on the cosines returns the gradient clamped to the limit",
        module=True,
    ),
    _case(
        "recommender",
        "RecencyPool",
        "state kept between calls (fault in forward)",
        "the whole prior, ages included, is kept per length, so later calls use the ages of the "
        "first call",
        module=True,
    ),
    _case(
        "fluids",
        "ScalarTransportStep",
        "factor for one option",
        "for lax_wendroff the derivative of speed squared lacks the factor two",
    ),
    _case(
        "fluids",
        "HelmholtzPeriodic",
        "arguments swapped in backward",
        "the adjoint solve gets dx and dy swapped, wrong when they differ",
        "both",
    ),
    _case(
        "fluids",
        "ImplicitDiffusionStep",
        "transposition",
        "backward solves with the matrix of forward and not its transpose, wrong when widths vary",
        "both",
    ),
    _case(
        "fluids",
        "ArakawaJacobian",
        "sign",
        "the gradient of vorticity has the arguments of the antisymmetric bracket exchanged, so "
        "its sign is wrong",
    ),
    _case(
        "fluids",
        "BacktraceAdvect",
        "layout assumed contiguous",
        "backward reads field through as_strided as if contiguous, so the gradients of u and v "
        "are wrong for a transposed field",
    ),
    _case(
        "fluids",
        "ParticleDensity",
        "NaN at coincident particles",
        "backward divides the kernel slope by the distance, guarded for a particle and itself "
        "only, 0/0 for two particles at one place",
        "both",
    ),
    _case(
        "fluids",
        "ShallowRusanov",
        "lost term",
        "the dependence of the wave speed on the states is left out of the gradient",
    ),
    _case(
        "fluids",
        "LogLawFriction",
        "second derivative (saved intermediate)",
        "the slope of the law is saved from forward as a constant, so second derivatives are wrong",
        "second",
    ),
    _case(
        "fluids",
        "SmagorinskyStress",
        "NaN without strain (fault in forward)",
        "the plain square root gives NaN gradients where the strain is zero",
        "both",
        module=True,
    ),
    _case(
        "fluids",
        "BurgersRollout",
        "off by one step",
        "with recompute each step is linearised at the state after it and not before it",
        second=None,
        module=True,
    ),
    _case(
        "tokenmodels",
        "PartialRotary",
        "part passed through is lost",
        "backward pads the channels beyond rotary_dim with zeros in place of their gradient",
    ),
    _case(
        "tokenmodels",
        "CausalFeatureAttention",
        "off by one in a scan",
        "the reverse scan for the mass takes up the present query only after it was read",
        "both",
    ),
    _case(
        "tokenmodels",
        "GatedStateScan",
        "gradient of second output ignored",
        "the gradient that comes in for the last state is not used",
        second=None,
    ),
    _case(
        "tokenmodels",
        "SmoothedCrossEntropy",
        "mutates input in place (fault in forward)",
        "forward subtracts the row maximum from logits in place; loss and gradient stay right",
    ),
    _case(
        "tokenmodels",
        "GatedRmsNorm",
        "number of gradients",
        "without a gate backward returns three gradients for four inputs",
        "both",
    ),
    _case(
        "tokenmodels",
        "DistanceBiasSoftmax",
        "sign for one option",
        "the gradient of slopes uses the signed distance, wrong when not causal",
        "both",
    ),
    _case(
        "tokenmodels",
        "CausalChannelConv",
        "option ignored in backward",
        "the gradient of taps shifts by k and not by k * dilation",
    ),
    _case(
        "tokenmodels",
        "TopKGate",
        "second derivative (saved intermediate)",
        "backward uses the probabilities saved in forward, constants to autograd, so second "
        "derivatives are wrong",
        "second",
    ),
    _case(
        "tokenmodels",
        "TiledHeadLoss",
        "incoming gradient taken as one",
        "backward returns the prepared gradients without the incoming gradient",
        second=None,
        module=True,
    ),
    _case(
        "tokenmodels",
        "BalancedMixer",
        "detach (fault in forward)",
        "the Sinkhorn rounds run without a graph, so the gradient of scores misses the balance",
        "both",
        module=True,
    ),
    _case(
        "geometry",
        "VertexNormals",
        "layout of the incoming gradient",
        "backward flattens the incoming gradient with view, which fails when it is not contiguous",
    ),
    _case(
        "geometry",
        "RodriguesMatrix",
        "NaN at zero",
        "the slopes of the coefficients have no series near zero, NaN for a zero vector",
        "both",
    ),
    _case(
        "geometry",
        "RigidAlign",
        "sign of a singular value",
        "backward uses the unsigned singular values, wrong for mirrored clouds",
        second=None,
    ),
    _case(
        "geometry",
        "PolygonMoments",
        "dtype: float32 buffer",
        "part of the gradient is stored in a buffer of the default dtype and loses half its digits",
    ),
    _case(
        "geometry",
        "TrimmedChamfer",
        "masked part left",
        "pairs beyond trim still pull in the direction from b to a",
    ),
    _case(
        "geometry",
        "SegmentDistance",
        "gradients swapped",
        "the gradients of start and end are exchanged",
    ),
    _case(
        "geometry",
        "ShortSlerp",
        "sign when the arc is flipped",
        "the gradient of q1 through the cosine misses the side, wrong when the two quaternions "
        "lie on opposite sides",
    ),
    _case(
        "geometry",
        "RationalBezier",
        "needs_input_grad of another input",
        "the gradient of weights is made only when control requires one, else it is None",
        "both",
    ),
    _case(
        "geometry",
        "NeighbourSmoother",
        "in place change of the incoming gradient",
        "backward scales the incoming gradient in place",
        module=True,
    ),
    _case(
        "geometry",
        "TrilinearVoxels",
        "boundary (masked part left)",
        "the gradient of points also takes clamped voxels for corners beyond the grid",
        module=True,
    ),
]
