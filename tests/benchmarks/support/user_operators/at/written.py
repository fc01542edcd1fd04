from types import SimpleNamespace

import torch


def r(*shape, seed=0, grad=True, scale=1.0, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=g, dtype=torch.float64) * scale + shift).requires_grad_(grad)


def u(*shape, lo=0.0, hi=1.0, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=g, dtype=torch.float64) * (hi - lo) + lo).requires_grad_(grad)


def c(*shape, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.complex128).requires_grad_(grad)


def t(values, grad=True):
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def ints(*shape, hi=4, seed=0):
    return torch.randint(0, hi, shape, generator=torch.Generator().manual_seed(seed))


def fill(m, keep=(), seed=5, scale=0.5):
    m = m.double()
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in m.named_parameters():
            noise = torch.randn(p.shape, generator=g, dtype=torch.float64)
            if name in keep:
                p.add_(0.1 * noise.abs())
            else:
                p.copy_(scale * noise)
    return m


CASES = []
CASES.append(dict(
    name="mcd_loss", object="MCDLoss", kind="function",
    inputs=lambda: (r(2, 5, 4), r(2, 5, 4, seed=1), torch.tensor([3, 5])),
    more=[lambda: (r(1, 3, 3), r(1, 3, 3, seed=1), torch.tensor([2]), 1e-2)],
    bug="the mask of backward takes in one frame of padding", fits=["value"], order="first"))
CASES.append(dict(
    name="delta_coeffs", object="Deltas", kind="module",
    make=lambda cls: cls(2, 2).double(),
    inputs=lambda: (r(2, 6, 2),), more=[lambda: (r(1, 1, 3),), lambda: (r(1, 2, 2, seed=3),)],
    bug="the gradient of the replicated last frames overwrites that of the last frame", fits=["value"], order="first"))
CASES.append(dict(
    name="ge2e_softmax", object="GE2ESoftmax", kind="function",
    inputs=lambda: (r(3, 3, 4), t(2.0), t(-0.5)), more=[lambda: (r(2, 2, 3, seed=2), t(1.1), t(0.3))],
    bug="the own utterance is not left out in the gradient of the exclusive centroid", fits=["value"], order="first"))
CASES.append(dict(
    name="assign_score", object="AssignScoreWithK", kind="function",
    inputs=lambda: (r(2, 3, 2, 2), r(2, 4, 2, 3, seed=1), r(2, 4, 2, 3, seed=2), ints(2, 3, 2)),
    more=[lambda: (r(1, 2, 3, 1), r(1, 3, 1, 2, seed=1), r(1, 3, 1, 2, seed=2), ints(1, 2, 3, hi=3, seed=4))],
    bug="the incoming gradient is viewed as if it were contiguous", fits=["layout"], order="first"))
CASES.append(dict(
    name="rpe_dot_prod", object="DotProdWithIdx", kind="function",
    inputs=lambda: (r(3, 2, 2), ints(5, hi=3), r(4, 2, 2, 3, seed=1), ints(5, 3, hi=4, seed=2)),
    more=[lambda: (r(2, 1, 3), ints(4, hi=2), r(3, 1, 3, 3, seed=1), ints(4, 3, hi=3, seed=5))],
    bug="the table's gradient of every axis goes to the rows of the first", fits=["value"], order="first"))
CASES.append(dict(
    name="pt_aggregation", object="Aggregation", kind="function",
    inputs=lambda: (r(4, 3), r(4, 2, 3, seed=1), r(4, 2, 3, seed=2), ints(4, 2)),
    more=[lambda: (r(3, 4), r(3, 2, 4, seed=1), r(3, 2, 2, seed=2), ints(3, 2, hi=3)),
          lambda: (r(3, 2), r(3, 2, 2, seed=1), r(3, 2, 1, seed=2), ints(3, 2, hi=3))],
    bug="shared weights: the channels are grouped along the wrong axis", fits=["value"], order="first"))
CASES.append(dict(
    name="density_chamfer", object="calc_dcd", kind="callable",
    inputs=lambda: (r(2, 4, 3), r(2, 5, 3, seed=1), 0.5),
    more=[lambda: (r(2, 4, 3), r(2, 3, 3, seed=2), 0.7, 0.5, True), lambda: (r(1, 3, 2), r(1, 3, 2, seed=1), 1.0, 0.0)],
    bug="with reduce the mean over the batch is not divided out", fits=["value"], order="first"))
CASES.append(dict(
    name="gridding_reverse", object="GriddingReverse2D", kind="function",
    inputs=lambda: (u(2, 3, 3, lo=0.1),),
    more=[lambda: (t([[[0.3, 0.7, 0, 0], [0.2, 0, 0, 0], [0, 0, 0.4, 0.1], [0.9, 0.5, 0.3, 0.8]]]),)],
    bug="cells without weight are divided by zero in backward", fits=["NaN"], order="first"))
CASES.append(dict(
    name="res_gated", object="res_gated_propagate", kind="callable",
    inputs=lambda: (r(4, 3), r(4, 3, seed=1), r(4, 3, seed=2), ints(2, 6)),
    more=[lambda: (r(3, 2), r(3, 2, seed=1), r(3, 2, seed=2), ints(2, 5, hi=3), r(5, 2, seed=3))],
    bug="edge_attr gets no gradient", fits=["none"], order="first"))
CASES.append(dict(
    name="mincut_loss", object="MinCutLoss", kind="function",
    inputs=lambda: (r(2, 4, 2), u(2, 4, 4, lo=0.1)), more=[lambda: (r(1, 3, 3), u(1, 3, 3, lo=0.2, seed=4))],
    bug="the adjacency is taken to be symmetric", fits=["value"], order="first"))
CASES.append(dict(
    name="spline_weighting", object="SplineWeighting", kind="function",
    inputs=lambda: (r(4, 2), r(5, 2, 3, seed=1), u(4, 2, seed=2), ints(4, 2, hi=5)),
    more=[lambda: (r(2, 3), r(3, 3, 1, seed=1), u(2, 4, seed=2), ints(2, 4, hi=3, seed=1))],
    bug="the gathered weights are kept on the class: a later call replaces them", fits=["cache"], order="first"))
CASES.append(dict(
    name="stillinger_weber", object="SWThreeBody", kind="function",
    inputs=lambda: (t([[0.9, 0.1, 0.2], [0.3, -0.8, 0.4]]), t([[0.1, 1.0, -0.2], [0.7, 0.6, 0.1]]), t([1.0, 1.4])),
    more=[lambda: (t([[0.9, 0.1, 0.2], [0.3, -0.8, 0.4], [1.8005, 0.0, 0.0]]), t([[0.1, 1.0, -0.2], [0.7, 0.6, 0.1], [0.2, 0.9, 0.3]]), t([1.0, 1.4, 0.8])),
          lambda: (r(3, 3), r(3, 3, seed=1), t([1.0, 0.5, 2.0]), 0.8, 2.5, -0.2)],
    bug="just beyond the cutoff the exponential overflows and is masked by a product", fits=["NaN"], order="first"))
CASES.append(dict(
    name="dpd_force", object="dpd_force", kind="callable",
    inputs=lambda: (r(4, 3, scale=0.3), r(4, 3, seed=1), torch.tensor([[0, 0, 1, 2], [1, 3, 2, 3]])),
    more=[lambda: (r(3, 2, scale=0.5), r(3, 2, seed=1), torch.tensor([[0, 0, 1], [1, 2, 2]]), 3.0, 2.0, 1.6)],
    bug="the slope of the weight lacks 1 / rc", fits=["value"], order="first"))
CASES.append(dict(
    name="lbm_bgk", object="BGKCollision", kind="function",
    inputs=lambda: (u(9, 2, 3, lo=0.1), t(0.8)), more=[lambda: (u(9, 2, 2, lo=0.2, seed=2), u(2, 2, lo=0.6, hi=1.2, seed=1))],
    bug="the equilibrium's dependence on the density in the velocity terms is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="cahn_hilliard", object="CahnHilliardStep", kind="function",
    inputs=lambda: (r(4, 3), t(0.5), 0.1), more=[lambda: (r(2, 3, 3), t(0.7), 0.05, 2.0)],
    bug="the sum is formed in the incoming gradient", fits=["modified"], order="first"))
CASES.append(dict(
    name="transmission_nll", object="TransmissionNLL", kind="function",
    inputs=lambda: (u(2, 4), ints(2, 4, hi=9).double(), u(2, 4, lo=5, hi=9, seed=1)),
    more=[lambda: (u(5), ints(5, hi=9).double(), u(5, lo=5, hi=9, seed=1), u(5, lo=0.5, seed=2))],
    bug="with a background the line integrals get the derivative of the total mean", fits=["value"], order="first"))
CASES.append(dict(
    name="bloch_relax", object="FreePrecession", kind="function",
    inputs=lambda: (r(2, 3, 3), r(2, 3, seed=1), u(2, 3, lo=0.5, hi=1, seed=2), u(2, 3, lo=0.05, hi=0.2, seed=3), t(1.0), 0.1),
    more=[lambda: (r(1, 2, 3), r(2, seed=1), t(0.8), u(1, 1, lo=0.1, hi=0.2, seed=3), u(1, 2, lo=0.5, seed=4), 0.05)],
    bug="the equilibrium is left out of the derivative by T1", fits=["value"], order="first"))
CASES.append(dict(
    name="extended_tofts", object="Tofts", kind="function",
    inputs=lambda: (u(5), u(3, lo=0.1, seed=1), u(3, lo=0.2, seed=2), u(3, seed=3), 0.5),
    more=[lambda: (u(4), u(2, lo=0.1, seed=1), u(2, lo=0.2, seed=2), None, 0.5)],
    bug="without vp backward returns three gradients for five arguments", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="mlem_update", object="MLEMUpdate", kind="function",
    inputs=lambda: (u(1, 2, lo=0.5), u(1, 3, lo=1, hi=4, seed=1), u(3, 2, lo=0.1, seed=2)),
    more=[lambda: (u(2, 3, lo=0.5), u(2, 4, lo=1, hi=4, seed=1, grad=False), u(4, 3, lo=0.1, seed=2))],
    bug="the system matrix gets a gradient only when the counts get one", fits=["none"], order="first"))
CASES.append(dict(
    name="cin_layer", object="CIN", kind="module",
    make=lambda cls: fill(cls(3, (2, 2))),
    inputs=lambda: (r(2, 3, 2),), more=[lambda: (r(1, 3, 4, seed=2),)],
    bug="backward works on detached tensors", fits=["value"], order="second"))
CASES.append(dict(
    name="fibinet_bilinear", object="BilinearInteraction", kind="module",
    make=lambda cls: fill(cls(4, 2)),
    inputs=lambda: (r(2, 4, 2),), more=[lambda: (r(1, 4, 2, seed=3),)],
    bug="pairs of one left field overwrite each other's weight gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="capsule_squash", object="Squash", kind="function",
    inputs=lambda: (r(3, 3),),
    more=[lambda: (t([[0.5, -0.2, 0.9], [0.0, 0.0, 0.0], [1.5, 0.3, -0.7]]),), lambda: (r(2, 3, 2), 1), lambda: (r(4, seed=2), 0)],
    bug="NaN for a capsule of zeros", fits=["NaN"], order="first"))
CASES.append(dict(
    name="dsq", object="DSQ", kind="module",
    make=lambda cls: cls(2).double(),
    inputs=lambda: (r(3, 4),), more=[lambda: (r(6, scale=2.0, seed=1),)],
    bug="alpha's gradient leaves out the scale 1 / (1 - alpha)", fits=["value"], order="first"))
CASES.append(dict(
    name="ttq", object="TTQ", kind="function",
    surrogate=lambda w, p, n, q=0.05: (lambda x, wp, wn, q=0.05: torch.where(w > q * w.abs().max(), p * x + wp, torch.where(w < -q * w.abs().max(), n * x - wn, x))),
    inputs=lambda: (r(3, 4), t(0.8), t(1.3), 0.3), more=[lambda: (r(5, seed=2), t(0.6), t(0.9))],
    bug="the gradient of the negative scale has the wrong sign", fits=["value"], order="first"))
CASES.append(dict(
    name="waveq_reg", object="waveq", kind="callable",
    inputs=lambda: (t([1.6, 2.3]), [r(2, 3, scale=0.5), r(4, seed=1, scale=0.5)]), more=[lambda: (t([3.0]), [r(2, 2, 2, scale=0.3)])],
    bug="the derivative of 1 / 2^b is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="softmax_rgb_blend", object="softmax_rgb_blend", kind="callable",
    inputs=lambda: (u(3, 4, 3), u(3, 4, lo=0.1, seed=1), u(3, 4, seed=2), ints(3, 4, hi=3, seed=3) > 0, u(3, seed=4)),
    more=[lambda: (u(2, 2, 2, 3), u(2, 2, 2, lo=0.1, seed=1), u(2, 2, 2, seed=2), torch.tensor([[[True, False]], [[False, False]]]).expand(2, 2, 2), u(3, seed=4), 0.5)],
    bug="the depth's gradient lacks 1 / gamma", fits=["value"], order="first"))
CASES.append(dict(
    name="blinn_phong", object="BlinnPhong", kind="function",
    inputs=lambda: (t([[0.0, 0.6, 0.8], [0.36, 0.48, 0.8], [0.0, 0.0, -1.0]]), t([[0.6, 0.0, 0.8], [0.0, 0.8, 0.6], [0.0, 0.6, 0.8]]), t([[0.0, 0.0, 1.0], [0.48, 0.6, 0.64], [0.8, 0.0, 0.6]]), u(3), u(3, seed=1), 4),
    more=[lambda: (r(4, 3), r(4, 3, seed=1), r(4, 3, seed=2), u(4, seed=3), u(4, seed=4), 2)],
    bug="the half vector's normalisation is not projected", fits=["value"], order="first"))
CASES.append(dict(
    name="dmtet_crossing", object="marching_vertices", kind="callable",
    inputs=lambda: (r(5, 3), t([0.4, -0.7, 0.3, -0.2, 0.9]), torch.tensor([[0, 1], [0, 3], [3, 2], [1, 4]])),
    more=[lambda: (r(3, 3, seed=1), t([0.5, -0.6, -0.3]), torch.tensor([[0, 1], [2, 0]]))],
    bug="the signed distances get no gradient", fits=["none"], order="first"))
CASES.append(dict(
    name="eff_distloss", object="EffDistLoss", kind="function",
    inputs=lambda: (u(2, 4), (u(2, 4, seed=1, grad=False).sort(-1).values).requires_grad_(), u(2, 4, lo=0.1, hi=0.3, seed=2)),
    more=[lambda: (u(3, 5), (u(3, 5, seed=1, grad=False).cumsum(-1)), u(3, 5, seed=2, grad=False))],
    bug="the suffix sums include the sample itself, which shows for the midpoints only", fits=["value"], order="first"))
CASES.append(dict(
    name="phased_gate", object="PhasedGate", kind="module",
    make=lambda cls: (lambda m: (m.tau.data.copy_(torch.tensor([1.3, 2.1, 0.7])), m.s.data.copy_(torch.tensor([0.2, 0.5, 0.9])), m.ratio.data.copy_(torch.tensor([0.6, 0.4, 0.5])), m)[-1])(cls(3, 0.05).double()),
    inputs=lambda: (t([[1.03], [1.37]]),), more=[lambda: (t([[0.31], [2.75], [4.07], [7.83]]),), lambda: (t([[-1.17], [0.83]]),)],
    bug="the period's gradient forgets the periods gone by", fits=["value"], order="first"))
CASES.append(dict(
    name="cif", object="CIFFunction", kind="function",
    inputs=lambda: (u(2, 6, lo=0.2, hi=0.8), r(2, 6, 2, seed=1), 3), more=[lambda: (u(1, 5, lo=0.3, hi=1.8, seed=3), r(1, 5, 3, seed=1), 3, 0.7)],
    bug="the gradient of a frame's begin is not moved to the frame before", fits=["value"], order="first"))
CASES.append(dict(
    name="monotonic_align", object="MonotonicAlignment", kind="function",
    inputs=lambda: (u(2, 3, 4),), more=[lambda: (u(1, 2, 2, seed=1),), lambda: (u(2, 3, 1, seed=2),)],
    bug="the stay probability of the wrong source position", fits=["value"], order="first"))
CASES.append(dict(
    name="semi_crf", object="SemiCRFLogZ", kind="function",
    inputs=lambda: (r(5, 3, 2), r(2, 2, seed=1)), more=[lambda: (r(2, 4, 3), r(3, 3, seed=2)), lambda: (r(4, 1, 2), r(2, 2, seed=2))],
    bug="the transitions' marginals are not added up over the boundaries", fits=["value"], order="first"))
CASES.append(dict(
    name="matrix_tree", object="MatrixTree", kind="function",
    inputs=lambda: (r(2, 3, 3), r(2, 3, seed=1)), more=[lambda: (r(1, 4, 4, seed=2), r(1, 4, seed=3)), lambda: (r(1, 2, 2, seed=2), r(1, 2, seed=3))],
    bug="the row that the root scores replaced is left out by modifier, not by head", fits=["value"], order="first"))
CASES.append(dict(
    name="k_subset_logz", object="k_subset_logz", kind="callable",
    inputs=lambda: (r(2, 4), 2), more=[lambda: (r(3, seed=1), 1), lambda: (r(2, 2, 3, seed=2), 3)],
    bug="the element itself is among the rest", fits=["value"], order="first"))
CASES.append(dict(
    name="uot_marginals", object="MarginalPenalty", kind="function",
    inputs=lambda: (u(2, 3, 4, lo=0.1), u(2, 3, lo=0.5, seed=1), u(2, 4, lo=0.5, seed=2), 0.8),
    more=[lambda: (u(3, 2, lo=0.1), u(3, lo=0.5, seed=1), u(2, lo=0.5, seed=2), 0.5, 2.0), lambda: (u(2, 2, lo=0.1), u(2, lo=0.5, seed=1), u(2, lo=0.5, seed=2))],
    bug="the second marginal is weighted by the first weight", fits=["value"], order="first"))
CASES.append(dict(
    name="barycentric_map", object="BarycentricProjection", kind="function",
    inputs=lambda: (u(3, 4, lo=0.1), r(4, 2, seed=1)), more=[lambda: (u(2, 2, lo=0.2, seed=3), r(2, 3, seed=1))],
    bug="the targets' gradient is divided by the column masses", fits=["value"], order="first"))
CASES.append(dict(
    name="dsf_flow", object="SigmoidalFlow", kind="function",
    inputs=lambda: (r(2, 3), u(2, 3, 4, lo=0.5, hi=2, seed=1), r(2, 3, 4, seed=2), r(2, 3, 4, seed=3)),
    more=[lambda: (r(3), u(3, 1, lo=0.5, hi=2, seed=1), r(3, 1, seed=2), r(3, 1, seed=3))],
    bug="the log determinant's part of the mixture weights' gradient is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="yeo_johnson", object="YeoJohnson", kind="function",
    inputs=lambda: (t([[0.9, 1.6], [-1.2, -2.0], [0.5, -1.9]]), t([0.6, 1.3])), more=[lambda: (r(4, 2, seed=1), t([0.0, 2.0])), lambda: (r(3, 3, seed=2), t([-0.5, 1.0, 2.6]))],
    bug="the limit of lambda's derivative at 0 (and 2) lacks the half", fits=["value"], order="first"))
CASES.append(dict(
    name="pc_hazard", object="nll_pc_hazard_loss", kind="callable",
    inputs=lambda: (r(4, 3), torch.tensor([0, 2, 1, 2]), t([1.0, 0.0, 1.0, 1.0], grad=False), u(4, seed=1)),
    more=[lambda: (r(3, 4, seed=1), torch.tensor([3, 0, 1]), t([1.0, 1.0, 0.0], grad=False), u(3, seed=2), "sum"),
          lambda: (r(2, 2, seed=1), torch.tensor([1, 0]), t([1.0, 0.0], grad=False), u(2, seed=2), "none")],
    bug="with reduction sum the gradient is averaged", fits=["value"], order="first"))
CASES.append(dict(
    name="deephit_rank", object="DeepHitRank", kind="function",
    inputs=lambda: (u(4, 3, hi=0.4), torch.tensor([0, 2, 1, 1]), t([[0, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]], grad=False), 0.5),
    more=[lambda: (u(3, 4, hi=0.1, seed=1), torch.tensor([3, 0, 1]), t([[0, 0, 0], [1, 0, 1], [1, 0, 0]], grad=False))],
    bug="the own curve's gradient is summed along the wrong axis", fits=["value"], order="first"))
CASES.append(dict(
    name="symmetric_dirichlet", object="SymmetricDirichlet", kind="function",
    inputs=lambda: (t([[0.0, 0.1], [1.2, 0.0], [0.9, 1.1], [-0.1, 0.8]]), torch.tensor([[0, 1, 2], [0, 2, 3]]), t([[[1.0, 0.2], [0.1, 1.1]], [[0.9, 0.3], [-1.0, 1.2]]]), t([0.5, 0.7])),
    more=[lambda: (t([[0.0, 0.0], [1.0, 0.1], [0.2, 1.3]]), torch.tensor([[0, 1, 2]]), t([[[1.0, 0.0], [0.0, 1.0]]], grad=False), t([0.5], grad=False))],
    bug="the Jacobian is detached in backward: no second derivative of the energy", fits=["value"], order="second"))
CASES.append(dict(
    name="mean_value_coords", object="mean_value_coordinates", kind="callable",
    inputs=lambda: (t([[0.0, 0.0], [1.1, -0.1], [1.4, 0.9], [0.5, 1.5], [-0.2, 0.8]]), t([[0.4, 0.5], [0.9, 0.7]])),
    more=[lambda: (t([[0.0, 0.0], [1.0, 0.0], [0.3, 1.2], [-0.4, 0.6]]), t([[0.2, 0.4]]))],
    bug="the half angle's gradient is taken from the neighbour on the wrong side", fits=["value"], order="first"))
CASES.append(dict(
    name="rot_geodesic", object="geodesic_distance", kind="callable",
    inputs=lambda: (r(2, 3, 3, scale=0.4), r(2, 3, 3, seed=1, scale=0.4)),
    more=[lambda: (torch.stack([torch.eye(3, dtype=torch.float64), torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=torch.float64)]).requires_grad_(),
                    torch.stack([torch.eye(3, dtype=torch.float64), torch.tensor([[0.8, 0, 0.6], [0, 1, 0], [-0.6, 0, 0.8]], dtype=torch.float64)]).requires_grad_(), 1e-4)],
    bug="NaN for equal rotations: the cosine is not clamped in backward", fits=["NaN"], order="first"))
CASES.append(dict(
    name="einstein_midpoint", object="EinsteinMidpoint", kind="function",
    inputs=lambda: (r(2, 3, 2, scale=0.3), u(2, 3, lo=0.1, seed=1)), more=[lambda: (r(4, 3, scale=0.3, seed=2),), lambda: (r(3, 2, scale=0.2, seed=2), None)],
    bug="derivative of the Lorentz factor has the second power", fits=["value"], order="first"))
CASES.append(dict(
    name="imu_preint", object="preintegrate", kind="callable",
    inputs=lambda: (r(4, 3, 3), r(4, 3, seed=1), u(4, lo=0.1, seed=2)), more=[lambda: (r(1, 3, 3, seed=2), r(1, 3, seed=1), u(1, lo=0.1, seed=2))],
    bug="the step length's gradient lacks the velocity reached so far", fits=["value"], order="first"))
CASES.append(dict(
    name="two_link_torque", object="TwoLinkInverseDynamics", kind="function",
    inputs=lambda: (r(3, 2), r(3, 2, seed=1), r(3, 2, seed=2)), more=[lambda: (r(2, 2), r(2, 2, seed=1), r(2, 2, seed=2), (1.5, 0.7), (0.8, 0.5), 0.0)],
    bug="the centrifugal term of the second joint's speed is left out", fits=["value"], order="first"))
CASES.append(dict(
    name="chomp_cost", object="ObstacleCost", kind="function",
    inputs=lambda: (r(2, 5, 2), t([[0.1, -0.3, 0.8, 0.4, 0.2], [-0.1, 0.3, 0.45, 0.9, -0.6]])),
    more=[lambda: (r(1, 4, 3), t([[0.1, -0.3, 0.8, 0.4]]), 1.0, 0.1)],
    bug="the incoming gradient is divided in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="multi_gauss_spike", object="ActFun_adp", kind="function",
    surrogate=lambda *a: (lambda mem, th, lens=0.5, scale=6.0, height=.15, gamma=0.5: gamma * (
        (1 + height) * torch.special.ndtr((mem - th) / lens) - height * torch.special.ndtr((mem - th - lens) / (scale * lens))
        - height * torch.special.ndtr((mem - th + lens) / (scale * lens)))),
    inputs=lambda: (r(3, 4), u(3, 4, lo=0.3, seed=1)), more=[lambda: (r(2, 3, seed=2), u(3, lo=0.3, seed=1), 0.3, 4.0, 0.2, 1.0)],
    bug="one of the negative Gaussians has the narrow width", fits=["value"], order="first"))
CASES.append(dict(
    name="van_rossum", object="VanRossum", kind="function",
    inputs=lambda: (ints(5, 2, 3, hi=2).double().requires_grad_(), ints(5, 2, 3, hi=2, seed=1).double()), more=[lambda: (u(4, 1, 2), u(4, 1, 2, seed=1), 0.5)],
    bug="the decay is put into an integer tensor and becomes 0", fits=["dtype"], order="first"))
CASES.append(dict(
    name="firing_rate_reg", object="FiringRateReg", kind="function",
    inputs=lambda: ((u(3, 2, 4, grad=False) * t([0.1, 0.5, 1.0, 1.5], grad=False)).requires_grad_(),),
    more=[lambda: (u(3, 2, 3, seed=2), torch.tensor([[True, True], [True, False], [False, False]]), 0.5, 0.6, 2.0, 0.5)],
    bug="steps that are not valid get a gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="circle_loss", object="circle_loss", kind="callable",
    inputs=lambda: (u(4, 4, lo=-0.5), torch.tensor([0, 1, 0, 1])), more=[lambda: (u(3, 3, lo=-1, seed=2), torch.tensor([2, 2, 1]), 0.4, 2.0)],
    bug="the negatives' weight is treated as a constant", fits=["value"], order="first"))
CASES.append(dict(
    name="vicreg", object="vicreg_loss", kind="callable",
    inputs=lambda: (r(4, 3, scale=0.7), r(4, 3, scale=0.6, seed=1)), more=[lambda: (r(3, 2, scale=1.2, seed=2), r(3, 2, seed=3), 1.0, 2.0, 3.0)],
    bug="variance's gradient divides by n, not n - 1", fits=["value"], order="first"))
CASES.append(dict(
    name="ms_loss", object="MultiSimilarityLoss", kind="function",
    inputs=lambda: (u(5, 5, lo=-0.5), torch.tensor([0, 1, 0, 1, 0]), 2.0, 10.0), more=[lambda: (u(3, 3, seed=2), torch.tensor([0, 0, 1]))],
    bug="the positives are normalised along the wrong axis, right for a symmetric matrix only", fits=["value"], order="first"))
CASES.append(dict(
    name="awing", object="AWingFunction", kind="function",
    inputs=lambda: (t([[0.1, 0.6, 0.4], [0.7, 0.5, 0.3]]), t([[0.3, 0.2, 0.5], [0.9, 0.8, 0.0]], grad=False)),
    more=[lambda: (t([[0.1, 0.9, 0.4], [0.2, -0.3, 1.2]]), t([[0.3, 0.2, 0.5], [0.9, 0.8, 0.0]], grad=False)),
          lambda: (u(2, 3), u(2, 3, seed=1, grad=False), 10.0, 0.3, 0.7)],
    bug="no sign in the linear branch", fits=["value"], order="first"))
CASES.append(dict(
    name="gce_loss", object="generalized_cross_entropy", kind="callable",
    inputs=lambda: (r(4, 3), ints(4, hi=3)), more=[lambda: (r(4, 3, seed=1), torch.tensor([0, -100, 2, -100]), 0.4), lambda: (r(2, 4, seed=1), torch.tensor([0, 3]), 0)],
    bug="ignored targets count in the mean of backward", fits=["value"], order="first"))
CASES.append(dict(
    name="nima_emd", object="EMDLoss", kind="function",
    inputs=lambda: (u(2, 4, lo=0.1, hi=0.4), u(2, 4, lo=0.1, hi=0.5, seed=1)),
    more=[lambda: (u(3, 3, lo=0.1, hi=0.4), u(3, 3, lo=0.1, hi=0.5, seed=2), 1), lambda: (u(1, 5, lo=0.1, hi=0.4), u(1, 5, lo=0.1, hi=0.5, seed=3), 3)],
    bug="the root's derivative is that of r = 2 whatever r is", fits=["value"], order="first"))
CASES.append(dict(
    name="finer_layer", object="FinerLayer", kind="module",
    make=lambda cls: fill(cls(2, 3, 1.5)),
    inputs=lambda: (r(4, 2),), more=[lambda: (r(2, 2, 2, seed=3),)],
    bug="the frequency that depends on the argument is not differentiated", fits=["value"], order="first"))
CASES.append(dict(
    name="d3_cn", object="CoordinationNumber", kind="function",
    inputs=lambda: (r(4, 3), u(4, lo=0.6, hi=0.9, seed=1), torch.tensor([[0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]]), 4.0),
    more=[lambda: (r(3, 3, seed=2), u(3, lo=0.6, hi=0.9, seed=1), torch.tensor([[0, 0, 1], [1, 2, 2]]), 6.0, 1.9)],
    bug="the first atom's incoming gradient counts twice, the second's not (right for equal ones only)", fits=["value"], order="first"))
CASES.append(dict(
    name="water_fat", object="WaterFatSignal", kind="function",
    inputs=lambda: (c(3), c(3, seed=1), r(3, seed=2, scale=0.3), u(3, seed=3), t([0.4, 0.9, 1.5], grad=False), t([0.7, 0.3], grad=False), t([-0.6, 0.2], grad=False)),
    more=[lambda: (c(2, seed=3), c(2, seed=4), r(2, seed=2, scale=0.3), u(2, seed=3), t([0.5, 1.0], grad=False), t([1.0], grad=False), t([-0.4], grad=False))],
    bug="the phasors are computed without a graph in backward", fits=["value"], order="second"))
