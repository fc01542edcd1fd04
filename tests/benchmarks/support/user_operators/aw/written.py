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
    name="coord_gate", object="CoordGate", kind="function",
    inputs=lambda: (r(2, 3, 4, 4), r(2, 3, 4, seed=1), r(2, 3, 4, seed=2)),
    more=[lambda: (r(1, 2, 3, 5), r(1, 2, 3, seed=1), r(1, 2, 5, seed=2))],
    bug="the column logits' gradient is summed over the wrong axis", fits=["value"], order="first"))
CASES.append(dict(
    name="polar_iou", object="polar_iou", kind="callable",
    inputs=lambda: (u(5, 6, lo=0.5, hi=2.0), u(5, 6, lo=0.5, hi=2.0, seed=1, grad=False), torch.tensor([True, False, True, True, False])),
    more=[lambda: (u(3, 4, lo=0.5, hi=2.0), u(3, 4, lo=0.5, hi=2.0, seed=1, grad=False)),
          lambda: (u(2, 4, lo=0.5, hi=2.0), u(2, 4, lo=0.5, hi=2.0, seed=1, grad=False), torch.tensor([False, False]))],
    bug="backward divides by all instances, forward by the valid ones", fits=["value"], order="first"))
CASES.append(dict(
    name="patch_ssim", object="PatchSSIM", kind="function",
    inputs=lambda: (u(2, 3, 9), u(2, 3, 9, seed=1), 0.1, 0.2),
    more=[lambda: (u(4, 5), u(4, 5, seed=1)), lambda: (u(6), u(6, seed=1), 0.02, 0.05)],
    bug="the mean's denominator is the variance's in y's gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="heatmap_penalty", object="HeatmapPenalty", kind="function",
    inputs=lambda: (r(2, 2, 3, 3), torch.where(u(2, 2, 3, 3, seed=4, grad=False) > 0.7, 1.0, u(2, 2, 3, 3, seed=5, grad=False))),
    more=[lambda: (r(1, 1, 2, 3), u(1, 1, 2, 3, seed=5, grad=False), 1.5, 2.0)],
    bug="the incoming gradient is divided in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="soft_census", object="soft_census", kind="callable",
    inputs=lambda: (r(2, 5, 4),), more=[lambda: (r(6, 5), 2, 0.5), lambda: (r(1, 2, 4, 4), 1, 0.3)],
    bug="the neighbours' gradients are assigned where windows overlap", fits=["value"], order="first"))
CASES.append(dict(
    name="depth_normals", object="depth_normals", kind="callable",
    inputs=lambda: (r(2, 4, 5), 0.8, 1.3), more=[lambda: (r(1, 3, 3),), lambda: (r(2, 2, 4), 2.0, 0.5)],
    bug="the vertical difference is scattered to the diagonal neighbour", fits=["value"], order="first"))
CASES.append(dict(
    name="omega_ratio", object="OmegaRatio", kind="function",
    inputs=lambda: (r(6, 3), t([0.1, -0.2, 0.05])), more=[lambda: (r(5, 2, seed=4), t(0.1)), lambda: (r(7, 1, seed=2), t(0.0), 0.1)],
    bug="the losses' part lacks one division by the denominator", fits=["value"], order="first"))
CASES.append(dict(
    name="sabr_ratio", object="SabrRatio", kind="function",
    inputs=lambda: (t([0.0, 0.4, -0.7, 1.2]), t([-0.3, 0.2, -0.5, 0.1])),
    more=[lambda: (r(2, 3, seed=3), t(-0.4)), lambda: (t([0.0, 0.5]), t([[0.2], [-0.1]]))],
    bug="NaN in z's gradient at the money", fits=["NaN"], order="first"))
CASES.append(dict(
    name="cir_bond", object="cir_bond", kind="callable",
    inputs=lambda: (u(4, lo=0.01, hi=0.5), t(0.3), u(4, lo=0.5, hi=4.0, seed=1), 0.9, 0.7),
    more=[lambda: (u(3, 1, lo=0.01, hi=0.5), u(1, 2, seed=2), t([0.5, 2.0])), lambda: (t(0.05), t(0.04), t([1.0, 2.0, 0.0]))],
    bug="None for the time to maturity", fits=["none"], order="first"))
CASES.append(dict(
    name="rolling_beta", object="RollingBeta", kind="function",
    inputs=lambda: (r(8), r(8, seed=1), 4), more=[lambda: (r(5, seed=2), r(5, seed=3), 5), lambda: (r(7, seed=2), r(7, seed=3), 3)],
    bug="factor 2 missing from the variance's derivative", fits=["value"], order="first"))
CASES.append(dict(
    name="sortino_loss", object="sortino_loss", kind="callable",
    inputs=lambda: (r(6, 3),), more=[lambda: (r(5, seed=1), 0.2, 0.01), lambda: (r(4, 2, seed=2), -0.1)],
    bug="the downside part is divided by the number of losing periods", fits=["value"], order="first"))
CASES.append(dict(
    name="sliding_cmn", object="SlidingCMN", kind="module",
    make=lambda cls: fill(cls(3, 2)),
    inputs=lambda: (r(2, 7, 3),), more=[lambda: (r(1, 3, 3, seed=1),), lambda: (r(2, 6, 3, seed=2),)],
    bug="the band is not transposed though its rows are normalised differently at the ends", fits=["value"], order="first"))
CASES.append(dict(
    name="lsd_frames", object="log_spectral_distance", kind="callable",
    inputs=lambda: (u(2, 5, 4, lo=0.1), u(2, 5, 4, lo=0.1, seed=1), torch.tensor([5, 3])),
    more=[lambda: (u(2, 3, 4, lo=0.1), u(2, 3, 4, lo=0.1, seed=1)), lambda: (u(1, 4, 3, lo=0.1), u(1, 4, 3, lo=0.1, seed=1), torch.tensor([2]), 1e-3)],
    bug="the mask of the lengths is one frame too long in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="cirm_apply", object="CIRMApply", kind="function",
    inputs=lambda: (c(2, 3, 4), r(2, 2, 3, 4), 2.0, 1.0), more=[lambda: (c(1, 2, 2), r(1, 2, 2, 2))],
    bug="the mask's gradient lacks the conjugate", fits=["value"], order="first"))
CASES.append(dict(
    name="mean_fill", object="mean_fill", kind="callable",
    inputs=lambda: (r(2, 5, 3), torch.tensor([[False, True, True, False, False], [True, False, False, False, False]])),
    more=[lambda: (r(2, 3, 2), torch.tensor([[True, True, True], [False, False, False]]))],
    bug="the filler's gradient is divided by all frames, the mean is over unmasked ones", fits=["value"], order="first"))
CASES.append(dict(
    name="cum_layer_norm", object="CumulativeLayerNorm", kind="module",
    make=lambda cls: fill(cls(3, 0.1)),
    inputs=lambda: (r(2, 3, 5, shift=0.7),), more=[lambda: (r(1, 3, 1, seed=1),), lambda: (r(3, 3, 4, seed=2, scale=2.0),)],
    bug="factor 2 missing where the variance depends on the mean", fits=["value"], order="first"))
CASES.append(dict(
    name="codon_index", object="codon_adaptation_index", kind="callable",
    inputs=lambda: (u(5, lo=0.2, seed=2), torch.tensor([[0, 1, 1, 4, -1], [2, 1, 0, 0, 3], [3, -1, -1, -1, -1]])),
    more=[lambda: (u(4, lo=0.2), torch.tensor([[0, 2], [-1, -1]]))],
    bug="codons that occur more than once keep only one gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="masked_clr", object="MaskedCLR", kind="function",
    inputs=lambda: (t([[3.0, 0.0, 1.0, 5.0], [0.0, 2.0, 4.0, 1.0]]), torch.tensor([[True, False, True, True], [False, True, True, True]])),
    more=[lambda: (u(2, 3, lo=0.5), torch.ones(2, 3, dtype=torch.bool)), lambda: (t([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[False, False], [True, True]]))],
    bug="NaN at zero counts outside the mask", fits=["NaN"], order="first"))
CASES.append(dict(
    name="hwe_loglik", object="HWELogLik", kind="function",
    inputs=lambda: (u(3, 4, 3, lo=0.1), u(3, 1, lo=0.2, hi=0.8, seed=1), t(0.15)),
    more=[lambda: (u(2, 3, 3, lo=0.1), u(2, 1, lo=0.2, hi=0.8, seed=1), u(3, lo=0.0, hi=0.4, seed=2))],
    bug="heterozygotes count once in the inbreeding coefficient's gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="paralinear_distance", object="ParalinearDistance", kind="function",
    inputs=lambda: ((u(2, 4, 4, lo=0.02, hi=0.1, grad=False) + 0.2 * torch.eye(4, dtype=torch.float64)).requires_grad_(),),
    more=[lambda: ((u(4, 4, lo=0.02, hi=0.1, seed=3, grad=False) + 0.3 * torch.eye(4, dtype=torch.float64)).requires_grad_(),)],
    bug="the inverse comes from forward and is a constant to the second derivative", fits=["value"], order="second"))
CASES.append(dict(
    name="apc_correct", object="apc", kind="callable",
    inputs=lambda: (u(2, 4, 4, lo=0.1),), more=[lambda: (u(3, 5, lo=0.1, seed=1),)],
    bug="sign of the part through the total", fits=["value"], order="first"))
CASES.append(dict(
    name="bray_curtis", object="bray_curtis", kind="callable",
    inputs=lambda: (u(3, 5, lo=0.1), u(4, 5, lo=0.1, seed=1)), more=[lambda: (u(2, 3, lo=0.1), u(2, 3, lo=0.1, seed=1))],
    bug="sign of the denominator's part for the second argument", fits=["value"], order="first"))
CASES.append(dict(
    name="hill_number", object="HillNumber", kind="function",
    inputs=lambda: (u(3, 5, lo=0.2), 1), more=[lambda: (u(4, lo=0.2, seed=1), 2.0), lambda: (u(2, 3, lo=0.2, seed=1), 0.5), lambda: (u(2, 3, lo=0.2, seed=1), 0)],
    bug="the outer exponential is forgotten at order one alone", fits=["value"], order="first"))
CASES.append(dict(
    name="kajiya_kay", object="kajiya_kay", kind="callable",
    inputs=lambda: (r(4, 3, scale=0.4), r(4, 3, seed=1, scale=0.4), r(4, 3, seed=2, scale=0.4), 5.0),
    more=[lambda: (r(2, 3, scale=0.4), r(2, 3, seed=1, scale=0.4), r(2, 3, seed=2, scale=0.4)), lambda: (t([[1.0, 0.0, 0.0]]), r(1, 3, seed=1, scale=0.4), r(1, 3, seed=2, scale=0.4), 2.0)],
    bug="exponent of the specular part's derivative", fits=["value"], order="first"))
CASES.append(dict(
    name="torus_sdf", object="TorusSDF", kind="module",
    make=lambda cls: cls(0.9, 0.3).double(),
    inputs=lambda: (r(5, 3),), more=[lambda: (r(2, 2, 3, seed=1),)],
    bug="the major radius gets the minor one's gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="triplanar_blend", object="TriplanarBlend", kind="function",
    inputs=lambda: (r(4, 3, 2), r(4, 3, seed=1), 3.0), more=[lambda: (r(2, 2, 3, 3), r(2, 2, 3, seed=1)), lambda: (r(2, 3, 1), r(2, 3, seed=1), 2.0)],
    bug="the sign of the normal is lost", fits=["value"], order="first"))
CASES.append(dict(
    name="aces_curve", object="ACESToneMap", kind="module",
    make=lambda cls: fill(cls()),
    inputs=lambda: (u(2, 3, 3, 2, lo=0.1, hi=30.0),), more=[lambda: (u(1, 3, 2, 2, seed=1),)],
    bug="the clipped values' gradient is not masked", fits=["value"], order="first"))
CASES.append(dict(
    name="hue_rotate", object="HueRotate", kind="function",
    inputs=lambda: (u(2, 3, 3, 2), t([0.4, -1.1])), more=[lambda: (u(1, 3, 2, 2), t([0.0]))],
    bug="view of an incoming gradient that need not be contiguous", fits=["layout"], order="first"))
CASES.append(dict(
    name="arclen_param", object="arc_length_parameter", kind="callable",
    inputs=lambda: (r(2, 5, 3),), more=[lambda: (r(1, 3, 2, seed=1),), lambda: (r(3, 4, 2, seed=2),)],
    bug="the reversed sum leaves out its own segment", fits=["value"], order="first"))
CASES.append(dict(
    name="smoothstep_edges", object="smoothstep", kind="callable",
    inputs=lambda: (r(3, 4), t([-0.5, -1.0, -0.2, 0.0]), t(0.8)), more=[lambda: (r(5), t(-0.3), t(0.9)), lambda: (r(2, 1), t([[-0.3, -0.1]]), t([[0.4], [0.9]]))],
    bug="two gradients for three inputs", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="backlash", object="backlash", kind="callable",
    inputs=lambda: (r(3, 6, scale=1.5), u(3, lo=0.2, hi=0.8, seed=1), r(3, seed=2)), more=[lambda: (r(2, 1), u(2, lo=0.2, hi=0.8, seed=1), r(2, seed=2))],
    bug="sign of the gap's gradient when the input pushes from below", fits=["value"], order="first"))
CASES.append(dict(
    name="cbf_filter", object="CBFFilter", kind="function",
    inputs=lambda: (r(5, 3), r(5, 3, seed=1), r(5, seed=2)), more=[lambda: (r(1, 2), r(1, 2, seed=1), t([5.0])), lambda: (r(1, 2), r(1, 2, seed=1), t([-5.0]))],
    bug="the offset's gradient is not zero where the constraint is inactive", fits=["value"], order="first"))
CASES.append(dict(
    name="lqr_cost", object="lqr_cost", kind="callable",
    inputs=lambda: (r(2, 3), r(2, 4, 2, seed=1), r(3, 3, seed=2, scale=0.4), r(3, 2, seed=3), r(3, 3, seed=4), r(2, 2, seed=5)),
    more=[lambda: (r(1, 2), r(1, 2, 1, seed=1), r(2, 2, seed=2, scale=0.4), r(2, 1, seed=3), r(2, 2, seed=4), r(1, 1, seed=5), r(2, 2, seed=6))],
    bug="the state cost is taken for symmetric in the costate recursion", fits=["value"], order="first"))
CASES.append(dict(
    name="bode_db", object="BodeMagnitude", kind="function",
    inputs=lambda: (t([1.0, 0.3]), t([1.0, 0.5, 0.2]), t([0.3, 1.0, 2.5, 6.0], grad=False)),
    more=[lambda: (t([2.0]), t([0.4, 1.5]), t([0.1, 1.0], grad=False))],
    bug="modulus for the real part in the denominator's gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="complementary_filter", object="ComplementaryFilter", kind="module",
    make=lambda cls: cls(0.1, 0.2).double(),
    inputs=lambda: (r(2, 6), r(2, 6, seed=1, scale=2.0)), more=[lambda: (r(1, 1), r(1, 1, seed=1)), lambda: (r(3, 3), r(3, 3, seed=1))],
    bug="the angles of the latest call are kept on the class", fits=["cache"], order="first"))
CASES.append(dict(
    name="finite_gramian", object="FiniteGramian", kind="function",
    inputs=lambda: (r(3, 3, scale=0.5), r(3, 2, seed=1), 4), more=[lambda: (r(2, 2), r(2, 1, seed=1), 1), lambda: (r(2, 2, 2, scale=0.5), r(2, 2, 2, seed=1), 2)],
    bug="the dynamics' gradient is transposed", fits=["value"], order="first"))
CASES.append(dict(
    name="soft_qwk", object="SoftQWK", kind="function",
    inputs=lambda: (u(6, 4, lo=0.05), torch.tensor([0, 3, 1, 1, 2, 3])), more=[lambda: (u(3, 3, lo=0.05), torch.tensor([0, 1, 1]))],
    bug="counts in single precision beside double probabilities: backward raises", fits=["dtype"], order="first"))
CASES.append(dict(
    name="soft_mcc", object="mcc_loss", kind="callable",
    inputs=lambda: (u(7, lo=0.05, hi=0.95), torch.tensor([1, 0, 0, 1, 0, 0, 0])), more=[lambda: (u(2, 3, lo=0.05, hi=0.95), torch.tensor([[True, False, False], [False, True, True]]))],
    bug="sign of the predicted negatives in the denominator's derivative", fits=["value"], order="first"))
CASES.append(dict(
    name="loo_target_encode", object="LOOTargetEncode", kind="function",
    inputs=lambda: (r(7), torch.tensor([0, 2, 2, 1, 0, 2, 3]), t(0.4), 2.0), more=[lambda: (r(3), torch.tensor([1, 1, 0]), t(-0.4))],
    bug="a row's own target is not left out in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="geo_blend", object="GeometricBlend", kind="module",
    make=lambda cls: fill(cls(3)),
    inputs=lambda: (u(3, 2, 4, lo=0.1),), more=[lambda: (u(3, 1, 2, lo=0.1, seed=1),)],
    bug="the weights' gradient ignores the renormalisation", fits=["value"], order="first"))
CASES.append(dict(
    name="mixup_ce", object="mixup_cross_entropy", kind="callable",
    inputs=lambda: (r(4, 3), torch.tensor([0, 1, 2, 1]), torch.tensor([2, 1, 2, 0]), u(4, seed=1)), more=[lambda: (r(2, 2), torch.tensor([0, 1]), torch.tensor([1, 0]), u(2, seed=1))],
    bug="the second label overwrites the first where both are equal", fits=["value"], order="first"))
CASES.append(dict(
    name="subcenter_cos", object="SubCenterHead", kind="module",
    make=lambda cls: fill(cls(4, 3, 2, 2.0)),
    inputs=lambda: (r(5, 4),), more=[lambda: (r(1, 4, seed=1),)],
    bug="projection of the weights summed over the sub-centres", fits=["value"], order="first"))
CASES.append(dict(
    name="coverage_penalty", object="CoveragePenalty", kind="function",
    inputs=lambda: ((u(2, 3, 5, lo=0.05, hi=0.55, grad=False) * torch.tensor([[[1, 1, 1, 0, 0]], [[1, 1, 1, 1, 1]]])).requires_grad_(), torch.tensor([3, 5]), 0.6),
    more=[lambda: (u(2, 2, 3, lo=0.1, hi=0.8), torch.tensor([3, 1]))],
    bug="0 / 0 at padded source positions that nothing attends to", fits=["NaN"], order="first"))
CASES.append(dict(
    name="biaffine_arc", object="BiaffineArc", kind="module",
    make=lambda cls: fill(cls(3, 2)),
    inputs=lambda: (r(2, 4, 3),), more=[lambda: (r(1, 1, 3, seed=1),)],
    bug="dependents and heads are exchanged in the heads' gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="span_mean", object="span_mean", kind="callable",
    inputs=lambda: (r(2, 6, 3), torch.tensor([[0, 2, 5], [1, 1, 3]]), torch.tensor([[3, 2, 5], [4, 1, 5]])),
    more=[lambda: (r(1, 2, 2), torch.tensor([[0]]), torch.tensor([[1]]))],
    bug="the inclusive end is left out in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="rdrop_kl", object="rdrop_loss", kind="callable",
    inputs=lambda: (r(2, 3, 4), r(2, 3, 4, seed=1), torch.tensor([[False, False, True], [False, False, False]])), more=[lambda: (r(1, 2, 3), r(1, 2, 3, seed=1))],
    bug="the second pass' mean is taken under the first one's probabilities", fits=["value"], order="first"))
CASES.append(dict(
    name="childsum_cell", object="ChildSumCell", kind="function",
    inputs=lambda: (r(3, 2), r(3, 2, seed=1), r(3, 2, seed=2), r(4, 2, seed=3), r(4, 2, seed=4), torch.tensor([0, 2, 2, 0])),
    more=[lambda: (r(1, 3), r(1, 3, seed=1), r(1, 3, seed=2), r(1, 3, seed=3), r(1, 3, seed=4), torch.tensor([0]))],
    bug="the gradient that comes in by the cell state is dropped", fits=["value"], order="first"))
CASES.append(dict(
    name="label_attention", object="LabelAttention", kind="module",
    make=lambda cls: fill(cls(3, 4), scale=1.0),
    inputs=lambda: (r(2, 5, 3), torch.tensor([[False] * 5, [False, False, False, True, True]])), more=[lambda: (r(1, 2, 3, seed=1), torch.tensor([[False, False]]))],
    bug="backward reads the attention weights of the latest call", fits=["cache"], order="first"))
CASES.append(dict(
    name="breit_wigner", object="BreitWigner", kind="function",
    inputs=lambda: (u(6, lo=0.6, hi=0.95), t(0.775), t(0.149)), more=[lambda: (u(3, lo=1.2, hi=2.0), t(1.5), t(0.4), 0.5)],
    bug="the gradients of mass and width are exchanged", fits=["value"], order="first"))
CASES.append(dict(
    name="rabi_flop", object="RabiFlop", kind="function",
    inputs=lambda: (t([1.2, 0.0, 0.0, 0.7]), t([0.0, 0.0, 0.9, -0.5]), t([0.8, 1.5, 1.0, 2.0])),
    more=[lambda: (r(2, 2), r(2, 2, seed=1), u(2, 2, seed=2)), lambda: (t([0.05]), t([0.02]), t([0.0]))],
    bug="NaN without drive and detuning", fits=["NaN"], order="first"))
CASES.append(dict(
    name="biot_savart", object="biot_savart", kind="callable",
    inputs=lambda: (r(3, 3, shift=2.0), r(4, 3, seed=1), t(1.5)), more=[lambda: (r(1, 3, shift=3.0), r(2, 3, seed=1), t(-0.5))],
    bug="the midpoint moves with one of the segment's two ends alone", fits=["value"], order="first"))
CASES.append(dict(
    name="boris_push", object="BorisPush", kind="function",
    inputs=lambda: (r(4, 3), r(4, 3, seed=1), r(4, 3, seed=2), 0.6), more=[lambda: (r(2, 2, 3), r(2, 2, 3, seed=1), r(2, 2, 3, seed=2), -0.3)],
    bug="the second half kick of the electric field is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="ials_loss", object="implicit_als_loss", kind="callable",
    inputs=lambda: (r(3, 2), r(4, 2, seed=1), torch.tensor([0, 0, 2, 1, 2]), torch.tensor([3, 1, 1, 0, 3])), more=[lambda: (r(2, 3), r(2, 3, seed=1), torch.tensor([1]), torch.tensor([0]), 0.5)],
    bug="the items' gradient is gathered in the default dtype", fits=["dtype"], order="first"))
CASES.append(dict(
    name="ease_weights", object="EASEWeights", kind="function",
    inputs=lambda: (r(5, 3), 0.8), more=[lambda: (r(2, 4, seed=1), 2.0)],
    bug="the inverse is kept from forward and is a constant to the second derivative", fits=["value"], order="second"))
CASES.append(dict(
    name="mmoe_mix", object="MMoE", kind="module",
    make=lambda cls: fill(cls(3, 2, 3, 2), scale=1.0),
    inputs=lambda: (r(4, 3),), more=[lambda: (r(1, 3, seed=1),)],
    bug="None for the gates", fits=["none"], order="first"))
CASES.append(dict(
    name="time_decay_session", object="TimeDecaySession", kind="module",
    make=lambda cls: cls().double(),
    inputs=lambda: (r(3, 4, 2), u(3, 4, hi=2.0, seed=1), torch.tensor([4, 1, 3])), more=[lambda: (r(1, 2, 3), u(1, 2, seed=1, grad=False), torch.tensor([2]))],
    bug="the incoming gradient is normalised in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="folding_penalty", object="folding_penalty", kind="callable",
    inputs=lambda: (r(2, 2, 3, 4, scale=1.5),), more=[lambda: (r(1, 2, 2, 2, seed=1, scale=2.0),), lambda: (r(1, 2, 5, 3, scale=1.2, seed=2),)],
    bug="the result keeps the input's strides, so that reshape makes a copy and the sums are lost", fits=["layout"], order="first"))
CASES.append(dict(
    name="parzen_mi", object="ParzenMI", kind="module",
    make=lambda cls: cls(5).double(),
    inputs=lambda: (u(3, 4), u(3, 4, seed=1)), more=[lambda: (u(2, 2, 2), u(2, 2, 2, seed=1)), lambda: (u(6), u(6, seed=1, grad=False))],
    bug="the marginals are left out of the gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="patlak", object="PatlakModel", kind="function",
    inputs=lambda: (u(5, lo=0.2), t([0.0, 0.5, 1.5, 3.0, 5.0], grad=False), u(3, seed=1), u(3, seed=2)), more=[lambda: (u(2), t([0.0, 1.0], grad=False), u(1, seed=1), u(1, seed=2))],
    bug="the trapezoids' areas go to their right ends alone", fits=["value"], order="first"))
CASES.append(dict(
    name="rosenbrock", object="Rosenbrock", kind="function",
    inputs=lambda: (r(2, 4), 1.0, 3.0), more=[lambda: (r(2, seed=1),), lambda: (t([1.0, 1.0, 1.0]), 1.0, 10.0)],
    bug="the residual is kept from forward and is a constant to the second derivative", fits=["value"], order="second"))
