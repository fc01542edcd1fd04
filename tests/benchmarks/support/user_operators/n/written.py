"""Operators, example inputs, and what is wrong in each wrong/NAME.py."""
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


def _k(*shape, n, seed=0):
    """integers below n"""
    return torch.randint(0, n, shape, generator=_g(seed))


def _t(x, dtype=None):
    return torch.tensor(x, dtype=dtype)


def _f(x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


CASES = []


def _case(name, object, inputs, more, bug, fits, shows=None, make=None, kind=None):
    c = {"name": name, "group": name, "object": object, "inputs": inputs, "more": more,
         "shows": shows or inputs, "kind": kind or ("module" if make else "function"), "bug": bug, "fits": fits}
    if make:
        c["make"] = make
    CASES.append(c)


def _fill(m, seed=5, scale=0.5, **shift):
    """seeded parameters in float64"""
    m = m.double()
    g = _g(seed)
    with torch.no_grad():
        for k, p in m.named_parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * scale + shift.get(k, 0.0))
    return m

# ---- natural language, recommendation and ranking
_case("weighted_embedding_bag", "WeightedEmbeddingBag",
      lambda: (_r(6, 3), _t([1, 2, 1, 4, 2, 2]), _t([0, 3]), _r(6, seed=1), "sum", None),
      [lambda: (_r(5, 2), _t([0, 3, 3, 1, 0]), _t([0, 2, 2]), None, "mean", 0),
       lambda: (_r(5, 4), _t([0, 3, 3, 1, 0]), _t([0, 1, 4]), _r(5, seed=3), "mean", 3),
       lambda: (_r(3, 2), _t([2, 2, 0]), _t([0, 1]))],
      "the table's gradient is assigned by index, so an id that comes twice keeps one contribution only", ["repeated index"])
_case("label_smoothed_nll", "LabelSmoothedNLL",
      lambda: (_r(2, 3, 5), _t([[0, 2, 1], [4, 4, 3]]), 0.1, -100),
      [lambda: (_r(4, 3), _t([0, -1, 2, -1]), 0.3, -1), lambda: (_r(3, 4), _t([-100, -100, -100]), 0.1, -100)],
      "divides by all tokens instead of the tokens that are not ignored; shows only when some target is ignored",
      ["factor", "ignore index"], shows=lambda: (_r(2, 3, 5), _t([[0, 2, -100], [4, -100, 3]]), 0.1, -100))
_case("cosine_attention", "CosineAttention",
      lambda: (_r(2, 2, 3, 4), _r(2, 2, 5, 4, seed=1), _r(2, 2, 5, 3, seed=2), _u(2, 1, 1, lo=1, hi=3), None),
      [lambda: (_r(2, 1, 2, 3), _r(2, 1, 4, 3, seed=1), _r(2, 1, 4, 2, seed=2), _u(1, 1, 1, lo=1, hi=3),
                _t([[True, True, False, True], [False, True, True, False]])),
       lambda: (_r(1, 3, 1, 2), _r(1, 3, 2, 2, seed=1), _r(1, 3, 2, 1, seed=2), _u(3, 1, 1, lo=1, hi=3))],
      "the key's gradient lacks the projection that comes from normalising k", ["missing term"])
_case("rotary_embedding", "RotaryEmbedding",
      lambda: (_r(2, 5, 6), 4, 0, False),
      [lambda: (_r(2, 2, 3, 4), 4, 7, True), lambda: (_r(3, 6), 2, 3, True, 100.0)],
      "backward always uses the half-split layout; wrong with interleaved=True", ["option", "layout"],
      shows=lambda: (_r(2, 5, 6), 4, 0, True))
_case("length_mean_pool", "LengthMeanPool",
      lambda: (_r(3, 4, 2), _t([4, 2, 1])), [lambda: (_r(2, 3, 3), _t([0, 3])), lambda: (_r(1, 5, 1), _t([4]))],
      "steps past the length get a gradient although they are not pooled", ["padding", "mask"])
_case("unlikelihood_loss", "UnlikelihoodLoss",
      lambda: (_r(3, 5), _t([[0, 2], [4, -1], [1, 3]]), -1, "sum"),
      [lambda: (_r(2, 4), _t([[0, 0, 2], [-1, -1, -1]]), -1, "mean"), lambda: (_r(3, 4), _t([[1], [9], [0]]), 9, "none")],
      "reduction='mean' divides by all candidate slots in backward, by the valid ones in forward", ["factor", "option", "padding"],
      shows=lambda: (_r(3, 5), _t([[0, 2], [4, -1], [1, 3]]), -1, "mean"))
_case("relpos_attention", "RelativePositionAttention",
      lambda: (_r(2, 2, 4, 3), _r(2, 2, 4, 3, seed=1), _r(2, 2, 4, 3, seed=2), _r(5, 2, seed=3), 2, False),
      [lambda: (_r(1, 2, 3, 2), _r(1, 2, 3, 2, seed=1), _r(1, 2, 3, 2, seed=2), _r(3, 2, seed=3), 1, True),
       lambda: (_r(1, 1, 2, 2), _r(1, 1, 5, 2, seed=1), _r(1, 1, 5, 2, seed=2), _r(7, 1, seed=3), 3)],
      "the key's gradient lacks the factor 1/sqrt(D)", ["factor"])
_case("bpr_loss", "BPRLoss",
      lambda: (_r(3, 4), _r(3, 4, seed=1), _r(3, 2, 4, seed=2), None, 1.0),
      [lambda: (_r(2, 3), _r(2, 3, seed=1), _r(2, 1, 3, seed=2), _u(2, seed=4), 0.5),
       lambda: (_r(2, 2), _r(2, 2, seed=1), _r(2, 4, 2, seed=2), _d(_u(2, seed=4)), 2.0)],
      "the gradients of the vectors lack 1/temperature; shows only when temperature is not 1", ["factor", "option"],
      shows=lambda: (_r(3, 4), _r(3, 4, seed=1), _r(3, 2, 4, seed=2), None, 0.5))
_case("fm_interaction", "FMInteraction", lambda: (_r(5, 3), _r(4, 5, seed=1)),
      [lambda: (_r(2, 4), _r(1, 2, seed=1)), lambda: (_r(3, 1), _r(2, 3, seed=1))],
      "the square term of x's gradient has a 0.5 too many", ["factor"])
_case("cross_network", "CrossNetwork", lambda: (_r(3, 4),), [lambda: (_r(2, 3, 4),), lambda: (_r(1, 4),)],
      "the residual's gradient into x_l is missing", ["missing term"], make=lambda cls: _fill(cls(4, num_layers=2)))
_case("approx_ndcg", "ApproxNDCGLoss",
      lambda: (_r(2, 4), _t([[3, 0, 1, 2], [0, 1, 0, 0]]), 1.0),
      [lambda: (_r(3, 3), _t([[1, -1, 2], [0, 0, 0], [2, 0, -1]]), 2.0, -1), lambda: (_r(1, 5), _t([[1, 1, 0, 2, -9]]), 0.5, -9)],
      "the derivative of the log2 discount lacks ln 2", ["factor"])
_case("sampled_softmax", "InBatchSoftmax",
      lambda: (_r(4, 3), _r(4, 3, seed=1), _t([3, 1, 3, 2]), None, 1.0),
      [lambda: (_r(3, 2), _r(3, 2, seed=1), _t([0, 1, 2]), _r(3, seed=2), 0.5),
       lambda: (_r(2, 5), _r(2, 5, seed=1), _t([7, 7]), _d(_r(2, seed=2))),
       lambda: (_r(3, 2), _r(3, 2, seed=1), _t([4, 1, 4]))],
      "the item's gradient uses the matrix of logit gradients untransposed", ["transpose"])

# ---- vision
_case("flow_warp", "FlowWarp", lambda: (_r(1, 2, 3, 4), _r(1, 2, 3, 4, seed=1)),
      [lambda: (_r(2, 1, 2, 3), _r(2, 2, 2, 3, seed=2, scale=2)), lambda: (_r(1, 3, 4, 2), _r(1, 2, 4, 2, seed=5))],
      "the flow's x and y gradients are swapped", ["swapped", "axis"])
_case("gem_pool", "GeneralizedMeanPooling", lambda: (_u(2, 3, 3, 2, lo=0.1, hi=2),),
      [lambda: (_r(1, 2, 4, 3),), lambda: (_u(3, 1, 1, 1, lo=0.5, hi=1),)],
      "p's gradient lacks the term -log(m)/p^2 of the outer root", ["missing term"], make=lambda cls: cls(2.5).double())
_case("layer_norm_2d", "LayerNorm2d", lambda: (_r(2, 3, 2, 2),), [lambda: (_r(1, 3, 1, 4),), lambda: (_r(3, 3, 2, 1, seed=8),)],
      "the weight's gradient is multiplied by the weight; not seen while the weight is one (fresh module)", ["factor", "wrong tensor"],
      make=lambda cls: _fill(cls(3), scale=0.3, weight=1.0))
_case("giou_loss", "GIoULoss",
      lambda: (_f([[0., 0., 2., 2.], [1., 1., 4., 3.]]), _f([[1., 0.5, 3., 2.5], [0.5, 1.5, 3., 4.]])),
      [lambda: (_f([[0., 0., 1., 1.]]), _f([[2., 3., 4., 5.]]), 1e-7, "sum"),
       lambda: (_f([[0., 0., 1., 4.], [0., 0., 5., 5.], [1., 2., 3., 4.]]), _f([[2., 1., 4., 3.], [1., 1., 3., 3.2], [0.2, 0.5, 1.5, 2.5]]), 1e-6, "none")],
      "boxes that overlap along one axis only still get the intersection's gradient", ["threshold", "mask"],
      shows=lambda: (_f([[0., 0., 1., 4.], [0., 0., 2., 2.]]), _f([[2., 1., 4., 3.], [1., 0.5, 3., 2.5]])))
_case("soft_pool2d", "SoftPool2d", lambda: (_r(1, 2, 4, 4), 2),
      [lambda: (_r(2, 1, 5, 4), 3, 1), lambda: (_r(1, 2, 5, 3), 2, 2)],
      "the derivative of the softmax weights is left out", ["missing term"])
_case("cost_volume", "CostVolume", lambda: (_r(1, 2, 3, 4), _r(1, 2, 3, 4, seed=1), 1),
      [lambda: (_r(2, 1, 2, 2), _r(2, 1, 2, 2, seed=1), 2), lambda: (_r(1, 3, 3, 2), _r(1, 3, 3, 2, seed=1), 0)],
      "the second map's gradient is placed with dx and dy exchanged", ["axis"])
_case("blur_pool", "BlurPool2d", lambda: (_r(1, 2, 4, 5),), [lambda: (_r(2, 1, 3, 3),), lambda: (_r(1, 1, 2, 6),)],
      "reflected border gradients go to the edge pixels as for symmetric padding", ["padding", "boundary"],
      make=lambda cls: cls(3, 2, "reflect").double())
_case("quality_focal_loss", "QualityFocalLoss",
      lambda: (_r(3, 2), _d(_u(3, 2, seed=1)), None, 2.0, None),
      [lambda: (_r(4), _u(4, seed=2, lo=0.05, hi=0.95), _u(4, seed=3), 1.5, 3.0), lambda: (_r(2, 2), _d(_u(2, 2, seed=2)), None, 0)],
      "the modulating factor's derivative lacks the sign of p - y", ["sign", "value"])
_case("instance_standardize", "InstanceStandardize", lambda: (_r(2, 3, 4), 1e-5, False),
      [lambda: (_r(1, 2, 2, 3), 1e-3, True), lambda: (_r(3, 1, 5),)],
      "unbiased=True is ignored by the standard deviation's derivative", ["option", "factor"],
      shows=lambda: (_r(2, 3, 4), 1e-5, True))

# ---- graphs and point clouds
_case("chamfer_distance", "ChamferDistance", lambda: (_r(1, 4, 3), _r(1, 3, 3, seed=1)),
      [lambda: (_r(2, 2, 3), _r(2, 5, 3, seed=1)), lambda: (_r(1, 1, 2), _r(1, 4, 2, seed=1))],
      "each cloud lacks the gradient of the other cloud's distances", ["missing term"])
_case("three_interpolate", "ThreeInterpolate", lambda: (_r(2, 2, 4), _t([[[0, 1, 2], [3, 1, 0]], [[1, 2, 3], [0, 2, 3]]]), _u(2, 2, 3, seed=1)),
      [lambda: (_r(1, 3, 3), _t([[[0, 0, 2], [1, 1, 1], [2, 0, 1]]]), _u(1, 3, 3, seed=1)),
       lambda: (_r(1, 1, 2), _t([[[0, 1]]]), _u(1, 1, 2, seed=1))],
      "None is returned for the weights", ["none"])
_case("gat_aggregate", "GATAggregate", lambda: (_r(4, 2, 3), _r(6, 2, seed=1), _t([[0, 1, 2, 3, 0, 1], [1, 0, 1, 2, 2, 1]])),
      [lambda: (_r(3, 1, 2), _r(4, 1, seed=1), _t([[0, 0, 1, 2], [1, 1, 1, 1]])), lambda: (_r(2, 2, 1), _r(1, 2, seed=1), _t([[0], [1]]))],
      "the softmax's backward sums over the edges of a source instead of a target", ["axis", "wrong index"])
_case("gcn_propagate", "GCNPropagate", lambda: (_r(4, 2), _t([[0, 1, 2, 3, 1], [1, 0, 1, 2, 2]]), _u(5, lo=0.5, hi=2), True),
      [lambda: (_r(3, 3), _t([[0, 0, 2], [1, 1, 0]]), _u(3, lo=0.5, hi=2), False), lambda: (_r(3, 1), _t([[0, 1], [2, 2]]))],
      "the edge weight's gradient treats the degrees as constants", ["missing term"])
_case("group_relative", "GroupRelative", lambda: (_r(1, 5, 3), _t([[[0, 1, 4], [2, 3, 2]]]), _t([[0, 3]]), 0.5),
      [lambda: (_r(2, 3, 3), _t([[[0, 1]], [[2, 2]]]), _t([[1], [2]])), lambda: (_r(1, 2, 2), _t([[[0], [1], [1]]]), _t([[1, 1, 0]]), 2.0)],
      "the centre gets the mean instead of the sum over its neighbours", ["factor", "reduction"])
_case("segment_max", "SegmentMax", lambda: (_r(5, 2), _t([0, 1, 0, 2, 1]), 3),
      [lambda: (_r(4, 3), _t([0, 0, 3, 3]), 4, -1.0), lambda: (_r(2, 1), _t([1, 0]), 2)],
      "tied rows each get the whole gradient; seen only at ties (e.g. zeros after a relu)", ["ties"],
      shows=lambda: (_f([[1.0, 2.0], [0.5, 1.0], [3.0, 2.5], [0.5, 0.2]]), _t([0, 1, 0, 1]), 2))

# ---- reinforcement learning and sequence models
_case("gae", "GeneralizedAdvantage", lambda: (_r(4, 2), _r(5, 2, seed=1), torch.zeros(4, 2, dtype=torch.bool), 0.9, 0.8),
      [lambda: (_r(3, 1), _r(4, 1, seed=1), _t([[True], [False], [True]])), lambda: (_r(1, 3), _r(2, 3, seed=1), _t([[False, True, False]]), 0.5, 1.0)],
      "episode ends do not stop the backward carry; shows only when some done is True", ["mask", "value"],
      shows=lambda: (_r(4, 2), _r(5, 2, seed=1), _t([[False, False], [True, False], [False, True], [False, False]]), 0.9, 0.8))
_case("discounted_return", "DiscountedReturn", lambda: (_r(4, 2), _u(4, 2, seed=1), _r(2, seed=2)),
      [lambda: (_r(3, 2), _u(3, 1, seed=1), None), lambda: (_r(2, 3), _u(1, 1, seed=1))],
      "a discount shared over time gets the mean over the steps instead of the sum; shows only with (1, 1) discounts", ["broadcast", "reduction"],
      shows=lambda: (_r(4, 2), _u(1, 1, seed=1), _r(2, seed=2)))
_case("linear_recurrence", "LinearRecurrence", lambda: (_u(2, 4, 3), _r(2, 4, 3, seed=1), None, False),
      [lambda: (_u(1, 3, 2), _r(1, 3, 2, seed=1), _r(1, 2, seed=2), True), lambda: (_u(2, 1, 2), _r(2, 1, 2, seed=1))],
      "the first step's a gets no gradient from h0; shows only when h0 is given", ["missing term", "boundary", "option"],
      shows=lambda: (_u(2, 4, 3), _r(2, 4, 3, seed=1), _r(2, 3, seed=2), False))
_case("lru_scan", "LRUScan", lambda: (_c(3).detach().mul(0.5).requires_grad_(), _u(3, seed=1), _c(2, 4, 3, seed=2)),
      [lambda: (_c(2, seed=4), _u(2, seed=1), _c(1, 1, 2, seed=2)), lambda: (_c(1, seed=4), _u(1, seed=1), _c(3, 3, 1, seed=2))],
      "lambda's gradient lacks the conjugate of the state", ["complex", "conjugate"])
_case("ppo_clip_loss", "PPOClipLoss",
      lambda: (_f([-1.0, -0.5, -2.0, -0.3]), _d(_f([-1.5, -0.4, -1.5, -0.9])), _f([1.0, 0.5, -0.7, -1.2]), None, 0.2),
      [lambda: (_r(3), _r(3, seed=1), _r(3, seed=2), _t([True, False, True]), 0.1), lambda: (_r(2), _d(_r(2, seed=1)), _d(_r(2, seed=2)))],
      "the clipped arm is taken whenever the ratio is out of range, also where the minimum is the unclipped one", ["threshold", "mask"])
_case("selective_scan", "SelectiveSSM", lambda: (_r(1, 3, 2),), [lambda: (_r(2, 2, 2),), lambda: (_r(1, 1, 2),)],
      "dt's gradient lacks the part through dt * B * u", ["missing term"], make=lambda cls: _fill(cls(2, d_state=3)))
_case("ema_filter", "EMAFilter", lambda: (_r(2, 4), _f(0.3)), [lambda: (_r(3), _f(0.9)), lambda: (_r(1, 2, 3), _f(0.5))],
      "backward reads the outputs from a module-level buffer, which a second forward of the same shape overwrites", ["state"])

# ---- medical imaging
_case("dice_loss", "SoftDiceLoss", lambda: (_u(2, 3, 4), _t([[0, 1, 2, 1], [2, 2, 0, 0]]), None, False, 1.0),
      [lambda: (_u(1, 2, 2, 3), _t([[[0, 255, 1], [1, 1, 255]]]), _f([0.3, 2.0]), True, 0.5), lambda: (_u(2, 2, 3), _t([[0, 1, 9], [1, 1, 1]]), None, False, 1e-5, 9)],
      "with squared=True the denominator's derivative lacks the factor 2", ["option", "factor"],
      shows=lambda: (_u(2, 3, 4), _t([[0, 1, 2, 1], [2, 2, 0, 0]]), None, True, 1.0))
_case("local_ncc", "LocalNCC", lambda: (_r(1, 1, 4, 4), _r(1, 1, 4, 4, seed=1)),
      [lambda: (_r(2, 1, 3, 5), _r(2, 1, 3, 5, seed=1)), lambda: (_u(1, 1, 3, 3), _d(_u(1, 1, 3, 3, seed=1)))],
      "the moving image's gradient multiplies the cross term with the moving instead of the fixed image", ["wrong tensor"],
      make=lambda cls: cls(3, 1e-2))
_case("diffusion_regularizer", "DiffusionRegularizer", lambda: (_r(1, 2, 3, 4), (1.0, 1.0), "l2"),
      [lambda: (_r(2, 2, 2, 3), (0.7, 2.5), "l1"), lambda: (_r(1, 1, 4, 2), (3.0, 1.0))],
      "the gradient lacks 1/spacing; shows only when a spacing is not 1", ["factor", "option"],
      shows=lambda: (_r(1, 2, 3, 4), (1.0, 2.5), "l2"))
_case("kspace_consistency", "KSpaceConsistency",
      lambda: (_c(1, 3, 4), _c(1, 3, 4, seed=1), _t([[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], torch.bool)),
      [lambda: (_c(2, 2, 3), _c(2, 2, 3, seed=1), _t([[[1, 0, 1], [0, 1, 1]], [[0, 0, 1], [1, 1, 0]]], torch.bool)),
       lambda: (_c(1, 2, 2), _d(_c(1, 2, 2, seed=1)), torch.ones(1, 2, 2, dtype=torch.bool))],
      "backward's transforms are not orthonormal: the image's gradient is right, k-space's and lam's are off by sqrt(HW)", ["factor"],
      make=lambda cls: cls(0.7).double())

# ---- optimal transport and assignment
_case("wasserstein_1d", "Wasserstein1D", lambda: (_r(2, 5), _r(2, 5, seed=1), 2),
      [lambda: (_r(4), _r(4, seed=1), 1), lambda: (_r(1, 2, 3), _r(1, 2, 3, seed=1), 3)],
      "the gradient is put back by gathering with the sort order instead of scattering (inverse permutation)", ["permutation"])
_case("sinkhorn_normalize", "SinkhornNormalize", lambda: (_r(2, 3, 3), 3, 1.0),
      [lambda: (_r(1, 2, 4), 1, 0.5), lambda: (_r(1, 4, 2), 4)],
      "backward undoes the row and column steps in the wrong order", ["axis", "order"])
_case("pit_mse", "PermutationInvariantMSE", lambda: (_r(2, 2, 4), _r(2, 2, 4, seed=1)),
      [lambda: (_r(1, 3, 2), _r(1, 3, 2, seed=1)), lambda: (_r(3, 1, 2), _r(3, 1, 2, seed=1))],
      "est's gradient uses the permutation where its inverse is needed; shows only for three speakers or more", ["permutation", "shape"],
      shows=lambda: (_f([[[0.1, 0.2], [1.1, 0.9], [-2.0, 1.5]]]), _f([[[1.0, 1.2], [-1.8, 1.4], [0.3, -0.1]]])))
_case("soft_dtw", "SoftDTW", lambda: (_u(2, 3, 4), 1.0), [lambda: (_u(1, 2, 2), 0.1), lambda: (_u(1, 4, 1, seed=2),)],
      "backward's exponents are not divided by gamma; shows only when gamma is not 1", ["option", "factor"],
      shows=lambda: (_u(2, 3, 4), 0.5))

# ---- transforms
_case("haar_dwt2d", "HaarDWT2d", lambda: (_r(1, 2, 4, 4),), [lambda: (_r(2, 1, 3, 5),), lambda: (_r(1, 1, 2, 3),)],
      "the gradient of the repeated row or column is cropped instead of added; shows only for odd sides", ["boundary", "shape"],
      shows=lambda: (_r(1, 2, 3, 4),))
_case("hadamard_transform", "HadamardTransform", lambda: (_r(2, 4), 0.5), [lambda: (_r(8),), lambda: (_r(1, 3, 2), 0.7071)],
      "backward transforms the incoming gradient in place when it is contiguous", ["modified input"])
_case("power_spectrum", "PowerSpectrum", lambda: (_r(2, 6), _d(_u(6, seed=1))), [lambda: (_r(3, 5), None), lambda: (_r(2, 2, 4), _u(4, seed=1))],
      "irfft counts the inner bins twice", ["factor", "complex"])

# ---- tensor decompositions
_case("khatri_rao", "KhatriRao", lambda: (_r(3, 2), _r(4, 2, seed=1)), [lambda: (_r(2, 1), _r(3, 1, seed=1)), lambda: (_r(1, 3), _r(2, 3, seed=1))],
      "backward reads the incoming gradient as if contiguous; wrong after sum() or a transpose of the output", ["layout"])
_case("cp_reconstruct", "CPReconstruct", lambda: (_r(2), _r(4, 2, seed=1), _r(3, 2, seed=2), _r(3, 2, seed=3)),
      [lambda: (_r(3), _r(2, 3, seed=1), _r(1, 3, seed=2), _r(4, 3, seed=3)), lambda: (_r(1), _r(2, 1, seed=1), _r(2, 1, seed=2), _r(2, 1, seed=3))],
      "the gradients of B and C are returned in the wrong order", ["swapped"])
_case("tucker_regression", "TuckerRegression", lambda: (_r(2, 3, 4),), [lambda: (_r(1, 3, 4, seed=2),), lambda: (_r(4, 3, 4, seed=3),)],
      "the core's gradient has its two rank axes transposed", ["transpose"], make=lambda cls: _fill(cls((3, 4), (2, 2), 2)))
_case("tt_embedding", "TTEmbedding", lambda: (_t([0, 4, 5, 1, 7]),), [lambda: (_t([[3, 3], [8, 0]]),), lambda: (_t([2]),)],
      "the right core's gradient is copied by index, so words that share a second index keep one contribution", ["repeated index"],
      make=lambda cls: _fill(cls((3, 3), (2, 2), 2)))

# ---- bioinformatics
_case("felsenstein_jc69", "FelsensteinJC69",
      lambda: (_u(2, 3, 4, lo=0.1), _u(4, lo=0.05, hi=0.6, seed=1), _t([[0, 1], [3, 2]]), 1.0),
      [lambda: (_d(torch.eye(4, dtype=torch.float64)[_k(3, 4, n=4)]), _u(6, lo=0.1, hi=0.6, seed=1), _t([[0, 2], [1, 3], [4, 5]]), 0.5),
       lambda: (_u(1, 2, 4, lo=0.1), _u(2, lo=0.1, seed=1), _t([[1, 0]]))],
      "the gradient passed to a child keeps its mean before the decay (decay * g instead of decay * (g - mean g))", ["missing term"])
_case("soft_needleman_wunsch", "SoftNeedlemanWunsch", lambda: (_r(2, 3, 4), _f(0.7), 1.0),
      [lambda: (_r(1, 2, 2), _f(1.5), 0.3), lambda: (_r(2, 1, 3), _f(0.2))],
      "the gap's gradient lacks the leading gaps in the first row and column", ["boundary", "missing term"])
_case("pwm_scan", "PWMScan", lambda: (torch.eye(4, dtype=torch.float64)[_k(2, 7, n=4)].transpose(1, 2).contiguous(), _r(3, 4, 3), True),
      [lambda: (_r(1, 4, 5), _r(2, 4, 2, seed=1), False), lambda: (_r(2, 4, 4), _r(4, 4, 4, seed=1))],
      "on the reverse strand the matrix's gradient is reversed along the positions but not complemented", ["axis", "value"])

# ---- mixture of experts and routing
_case("topk_gate", "TopKGate", lambda: (_r(3, 4), 2, True), [lambda: (_r(2, 5), 3, False), lambda: (_r(4, 3), 1, True)],
      "the gradient of the third output, the importance, is ignored", ["missing term", "several outputs"])
_case("expert_combine", "ExpertCombine", lambda: (_r(2, 2, 3), _u(4, seed=1), _t([0, 1, 0, 0]), _t([0, 0, 1, 2])),
      [lambda: (_r(1, 3, 2), _d(_u(2, seed=1)), _t([0, 0]), _t([2, 0])), lambda: (_r(3, 1, 1), _u(3, seed=1), _t([2, 2, 0]), _t([0, 1, 0]))],
      "the gate gets no gradient when expert_out does not require one", ["none", "needs_input_grad"],
      shows=lambda: (_d(_r(2, 2, 3)), _u(4, seed=1), _t([0, 1, 0, 0]), _t([0, 0, 1, 2])))
_case("soft_moe", "SoftMoE", lambda: (_r(2, 3, 2),), [lambda: (_r(1, 4, 2),), lambda: (_r(3, 1, 2),)],
      "the dispatch softmax, over tokens, is differentiated as if over slots", ["axis"], make=lambda cls: _fill(cls(2, 3, 2)))
