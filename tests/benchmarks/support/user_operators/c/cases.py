"""The cases: what is wrong in wrong/<group>.py, and inputs at which it shows.

`inputs` names a zero-argument function of this file that gives the args of .apply
(or of forward, for an nn.Module). `make`, where given, builds the module from the class.
`also` is extra: more sets of inputs on which only the right operator is checked.
`second_order_right`: True, False (right version loses second derivatives), None (@once_differentiable).
`shows` is "first", "second" or "both": the order(s) at which the check of that order
(gradcheck, gradgradcheck) of the wrong one fails on these inputs.
"""
import torch

D = torch.float64


def _seed(n):
    torch.manual_seed(n)


def rn(*s):
    return torch.randn(*s, dtype=D).requires_grad_()


def pos(*s, lo=0.5, hi=2.0):
    return (lo + (hi - lo) * torch.rand(*s, dtype=D)).requires_grad_()


def leaf(x):
    return torch.as_tensor(x, dtype=D).clone().requires_grad_()


# ---- physics

def inputs_QuatRotate():
    _seed(1)
    return rn(5, 4), rn(5, 3)


def also_QuatRotate():
    _seed(2)
    return [(rn(1, 4), rn(5, 3)), (rn(4), rn(3)), (rn(2, 3, 4), rn(2, 3, 3))]


def inputs_Rotation6D():
    _seed(3)
    return (rn(4, 6),)


def also_Rotation6D():
    return [(rn(6),), (rn(2, 3, 6),)]


def inputs_RaySphere():
    o = leaf([[0.1, 0.2, -3.0], [0.0, -0.3, -4.0], [5.0, 5.0, -3.0], [0.3, 0.1, 4.0], [3.0, 0.2, 0.1]])
    d = leaf([[0.05, 0.0, 1.0], [0.0, 0.1, 1.2], [0.1, 0.0, 1.0], [0.0, 0.0, 1.0], [-0.9, 0.0, 0.1]])
    return o, d, leaf([0.1, 0.0, 0.2]), leaf(1.3)


def inputs_Barycentric():
    _seed(5)
    n = 4
    a = torch.tensor([0.0, 0.0], dtype=D) + 0.2 * torch.randn(n, 2, dtype=D)
    b = torch.tensor([2.0, 0.0], dtype=D) + 0.2 * torch.randn(n, 2, dtype=D)
    c = torch.tensor([0.5, 2.0], dtype=D) + 0.2 * torch.randn(n, 2, dtype=D)
    return leaf(torch.rand(n, 2, dtype=D)), leaf(a), leaf(b), leaf(c)


def inputs_RusanovRHS():
    _seed(6)
    return rn(3, 8), 0.25


def also_RusanovRHS():
    return [(rn(7),), (rn(2, 2, 5), 2.0)]


def inputs_HermiteSpline():
    _seed(7)
    return rn(5), rn(5), leaf([0.3, 0.7, 0.45, 2.2, 3.6, 3.1])


def also_HermiteSpline():
    return [(rn(4), rn(4), leaf([-0.5, 1.3, 3.4]))]


def inputs_PendulumMidpoint():
    _seed(8)
    return rn(5), rn(5), pos(5), 0.3


def also_PendulumMidpoint():
    return [(rn(5), rn(5), pos(1), 0.3), (rn(2, 3), rn(2, 3), leaf(1.4))]


def inputs_EccentricAnomaly():
    _seed(9)
    return leaf([0.4, 1.1, 2.0, 2.8]), leaf([0.1, 0.3, 0.6, 0.45])


def also_EccentricAnomaly():
    return [(leaf([0.4, 1.1, 2.0]), leaf([0.3]), 15), (leaf([0.05, -7.0, 9.5]), leaf([0.97, 0.9, 0.8])), (leaf([[0.4], [2.1]]), leaf([0.1, 0.3, 0.5]))]


def inputs_PairDistances():
    _seed(10)
    return (rn(5, 3),)


def also_PairDistances():
    return [(rn(4, 1),)]


def inputs_EquilibriumLayer():
    _seed(11)
    return (rn(4, 5),)


def make_EquilibriumLayer(cls):
    torch.manual_seed(0)
    return cls(5).double()


# ---- signals

def inputs_FFTConvolve():
    _seed(12)
    return rn(2, 9), rn(4)


def also_FFTConvolve():
    return [(rn(6), rn(3)), (rn(2, 2, 3), rn(5)), (rn(2, 4), rn(1))]


def inputs_MuLawGain():
    _seed(13)
    return rn(2, 3, 5), pos(3)


def also_MuLawGain():
    return [(rn(2, 4, 4), pos(4), 10.0)]


def inputs_OneSidedPower():
    _seed(14)
    return rn(2, 8), True


def also_OneSidedPower():
    return [(rn(2, 7),), (rn(6), False), (rn(2, 2),), (rn(3, 1), True)]


def inputs_FIRDecimate():
    _seed(15)
    return rn(2, 12), rn(3), 2


def also_FIRDecimate():
    return [(rn(2, 8), rn(3)), (rn(1, 11), rn(4), 3), (rn(2, 4), rn(4), 5)]


def inputs_HaarDWT():
    _seed(16)
    return (rn(3, 8),)


def also_HaarDWT():
    return [(rn(6),), (rn(2, 2, 4),)]


def inputs_LinearResample():
    _seed(17)
    return rn(2, 5), 11


def also_LinearResample():
    return [(rn(2, 9), 4), (rn(3, 5), 5), (rn(1, 2), 1)]


def inputs_OnePole():
    _seed(18)
    return rn(3, 6), leaf(0.7)


def also_OnePole():
    return [(rn(3, 6), leaf(0.7), rn(3)), (rn(2, 1), leaf(-0.4), rn(2))]


def inputs_PreEmphasis():
    _seed(19)
    return rn(2, 7), 0.9


def also_PreEmphasis():
    return [(rn(5),), (rn(2, 2, 4), 0.5)]


def inputs_PhaseRotate():
    _seed(20)
    return torch.randn(3, 4, dtype=torch.complex128).requires_grad_(), rn(4)


def also_PhaseRotate():
    return [(torch.randn(4, dtype=torch.complex128).requires_grad_(), rn(4)),
            (torch.randn(3, 4, dtype=torch.complex128), rn(4)),
            (torch.randn(3, 4, dtype=torch.complex128).requires_grad_(), rn(4).detach())]


def inputs_LearnableWindow():
    _seed(21)
    return (torch.randn(21, 3, dtype=D).t().requires_grad_(),)


def make_LearnableWindow(cls):
    return cls(6, 4).double()


def also_LearnableWindow():
    return [(rn(2, 14),), (rn(1, 6),)]


# ---- densities

def inputs_VonMisesLogProb():
    _seed(22)
    return rn(6), leaf(0.4), pos(6)


def also_VonMisesLogProb():
    return [(rn(3, 4), rn(4), pos(3, 1)), (rn(4), rn(4), pos(1))]


def inputs_KLDiagNormal():
    _seed(23)
    return rn(4, 3), rn(4, 3), rn(4, 3), rn(4, 3)


def also_KLDiagNormal():
    return [(rn(4, 3), rn(4, 3), rn(4, 3), rn(4, 3), r) for r in ("none", "sum")] + [
        (rn(5), rn(5), rn(5), rn(5)), (rn(2, 2, 3), rn(2, 2, 3), rn(2, 2, 3), rn(2, 2, 3))]


def inputs_KLDirichlet():
    _seed(24)
    return pos(3, 4), pos(3, 4)


def also_KLDirichlet():
    return [(pos(5), pos(5))]


def inputs_MixtureDensity():
    _seed(25)
    return (rn(6),)


def make_MixtureDensity(cls):
    return cls(3).double()


def inputs_LogNdtr():
    return (leaf([-6.0, -2.5, -0.7, 0.4, 1.9]),)


def also_LogNdtr():
    return [(leaf([[-30.0, -1.2], [0.3, 3.0]]),)]


def inputs_GumbelRelax():
    _seed(27)
    return rn(3, 4), rn(3, 4).detach(), 0.5


def also_GumbelRelax():
    return [(rn(3, 4), rn(3, 4)), (rn(3, 4), rn(3, 4), 2.0, 0)]


def inputs_BetaBinomialLogProb():
    _seed(28)
    return torch.tensor([0, 3, 5, 2]), torch.tensor([4, 7, 5, 9]), pos(4), pos(4, lo=1.0, hi=3.0)


def also_BetaBinomialLogProb():
    return [(torch.tensor([0, 3, 5, 2]), torch.tensor([4, 7, 5, 9]), pos(1), leaf(1.7))]


def inputs_KumaraswamySample():
    _seed(29)
    return pos(6, lo=0.1, hi=0.9), pos(6), pos(6, lo=1.2, hi=3.0)


def also_KumaraswamySample():
    return [(pos(4, 3, lo=0.1, hi=0.9), pos(3), leaf(1.6))]


def inputs_MVNPrecisionChol():
    _seed(30)
    L = torch.tril(0.5 * torch.randn(3, 3, dtype=D), -1) + torch.diag(1 + torch.rand(3, dtype=D))
    return rn(4, 3), rn(3), leaf(L)


def inputs_FocalLoss():
    _seed(31)
    return rn(6, 4), torch.tensor([0, 3, -100, 1, -100, 2])


def also_FocalLoss():
    return [(rn(5, 3), torch.tensor([0, 2, 1, 1, 0]), 1.5),
            (rn(5, 3), torch.tensor([0, 2, 1, 1, 0]), 3.0, 1),
            (rn(2, 3), torch.tensor([-100, -100]))]


# ---- graphs

EDGES = torch.tensor([[0, 1, 2, 3, 1, 4, 0, 2], [1, 0, 1, 1, 2, 2, 4, 4]])  # node 3: no entering edge


def inputs_SegmentVar():
    _seed(32)
    return rn(7, 3), torch.tensor([0, 1, 0, 1, 3, 0, 3]), 5


def also_SegmentVar():
    return [(rn(5, 2), torch.tensor([0, 1, 1, 2, 0]), 4, u) for u in (True, False)]


def inputs_EdgeSoftmax():
    _seed(33)
    return rn(8, 2), EDGES[1], 5


def inputs_GCNPropagate():
    _seed(34)
    return rn(5, 3), EDGES, pos(8)


def also_GCNPropagate():
    return [(rn(5, 2), EDGES), (rn(5, 2), EDGES, pos(8).detach())]


def inputs_SymNormWeights():
    _seed(35)
    return pos(8), EDGES, 5


def inputs_NeighborMax():
    _seed(36)
    x = torch.randn(5, 3, dtype=D)
    x[0] += 2  # node 0 wins in more than one neighbourhood
    return leaf(x), EDGES


def also_NeighborMax():
    return [(rn(6, 2), EDGES)]


def inputs_NodeNorm():
    _seed(37)
    return (rn(6, 3),)


def make_NodeNorm(cls):
    torch.manual_seed(0)
    m = cls(3).double().eval()
    m.weight.data.copy_(torch.tensor([0.7, 1.3, -0.9]))
    m.running_mean.copy_(torch.tensor([0.2, -0.1, 0.4]))
    m.running_var.copy_(torch.tensor([0.8, 1.5, 1.1]))
    return m


def make_NodeNorm_train(cls):
    return make_NodeNorm(cls).train()


def inputs_EdgeDot():
    _seed(38)
    return rn(5, 3), rn(5, 3), EDGES


def also_EdgeDot():
    return [(rn(3, 2), rn(5, 2), torch.tensor([[0, 2, 1, 0], [4, 3, 4, 0]]))]


def inputs_GINAggregate():
    _seed(39)
    return rn(5, 3).detach(), leaf(0.3), EDGES


def also_GINAggregate():
    return [(rn(5, 3), leaf(0.3), EDGES), (rn(5, 3), leaf(0.3).detach(), EDGES)]


def inputs_AttentionReadout():
    _seed(40)
    return rn(7, 3), rn(7), torch.tensor([0, 0, 1, 1, 1, 3, 0]), 4


def inputs_DirichletEnergy():
    _seed(41)
    return rn(5, 3), EDGES, pos(8)


def also_DirichletEnergy():
    return [(rn(5, 2), EDGES)]


# ---- ranking

def inputs_TopKMean():
    _seed(42)
    return rn(4, 6), 2, 0


def also_TopKMean():
    return [(rn(4, 6), 3), (rn(2, 4, 3), 2, 1), (rn(5), 5)]


def inputs_SoftRank():
    _seed(43)
    return rn(2, 5), 0.7


def also_SoftRank():
    return [(rn(4),), (rn(2, 2, 3), 2.0)]


def inputs_SortRows():
    _seed(44)
    return leaf([[0.3, 2.0, -1.0, 0.9], [1.5, -0.2, 0.7, -2.0]]), True


def also_SortRows():
    return [(rn(5),), (rn(2, 2, 3), True)]


def inputs_SinkhornCost():
    _seed(45)
    return pos(3, 4, lo=0.0, hi=1.0), torch.tensor([0.2, 0.5, 0.3], dtype=D), torch.full((4,), 0.25, dtype=D)


def also_SinkhornCost():
    return [(pos(2, 2, lo=0.0, hi=1.0), torch.tensor([0.6, 1.4], dtype=D), torch.ones(2, dtype=D), 0.3, 500)]


def inputs_Wasserstein1D():
    _seed(46)
    return rn(2, 6), rn(2, 6), 3.0


def also_Wasserstein1D():
    return [(rn(5), rn(5)), (rn(2, 4), rn(2, 4), 1.5)]


def inputs_ListNetLoss():
    _seed(47)
    mask = torch.tensor([[True, True, True, False, False], [True] * 5, [True, True, False, True, True]])
    return rn(3, 5), torch.randint(0, 4, (3, 5)).to(D), mask


def also_ListNetLoss():
    return [(rn(2, 4), torch.randint(0, 4, (2, 4)).to(D)),
            (rn(2, 4), rn(2, 4), torch.tensor([[True, False, True, True], [True] * 4]))]


def inputs_PairHinge():
    return leaf([0.9, 0.2, -0.4, 1.5, 0.35]), torch.tensor([2, 1, 0, 3, 1])


def also_PairHinge():
    _seed(48)
    return [(rn(6), torch.tensor([0, 0, 1, 2, 1, 0]), 0.5), (rn(3), torch.tensor([1, 1, 1]))]


def inputs_PlackettLuceNLL():
    _seed(49)
    return rn(5), torch.tensor([3, 0, 4, 1, 2])


def inputs_Sparsemax():
    return (leaf([[0.9, 0.4, -1.0, 0.6], [2.5, 0.1, 0.2, -0.3], [0.1, 0.15, 0.2, 0.3]]),)


def also_Sparsemax():
    _seed(50)
    return [(rn(4, 3), 0), (rn(2, 5, 2), 1)]


def inputs_IsotonicFit():
    return (leaf([[0.1, 0.9, 0.5, 0.6, 2.0, 1.1], [3.0, 2.0, 1.0, 4.0, 5.0, 4.5]]),)


def also_IsotonicFit():
    _seed(51)
    return [(rn(3, 7),)]


CASES = []


def case(group, name, kind, fault, shows, when, second=True, make=None):
    d = {"group": group, "name": name, "kind": kind, "fault": fault, "shows": shows, "when": when,
         "inputs": "inputs_" + name, "second_order_right": second}
    if make is not None:
        d["make"] = make
    if "also_" + name in globals():
        d["also"] = "also_" + name
    CASES.append(d)


case("physics", "QuatRotate", "transposed gradient", "gradient of v is rotated forwards in place of backwards (cross operands swapped)", "first", "always")
case("physics", "Rotation6D", "forgotten chain-rule term", "first vector's gradient lacks the part through the projection coefficient", "first", "always")
case("physics", "RaySphere", "mask not applied", "rays that miss still get gradients", "both", "only when a ray misses")
case("physics", "Barycentric", "gradients swapped", "gradients of b and c returned in each other's place", "both", "always")
case("physics", "RusanovRHS", "lost off the default", "1/dx lost in backward", "first", "only dx != 1")
case("physics", "HermiteSpline", "no accumulation", "slopes' gradient assigned, not accumulated, for repeated intervals", "first", "only when two positions fall in one interval", False)
case("physics", "PendulumMidpoint", "wrong constant", "dt in place of dt/2 in omega's gradient through the midpoint angle", "first", "always")
case("physics", "EccentricAnomaly", "second derivative lost", "the solution is saved detached, so second derivatives miss dE", "second", "always, second order only")
case("physics", "PairDistances", "NaN at zero", "g / d unguarded inside where: second derivatives are NaN because of the diagonal", "second", "always (diagonal), second order only")
case("physics", "EquilibriumLayer", "transposed gradient", "adjoint iteration uses the transposed weight", "first", "always (unless W is symmetric)", None, make_EquilibriumLayer)

case("signals", "FFTConvolve", "conjugate forgotten", "kernel gradient convolves in place of correlating (X not conjugated)", "first", "always", False)
case("signals", "MuLawGain", "missing sum over broadcast axis", "gain's gradient not summed over time: raises, or silently wrong if C == T", "both", "always (raises when C != T)")
case("signals", "OneSidedPower", "boundary off by one", "Nyquist bin not counted as unpaired", "first", "only even length")
case("signals", "FIRDecimate", "lost off the default", "stride ignored where x's gradient is scattered", "first", "only stride > 1 with more than one output")
case("signals", "HaarDWT", "wrong sign", "odd samples' gradient has the wrong sign", "first", "always")
case("signals", "LinearResample", "no accumulation", "gx[:, lo] += drops all but one of repeated indices", "both", "only when out_len makes repeated left neighbours (upsampling)")
case("signals", "OnePole", "forgotten chain-rule term", "coefficient's gradient lacks the -x part of (1 - a) x", "both", "always")
case("signals", "PreEmphasis", "grad_output changed in place", "backward writes into grad_output (contiguous() is no copy)", "both", "always for contiguous grad_output of length > 1")
case("signals", "PhaseRotate", "conjugate forgotten", "z's gradient multiplied by exp(i phi), not its conjugate", "both", "always")
case("signals", "LearnableWindow", "layout assumption", "as_strided assumes contiguous x", "first", "only non-contiguous x", True, make_LearnableWindow)

case("densities", "VonMisesLogProb", "saved tensor mutated", "backward subtracts mu from the saved x in place (the caller's x)", "both", "always when mu != 0")
case("densities", "KLDiagNormal", "None for a needed gradient", "no gradient for the prior's mean", "first", "always when mu_p needs a gradient")
case("densities", "KLDirichlet", "forgotten chain-rule term", "trigamma of the summed concentration is missing", "first", "always (unless the sums agree)")
case("densities", "MixtureDensity", "forgotten chain-rule term", "logits' gradient lacks the log_softmax normaliser", "first", "always", False, make_MixtureDensity)
case("densities", "LogNdtr", "second derivative wrong", "derivative of the inverse Mills ratio lacks its -r^2 term", "second", "always, second order only")
case("densities", "GumbelRelax", "lost off the default", "1/tau missing", "both", "only tau != 1")
case("densities", "BetaBinomialLogProb", "gradients swapped", "gradients of a and b swapped", "first", "always")
case("densities", "KumaraswamySample", "missing factor", "b's gradient divided by b, not b^2", "first", "always when b != 1")
case("densities", "MVNPrecisionChol", "transposed gradient", "factor's gradient is tril of the transposed product", "first", "always")
case("densities", "FocalLoss", "wrong normaliser", "divides by the batch size, not by the count of kept targets", "first", "only with ignored targets")

case("graphs", "SegmentVar", "wrong normaliser", "divides by n in backward where forward divides by n - 1", "both", "only unbiased=True (the default)")
case("graphs", "EdgeSoftmax", "dtype", "accumulator made in the default dtype: raises in float64", "both", "always unless float32")
case("graphs", "GCNPropagate", "lost off the default", "x's gradient ignores edge_weight", "first", "only when edge_weight is given")
case("graphs", "SymNormWeights", "detached part", "degrees treated as constants", "first", "always", False)
case("graphs", "NeighborMax", "no accumulation", "scatter in place of scatter_add where one node wins for several", "both", "only when a node is the maximum of more than one neighbourhood")
case("graphs", "NodeNorm", "wrong branch training/eval", "eval mode uses the training gradient", "first", "only eval mode", True, make_NodeNorm)
case("graphs", "EdgeDot", "wrong index", "y's gradient scattered to the source nodes", "first", "always")
case("graphs", "GINAggregate", "needs_input_grad mishandled", "eps' gradient depends on whether x needs one", "first", "only when x needs no gradient")
case("graphs", "AttentionReadout", "second output ignored", "gradient that comes by the attention output is dropped", "both", "only when the second output is used")
case("graphs", "DirichletEnergy", "ignores grad_output", "x's gradient not multiplied by grad_output", "first", "always unless grad_output == 1")

case("ranking", "TopKMean", "lost off the default", "backward scatters along the last dim, whatever dim is", "both", "only dim != -1")
case("ranking", "SoftRank", "second derivative lost", "sigmoid detached in backward", "second", "always, second order only")
case("ranking", "SortRows", "transposed gradient", "gathers by the permutation in place of scattering (its inverse)", "first", "only when the permutation is no involution")
case("ranking", "SinkhornCost", "wrong number of gradients", "one gradient for three to five inputs: raises", "first", "always", None)
case("ranking", "Wasserstein1D", "lost off the default", "exponent's factor p written as 2", "first", "only p != 2")
case("ranking", "ListNetLoss", "mask not applied", "backward's softmax includes the masked documents", "first", "only with a mask")
case("ranking", "PairHinge", "wrong comparison", "pairs inside the margin count as inactive in backward", "first", "only with pairs with 0 <= gap < margin")
case("ranking", "PlackettLuceNLL", "off by one", "triu(1): an item is left out of its own denominator", "first", "always")
case("ranking", "Sparsemax", "wrong normaliser", "mean over all entries, not over the support", "first", "only where the support is not everything")
case("ranking", "IsotonicFit", "off by one", "block cuts one entry too early", "first", "only with more than one block", None)
