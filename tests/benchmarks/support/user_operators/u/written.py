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
