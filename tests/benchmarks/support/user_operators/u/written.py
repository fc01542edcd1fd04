"""Operators, the arguments at which they are checked, and the fault of each wrong twin.

``inputs`` makes the arguments a careful user would give, ``more`` others at which ``verify.py``
finds the right twin right.  ``order`` is the order of the derivative that the fault spoils.
"""

import torch
from torch import nn


def _gen(seed):
    return torch.Generator().manual_seed(seed)


def n(*shape, s=0, by=1.0, at=0.0):
    """normal"""
    return (torch.randn(*shape, generator=_gen(s), dtype=torch.float64) * by + at).requires_grad_()


def u(lo, hi, *shape, s=0):
    """uniform"""
    x = torch.rand(*shape, generator=_gen(s), dtype=torch.float64)
    return (x * (hi - lo) + lo).requires_grad_()


def z(*shape, s=0):
    """complex normal"""
    return torch.randn(*shape, generator=_gen(s), dtype=torch.complex128).requires_grad_()


def unit(*shape, s=0):
    """unit vectors"""
    return nn.functional.normalize(n(*shape, s=s).detach(), dim=-1).requires_grad_()


def f(x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def i(x):
    return torch.tensor(x)


def c(x):
    """data"""
    return x.detach()


def filled(m, s=3, by=0.5, lo=None):
    """seeded parameters"""
    m = m.double()
    g = _gen(s)
    with torch.no_grad():
        for p in m.parameters():
            if lo is None:
                p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * by)
            else:
                p.copy_(torch.rand(p.shape, generator=g, dtype=torch.float64) * by + lo)
    return m


CASES = []


def case(name, object, bug, fits, inputs, *more, make=None, order="first"):
    row = {
        "name": name,
        "object": object,
        "kind": "module" if make else "function",
        "bug": bug,
        "fits": fits,
        "order": order,
        "inputs": inputs,
        "more": more,
    }
    CASES.append({**row, "make": make} if make else row)


case(
    "sersic_profile",
    "Sersic",
    "the index's gradient forgets that b_n depends on it",
    ["missing term", "chain rule"],
    lambda: (u(0.3, 4, 5), f(1.4), f(1.7), f(2.5)),
    lambda: (u(0.3, 2, 2, 3, s=1), c(f(0.6)), f(0.8), f(1.0)),
)
case(
    "structure_factor",
    "StructureFactor",
    "the incoming gradient is not conjugated",
    ["complex", "conjugate"],
    lambda: (n(3, 3), u(0.5, 6, 3, s=1), i([[1, 0, 0], [1, 1, 0], [0, 2, -1], [3, 0, 1]])),
    lambda: (n(1, 3, s=2), c(f([6.0])), i([[0, 0, 0], [1, -1, 2]])),
    lambda: (c(n(2, 3, s=4)), f([6.0, 8.0]), i([[2, 0, 1]])),
)
case(
    "ctf",
    "ContrastTransfer",
    "the angle of astigmatism enters doubled: its gradient is half of what it should be",
    ["missing factor"],
    lambda: (u(0.1, 1.2, 3, 3), u(-3, 3, 3, 3, s=1), f(1.9), f(1.4), f(0.4), 0.6, 0.9, 0.1),
    lambda: (c(u(0.1, 1, 4)), c(u(-3, 3, 4, s=1)), f(1.0), f(1.2), f(-0.3), 1.1, 0.5, 0.07),
)
case(
    "spgr_signal",
    "SPGR",
    "only the last flip angle sends something back to T1",
    ["missing sum", "overwritten"],
    lambda: (u(0.5, 2, 2, 3), u(0.4, 1.5, 2, 3, s=1), [3, 10, 25], 0.3),
    lambda: (c(u(0.5, 2, 4)), u(0.4, 2, 4, s=1), (15.0,), 0.02),
    lambda: (u(0.5, 2, 2, s=3), u(0.4, 1.5, 2, s=1), [90, 40], 1.0),
)
case(
    "bateman",
    "OneCompartmentOral",
    "0 / 0 in backward where absorption and elimination have one rate",
    ["nan"],
    lambda: (f([0.5, 1.0, 4.0]), f([1.2, 0.3, 0.9]), f([0.2, 0.3, 0.88]), f([10.0, 8.0, 9.0]), 50.0),
    lambda: (u(0.2, 5, 4), u(0.5, 2, 4, s=1), u(0.05, 0.4, 4, s=2), c(u(5, 9, 4, s=3)), 10),
    lambda: (c(f([1.0, 2.0])), f([0.5, 1.0]), f([0.5, 1.0]), f([3.0, 3.0]), 1.0),
)
case(
    "irt_3pl",
    "IRT3PL",
    "the slope of the two-parameter model; right where nobody guesses",
    ["wrong formula", "missing factor"],
    lambda: (n(3), u(0.5, 2, 4, s=1), n(4, s=2), u(0.1, 0.3, 4, s=3), i([[1, 0, -1, 1], [0, 0, 1, 1], [1, -1, 1, 0]])),
    lambda: (n(2, s=4), c(u(0.5, 2, 2, s=1)), n(2, s=2), u(0.05, 0.3, 2, s=3), i([[-1, -1], [1, 0]])),
    lambda: (n(2, s=4), u(0.5, 2, 2, s=1), n(2, s=2), c(f([0.0, 0.0])), i([[0, 1], [1, 0]])),
)
case(
    "muskingum",
    "MuskingumReach",
    "the first inflow is the initial outflow too, which backward forgets",
    ["missing term", "off by one"],
    lambda: (u(1, 5, 2, 5),),
    lambda: (u(1, 5, 3, s=1),),
    lambda: (u(1, 4, 2, 1, 4, s=2),),
    make=lambda cls: cls(1.7, 0.25, 1.0).double(),
)
case(
    "hawkes_nll",
    "HawkesNLL",
    "in backward every event excites itself",
    ["mask", "off by one"],
    lambda: (c(f([0.3, 0.9, 1.0, 2.4, 3.1])), f(0.7), f(0.5), f(1.3), 4.0),
    lambda: (f([0.2, 0.5, 1.7]), f(0.4), c(f(0.8)), f(2.0), 2.0),
    lambda: (f([1.0]), f(0.4), f(0.8), f(2.0), 2.0),
)
case(
    "com_poisson",
    "CMPLogProb",
    "backward sums over a fixed number of terms; right while the rate is small",
    ["hard-coded", "option"],
    lambda: (i([3, 40, 0]), f([0.5, 3.4, -1.0]), f([0.8, 0.9, 1.5])),
    lambda: (i([[1, 2]]), f([[0.2, 1.0]]), f([[1.0, 2.0]]), 60),
    lambda: (i([5]), c(f([1.1])), f([0.7])),
)
case(
    "dirichlet_multinomial",
    "DirMultLogProb",
    "the total count is taken over the batch; right for one row",
    ["axis", "reduction"],
    lambda: (i([[3, 0, 1], [0, 2, 5]]), f([0.5, 1.2, 2.0])),
    lambda: (i([[1, 2]]), f([[0.5, 0.7]])),
    lambda: (i([[1, 2], [0, 0], [4, 1]]), u(0.3, 2, 3, 2)),
)
case(
    "inverse_gaussian",
    "InverseGaussianLogProb",
    "the logarithm's argument has x cubed, whose derivative takes x as it is",
    ["wrong factor", "chain rule"],
    lambda: (u(0.3, 3, 4), f(1.2), f(2.0)),
    lambda: (u(0.3, 3, 2, 3, s=1), u(0.5, 2, 3, s=2), c(u(1, 2, 2, 1, s=3))),
    lambda: (c(u(0.3, 2, 3)), u(1, 2, 3, s=2), u(1, 2, 1, s=3)),
)
case(
    "vasicek_bond",
    "VasicekBond",
    "the speed of reversion in the convexity's denominator is forgotten",
    ["missing term"],
    lambda: (f([0.5, 2.0, 7.0]), f(0.3), f(0.6), f(0.4), f(0.7)),
    lambda: (c(f([1.0, 3.0])), f(0.02), f(0.3), f(0.05), f(0.1)),
    lambda: (f([[1.0], [4.0]]), c(f(0.02)), f(0.8), c(f(0.1)), f(0.3)),
)
case(
    "wkv",
    "WKV",
    "the distance in the decay's gradient counts the token itself",
    ["off by one"],
    lambda: (u(0.2, 1, 2), n(2, s=1), n(2, 4, 2, s=2), n(2, 4, 2, s=3)),
    lambda: (c(u(0.2, 1, 1)), n(1, s=1), n(1, 5, 1, s=2), n(1, 5, 1, s=3)),
    lambda: (u(0.2, 1, 3), c(n(3, s=1)), n(2, 1, 3, s=2), n(2, 1, 3, s=3)),
)
case(
    "ltc_cell",
    "LTCCell",
    "the saved states are walked through from the first to the last",
    ["wrong order", "saved tensor"],
    lambda: (n(2, 3), n(2, 2, s=1)),
    lambda: (n(1, 3, s=2), n(1, 2, s=3)),
    lambda: (c(n(4, 3, s=2)), n(4, 2, s=3)),
    make=lambda cls: filled(cls(3, 2, dt=0.8, unfolds=3), by=1.0, lo=0.1),
)
case(
    "egnn_coord",
    "EGNNCoordUpdate",
    "a node that several edges come from gets the gradient of one of them",
    ["repeated index"],
    lambda: (n(4, 3), i([[0, 0, 1, 2, 3], [1, 2, 2, 1, 1]]), n(5, 2, s=1)),
    lambda: (n(3, 2, s=2), i([[0, 2], [2, 1]]), c(n(2, 2, s=1))),
    lambda: (c(n(3, 3, s=2)), i([[0, 0], [2, 1]]), n(2, 2, s=1)),
    make=lambda cls: filled(cls(2), by=0.8),
)
case(
    "power_mean_agg",
    "PowerMeanAgg",
    "the exponent of the root is taken for a constant",
    ["missing term"],
    lambda: (u(0.2, 2, 5, 2), i([2, 0, 2, 0, 2]), 3, f(1.7)),
    lambda: (u(0.2, 2, 2, 1, s=1), i([0, 1]), 2, f(-1.0)),
    lambda: (c(u(0.2, 2, 4, 1, s=1)), i([0, 1, 1, 0]), 2, f(3.0)),
)
case(
    "lml_topk",
    "LML",
    "the multiplier's share is the plain mean of the gradient instead of the weighted one",
    ["missing weight", "implicit"],
    lambda: (n(2, 5), 2),
    lambda: (n(4, s=1, by=3.0), 1),
    lambda: (n(2, 1, 3, s=2), 2),
)
case(
    "soc_projection",
    "SOCProjection",
    "the projection onto the direction has the wrong weight",
    ["wrong formula", "sign"],
    lambda: (f([[0.3, 1.0, -0.5, 0.2], [2.0, 0.1, 0.3, -0.2], [-1.5, 0.2, 0.3, 0.4], [-0.4, 0.9, 0.8, -0.3]]),),
    lambda: (n(3, 2, s=1),),
    lambda: (f([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.3, 0.4]]),),
)
case(
    "neuralsort",
    "NeuralSort",
    "every distance belongs to two scores, one of which is forgotten",
    ["missing term"],
    lambda: (n(2, 4), 0.7),
    lambda: (n(1, 2, s=1), 1.0),
    lambda: (n(3, 3, s=4), 2),
)
case(
    "ggx_ndf",
    "GGX",
    "the derivative of a square where the roughness enters in the fourth power",
    ["chain rule", "wrong factor"],
    lambda: (u(0.2, 1, 3, 4), u(0.3, 0.9, 4, s=1)),
    lambda: (f([0.0, 1.0]), c(f(0.5))),
    lambda: (c(u(0.2, 1, 2)), u(0.3, 1, 2, 1, s=2)),
)
case(
    "sh_color",
    "SHColor",
    "the direction's normalisation is taken for a division by a constant",
    ["missing term", "chain rule"],
    lambda: (n(3, 3), n(3, s=1), n(3, 4, 3, s=2)),
    lambda: (c(n(2, 3)), n(3, s=1), n(2, 4, 3, s=3)),
    lambda: (n(1, 3), c(n(3, s=1)), c(n(1, 4, 3, s=3))),
)
case(
    "linear_blend_skinning",
    "LBS",
    "the blended rotation is not transposed",
    ["transpose"],
    lambda: (n(3, 3), u(0, 1, 3, 2, s=1), n(2, 4, 4, s=2)),
    lambda: (n(1, 3, s=3), c(u(0, 1, 1, 3, s=1)), n(3, 4, 4, s=2)),
    lambda: (c(n(2, 3)), u(0, 1, 2, 1, s=1), c(n(1, 4, 4, s=2))),
)
case(
    "cotangent_weights",
    "CotangentWeights",
    "a cross product of the second edge's gradient the wrong way round",
    ["sign"],
    lambda: (n(4, 3), i([[0, 1, 2], [0, 2, 3]])),
    lambda: (n(3, 3, s=2), i([[2, 0, 1]])),
    lambda: (n(5, 3, s=3), i([[0, 1, 2], [0, 2, 3], [4, 1, 0]])),
)
case(
    "mps_amplitude",
    "MPSAmplitude",
    "the two environments are multiplied in the wrong order; right at the chain's ends",
    ["wrong order"],
    lambda: (n(3, 2, 2, 2), i([[0, 1, 1], [0, 0, 0], [1, 1, 0]])),
    lambda: (n(1, 2, 3, 3, s=1), i([[1], [1]])),
    lambda: (n(4, 2, 1, 1, s=2), i([[0, 1, 0, 1]])),
)
case(
    "von_neumann_entropy",
    "VonNeumannEntropy",
    "the derivative of x log x lacks its 1; right along directions that keep the trace",
    ["missing term"],
    lambda: ((lambda a: (a @ a.mH + torch.eye(2)).mul(0.2))(c(z(2, 2))).requires_grad_(),),
    lambda: ((lambda a: (a @ a.mH + 0.5 * torch.eye(3)).mul(0.1))(c(n(3, 3, s=1))).requires_grad_(),),
    lambda: ((lambda a: (a @ a.mH + torch.eye(2)).mul(0.2))(c(z(2, 2, 2, s=4))).requires_grad_(),),
)
case(
    "slater_logabs",
    "LogAbsWavefunction",
    "the wave function's sign is lost: its negative walkers get the opposite gradient",
    ["sign"],
    lambda: (n(3, 2, 2, 2), n(2, s=1)),
    lambda: (n(1, 1, 3, 3, s=2), f([0.7])),
    lambda: (c(n(2, 2, 2, 2, s=3)), n(2, s=5)),
)
case(
    "acsf_g2",
    "ACSF",
    "the cutoff's slope is not cut off: atoms out of reach pull",
    ["mask", "cutoff"],
    lambda: (f([[0.0, 0.0, 0.1], [1.0, 0.2, 0.0], [0.3, 2.4, 0.4], [2.6, 1.0, -0.2]]),),
    lambda: (n(2, 3, s=1),),
    make=lambda cls: filled(cls(3, cutoff=2.0), by=0.8, lo=0.4),
)
case(
    "finnis_sinclair",
    "FinnisSinclair",
    "infinity times zero for an atom without neighbours",
    ["nan"],
    lambda: (f([[0.0, 0.0, 0.0], [1.0, 0.2, 0.1], [0.3, 1.1, -0.2], [5.0, 5.0, 5.0]]), f(1.3), 2.0),
    lambda: (f([[0.0, 0.0, 0.0], [1.0, 0.2, 0.1]]), c(f(0.6)), 1.5),
    lambda: (c(f([[0.0, 0.0], [1.0, 0.2]])), f(0.6), 3.0),
)
case(
    "siglip_loss",
    "SigLIPLoss",
    "the bias' gradient is a mean over the images",
    ["reduction"],
    lambda: (unit(3, 4), unit(3, 4, s=1), f(1.1), f(-1.5)),
    lambda: (unit(1, 2), c(unit(1, 2, s=1)), f(0.3), f(0.0)),
    lambda: (c(unit(2, 3)), unit(2, 3, s=1), c(f(1.0)), f(-1.0)),
)
case(
    "orpo_odds",
    "OddsRatioLoss",
    "the rejected answer's odds are those of the chosen one",
    ["wrong tensor"],
    lambda: (u(-2, -0.2, 3), u(-3, -0.4, 3, s=1)),
    lambda: (u(-2, -0.2, 3), c(u(-3, -0.4, 3, s=1)), 'sum'),
    lambda: (c(u(-2, -0.2, 2)), u(-3, -0.4, 2, s=1), 'none'),
)
case(
    "router_aux_loss",
    "RouterAuxLoss",
    "backward divides by the number of tokens, padding included",
    ["mask", "reduction"],
    lambda: (n(4, 3), 2, 0.1, i([True, True, False, True])),
    lambda: (n(3, 4, s=1), 1, 0.0),
    lambda: (n(2, 2, s=2), 1, 1e-2, i([False, False])),
)
case(
    "diff_attention",
    "DiffAttention",
    "the second map's gradient lacks lambda",
    ["missing factor"],
    lambda: (n(3, 2), n(3, 2, s=1), n(3, 2, s=2), n(3, 2, s=3), n(3, 2, s=4), f(0.6)),
    lambda: (n(2, 2, 1, s=5), n(2, 2, 1, s=1), c(n(2, 2, 1, s=2)), n(2, 2, 1, s=3), n(2, 2, 3, s=4), f(0.2)),
)
case(
    "xpos",
    "XPos",
    "the keys' gradient is scaled like the queries'",
    ["inverse", "wrong factor"],
    lambda: (n(3, 4), n(3, 4, s=1), 2),
    lambda: (n(2, 2, 2, s=2), c(n(2, 2, 2, s=3)), 4),
    lambda: (c(n(5, 2)), n(5, 2, s=1)),
)
case(
    "mobius_add",
    "MobiusAdd",
    "one of the two curvatures of the denominator is missing; right for c = 1",
    ["missing factor", "option"],
    lambda: (n(3, 2, by=0.3), n(3, 2, s=1, by=0.3), 0.6),
    lambda: (n(2, s=2, by=0.2), c(n(2, s=3, by=0.2)), 1.0),
    lambda: (c(n(2, 1, 3, by=0.3)), n(2, 1, 3, s=4, by=0.3), 1.5),
)
case(
    "lut3d",
    "ImageLUT",
    "the pixels' gradient is that by the table's coordinates",
    ["missing factor"],
    lambda: (u(0.05, 0.95, 4, 3),),
    lambda: (u(0.55, 0.9, 2, 3, s=5),),
    make=lambda cls: filled(cls(3)),
)
case(
    "bev_pool",
    "QuickCumsum",
    "all but the last feature of a cell get the gradient of the cell before; right while no cell holds two",
    ["off by one"],
    lambda: (n(5, 2), i([1, 1, 4, 4, 7])),
    lambda: (n(3, 1, s=1), i([0, 2, 3])),
    lambda: (n(2, 3, s=1), i([5, 5])),
)
case(
    "dfl",
    "DistributionFocalLoss",
    "backward averages over the rows whatever avg_factor says",
    ["option", "reduction"],
    lambda: (n(3, 4), c(u(0, 3, 3, s=1)), c(u(0.3, 1, 3, s=2)), 2.0),
    lambda: (n(2, 3, s=3), c(u(0, 2, 2, s=1))),
    lambda: (n(2, 6, s=3), c(f([0.0, 4.0])), None, 5),
)
case(
    "involution",
    "Involution",
    "the channels are dealt to the groups in another order; right with one group or one channel each",
    ["permutation", "axis"],
    lambda: (n(1, 4, 2, 3), n(1, 2, 9, 2, 3, s=1), 3),
    lambda: (n(2, 2, 2, 2, s=2), c(n(2, 1, 1, 2, 2, s=3)), 1),
    lambda: (c(n(1, 2, 3, 1)), n(1, 2, 9, 3, 1, s=1), 3),
)
case(
    "actnorm",
    "ActNorm2d",
    "the samples' log-determinants are averaged in backward; right for one sample",
    ["reduction"],
    lambda: (n(3, 2, 2, 3),),
    lambda: (n(1, 2, 1, 1, s=1),),
    lambda: (n(2, 2, 3, 1, s=2),),
    make=lambda cls: filled(cls(2)),
)
case(
    "magnitude_ema",
    "MagnitudeEMA",
    "backward reads the running statistic that this step's forward has moved on; right in eval mode",
    ["state", "modified"],
    lambda: (n(4, 3, by=2.0),),
    lambda: (n(1, 2, 3, s=1),),
    make=lambda cls: filled(cls(3, decay=0.8)),
)
case(
    "steering_beam",
    "BeamPower",
    "the weights' gradient is conjugated",
    ["complex", "conjugate"],
    lambda: (z(3), n(3, s=1), u(-1.2, 1.2, 4, s=2)),
    lambda: (z(2, s=3), c(n(2, s=1)), u(-1, 1, 1, s=2)),
    lambda: (c(z(2, s=3)), n(2, s=1), c(u(-1, 1, 3, s=2))),
)
case(
    "refract",
    "Refract",
    "the root's dependence on the angle is forgotten",
    ["missing term", "chain rule"],
    lambda: (f([[0.6, 0.0, -0.8], [0.8, 0.0, -0.6], [0.0, 0.28, -0.96]]), f([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), f([[0.7], [1.5], [1.1]])),
    lambda: (c(f([[0.0, 0.0, -1.0]])), f([[0.0, 0.6, 0.8]]), f([[0.66]])),
    lambda: (f([[0.0, 0.0, -1.0]]), c(f([[0.0, 0.6, 0.8]])), c(f([[1.33]]))),
)
case(
    "sir_rollout",
    "SIR",
    "the adjoint of I takes the adjoint of S that has been stepped already",
    ["wrong order", "overwritten"],
    lambda: (f([0.95, 0.7]), f([0.05, 0.2]), f(0.9), f(0.3), 4),
    lambda: (f([0.9]), c(f([0.1])), f(2.0), f(0.5), 3, 0.5),
    lambda: (c(f([0.9, 0.8])), f([0.1, 0.1]), f(1.0), c(f(0.2)), 1),
)
case(
    "fo_pool",
    "FoPool",
    "the saved forget gates are overwritten, which are the caller's own tensor",
    ["in-place", "saved tensor"],
    lambda: (n(2, 3, 2), u(0.1, 0.9, 2, 3, 2, s=1), u(0, 1, 2, 3, 2, s=2), n(2, 2, s=3)),
    lambda: (n(1, 4, 1), u(0.1, 0.9, 1, 4, 1, s=1), c(u(0, 1, 1, 4, 1, s=2))),
    lambda: (c(n(2, 1, 2)), u(0.1, 0.9, 2, 1, 2, s=1), u(0, 1, 2, 1, 2, s=2), c(n(2, 2, s=3))),
)
case(
    "ternary_linear",
    "TernaryLinear",
    "the input's gradient lacks alpha; right while alpha is one",
    ["missing factor"],
    lambda: (n(3, 4),),
    lambda: (n(2, 1, 4, s=1),),
    lambda: (c(n(2, 4, s=2)),),
    make=lambda cls: (lambda m: (m.weight.requires_grad_(False), m)[1])(filled(cls(4, 3))),
)
case(
    "library_ell_spmv",
    "EllMatrix",
    "what stands in the padding flows back to the first entry",
    ["mask", "padding"],
    lambda: (n(4),),
    lambda: (n(3, s=1),),
    make=lambda cls: filled(cls(i([[0, 2], [1, -1], [2, 1], [-1, -1]]))),
)
case(
    "library_mean_var",
    "StatsHead",
    "backward ignores the correction",
    ["option"],
    lambda: (n(2, 4),),
    lambda: (n(3, s=1),),
    lambda: (n(2, 2, 2, s=2),),
    make=lambda cls: filled(cls(1)),
)
case(
    "mmd_unbiased",
    "MMD2",
    "the biased estimate's normaliser",
    ["wrong factor", "reduction"],
    lambda: (n(3, 2), n(4, 2, s=1), [0.5, 1.5]),
    lambda: (n(2, 1, s=2), c(n(2, 1, s=3)), (1.0,)),
    lambda: (c(n(2, 3)), n(3, 3, s=1), [2.0]),
)
case(
    "hsic",
    "HSIC",
    "the other kernel is not centred in the second gradient",
    ["wrong tensor", "missing term"],
    lambda: (n(4, 2), n(4, 1, s=1), 1.0, 0.7),
    lambda: (n(2, 1, s=2), c(n(2, 2, s=1)), 0.5, 2.0),
    lambda: (c(n(3, 1, s=2)), n(3, 2, s=3), 1.5, 1),
)
case(
    "nig_nll",
    "NIGLoss",
    "omega depends on nu in the second logarithm too",
    ["missing term"],
    lambda: (n(3), n(3, s=1), u(0.3, 2, 3, s=2), u(1.1, 3, 3, s=3), u(0.2, 2, 3, s=4)),
    lambda: (c(n(2, 2)), n(2, 2, s=1), u(0.3, 2, 2, 2, s=2), c(u(1.1, 3, 2, 2, s=3)), u(0.2, 2, 2, 2, s=4)),
)
case(
    "so3_log",
    "SO3Log",
    "0 / 0 in backward at the identity",
    ["nan"],
    lambda: (torch.stack([torch.eye(3), torch.linalg.matrix_exp(torch.tensor([[0.0, -0.4, 0.9], [0.4, 0.0, -0.2], [-0.9, 0.2, 0.0]]))]).double().requires_grad_(),),
    lambda: (torch.linalg.matrix_exp(torch.tensor([[0.0, -0.02, 0.01], [0.02, 0.0, -0.03], [-0.01, 0.03, 0.0]]).double()).requires_grad_(),),
)
case(
    "hankel_filter",
    "HankelFilter",
    "backward takes the series for contiguous: a column of a table is misread",
    ["contiguous", "stride"],
    lambda: (c(n(6, 2))[:, 1].requires_grad_(), n(3, s=1)),
    lambda: (n(4, s=2), c(n(4, s=1))),
    lambda: (c(n(3, s=2)), n(1, s=1)),
)
case(
    "pade_activation",
    "PAU",
    "the output is detached in backward: a constant for the second derivative",
    ["detach", "double backward"],
    lambda: (n(2, 3),),
    lambda: (n(4, s=1),),
    lambda: (n(1, 2, 2, s=2),),
    make=lambda cls: filled(cls()),
    order="second",
)
case(
    "isru",
    "ISRU",
    "the second derivative lacks alpha; right at the default",
    ["missing factor", "double backward"],
    lambda: (n(2, 3), 3.0),
    lambda: (n(4, s=1),),
    lambda: (n(2, 1, 2, s=1), 0.3),
    order="second",
)
case(
    "yukawa",
    "YukawaEnergy",
    "backward takes the distances from .data: forces that are trained on miss a part",
    ["detach", "double backward"],
    lambda: (n(3, 3), n(3, s=1), f(0.8)),
    lambda: (c(n(2, 3, s=2)), n(2, s=1), f(0.3)),
    lambda: (n(4, 3, s=2), c(n(4, s=1)), c(f(0.3))),
    order="second",
)
case(
    "coord_pool",
    "CoordPool",
    "both means are divided by the width; right for square maps",
    ["hard-coded", "axis"],
    lambda: (n(1, 2, 2, 4),),
    lambda: (n(2, 1, 3, 3, s=1),),
    lambda: (n(1, 1, 4, 1, s=1),),
)
case(
    "poe_fusion",
    "ProductOfExperts",
    "the gradients are returned expert by expert, not in the arguments' order; right for one expert",
    ["permutation", "wrong order"],
    lambda: (2, n(2, 2), n(2, 2, s=1), n(2, 2, s=2), n(2, 2, s=3)),
    lambda: (1, n(3, s=4), n(3, s=5)),
    lambda: (3, n(2, s=1), c(n(2, s=2)), n(2, s=3), n(2, s=4), c(n(2, s=5)), n(2, s=6)),
)
