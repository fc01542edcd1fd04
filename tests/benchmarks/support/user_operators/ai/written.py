import torch


def r(*shape, seed=0, grad=True, scale=1.0, shift=0.0):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=gen, dtype=torch.float64) * scale + shift
    return x.requires_grad_() if grad else x


def u(*shape, seed=0, lo=0.0, hi=1.0, grad=True):
    gen = torch.Generator().manual_seed(seed)
    x = torch.rand(*shape, generator=gen, dtype=torch.float64) * (hi - lo) + lo
    return x.requires_grad_() if grad else x


def L(*v):
    return torch.tensor(v[0] if len(v) == 1 and isinstance(v[0], list) else list(v), dtype=torch.long)


def B(v):
    return torch.tensor(v, dtype=torch.bool)


def D(v, grad=False):
    x = torch.tensor(v, dtype=torch.float64)
    return x.requires_grad_() if grad else x


def fill(mod, seed=0, scale=0.4):
    """Module in float64 with non-trivial parameters."""
    mod = mod.double()
    gen = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in mod.parameters():
            if p.min() != p.max():
                p.zero_()
            p.add_(torch.randn(p.shape, generator=gen, dtype=torch.float64) * scale)
    return mod


def near(ref, noise):
    """An estimate close to its reference."""
    est = 0.9 * ref + noise * r(*ref.shape, seed=11, grad=False)
    return est.requires_grad_(), ref.requires_grad_()


def clip_surrogate(x, step, zero_point=None, bits=8, signed=True):
    qmin, qmax = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
    zp = 0 if zero_point is None else zero_point.to(step.dtype)
    shape = [1, -1] + [1] * (x.dim() - 2)
    lo, hi = ((qmin - zp) * step).view(shape), ((qmax - zp) * step).view(shape)
    return torch.minimum(torch.maximum(x, lo), hi)


CASES = []


CASES.append(dict(
    name="session_pair_loss",
    object="SessionPairLoss", kind="function",
    inputs=lambda: (r(7, seed=1), D([2, 0, 1, 0, 3, 1, 1.0]), L(0, 3, 7), 1.3, True),
    more=[lambda: (r(5, seed=2), D([1, 0, 0, 2, 1.0]), L(0, 5), 0.7, False)],
    bug="the sigmoid in backward is detached, so the second derivative misses its slope",
    fits=["second derivative"], order="second",
))

CASES.append(dict(
    name="bag_pool",
    object="BagPool", kind="function",
    inputs=lambda: (r(5, 3, seed=1), L(0, 2, 2, 4, 1, 3, 0), L(0, 3, 5), r(7, seed=2), "mean", 1),
    more=[lambda: (r(5, 2, seed=1), L(0, 2, 2, 4), L(0, 3, 3), None, "sum", None),
          lambda: (r(4, 2, seed=1), L(0, 2, 2, 3), L(0, 3), r(4, seed=3), "sqrtn", None)],
    bug="gradient of per_sample_weights not divided by the bag's denominator in mean and sqrtn mode",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="listnet_masked",
    object="ListNet", kind="function",
    inputs=lambda: (r(3, 4, seed=1), r(3, 4, seed=2, grad=False),
                    B([[1, 1, 1, 0], [0, 0, 0, 0], [1, 0, 1, 1]]), 0.7),
    more=[lambda: (r(1, 4, seed=1), r(1, 4, seed=2, grad=False), B([[0, 0, 0, 0]]), 1.0)],
    bug="softmax over a row that is masked entirely gives NaN in backward",
    fits=["NaN"], order="first",
))

CASES.append(dict(
    name="low_rank_cross",
    object="LowRankCross", kind="function",
    inputs=lambda: (r(4, 5, seed=1), r(4, 5, seed=2), r(5, 2, seed=3), r(5, 2, seed=4), r(5, seed=5)),
    more=[lambda: (r(2, 3, 4, seed=1), r(2, 3, 4, seed=2), r(4, 2, seed=3), r(4, 2, seed=4), None)],
    bug="the residual path of x is missing from its gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="dot_interaction",
    object="DotInteraction", kind="function",
    inputs=lambda: (True, r(2, 3, seed=1), r(2, 3, seed=2), r(2, 3, seed=3)),
    more=[lambda: (False, r(3, 2, seed=1), r(3, 2, seed=2), r(3, 2, seed=3), r(3, 2, seed=4)),
          lambda: (True, r(2, 2, seed=1), r(2, 2, seed=2, grad=False))],
    bug="the diagonal products miss their factor of two in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="preemphasis",
    object="Preemphasis", kind="function",
    inputs=lambda: (r(2, 6, seed=1), D(0.95, True), "replicate"),
    more=[lambda: (r(5, seed=1), D(0.9, True), "zero"), lambda: (r(2, 2, 3, seed=1), D(0.5), "replicate")],
    bug="the edge option is ignored in the gradient of x",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="ema_smoother",
    object="EmaSmoother", kind="function",
    inputs=lambda: (r(2, 3, 5, seed=1), u(3, seed=2, lo=0.1, hi=0.8), r(2, 3, seed=3)),
    more=[lambda: (r(1, 2, 4, seed=1), u(2, seed=2, lo=0.1, hi=0.8), None)],
    bug="gradient of s takes y[t] in place of y[t-1]",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="framing",
    object="Frame", kind="function",
    inputs=lambda: (r(2, 9, seed=1), u(4, seed=2, lo=0.2), 2, True, "reflect"),
    more=[lambda: (r(1, 8, seed=1), u(3, seed=2, lo=0.2), 2, False, "constant"),
          lambda: (r(1, 7, seed=1), u(4, seed=2, lo=0.2), 3, True, "constant")],
    bug="the window's gradient is averaged over batch and frames in place of summed",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="log_mel",
    object="LogMel", kind="function",
    inputs=lambda: (u(2, 4, 3, seed=1), u(3, 4, seed=2), 0.8, "db"),
    more=[lambda: (u(1, 3, 2, seed=1), u(2, 3, seed=2), 1e-5, "log10"), lambda: (u(1, 3, 4, seed=4), u(2, 3, seed=2), 0.7, "ln")],
    bug="energies under the floor still pass a gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="clamped_swiglu",
    object="ClampedSwiGLU", kind="function",
    inputs=lambda: (r(3, 6, seed=1), 1.702, 0.9),
    more=[lambda: (r(2, 2, 4, seed=1), 1.0, None), lambda: (r(8, seed=1), 0.5, None)],
    bug="alpha is missing from the slope of the sigmoid",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="partial_rope",
    object="PartialRope", kind="function",
    inputs=lambda: (r(2, 3, 2, 6, seed=1), 4, L(5, 2), 100.0, True),
    more=[lambda: (r(1, 3, 1, 4, seed=1), 4, None, 10000.0, False), lambda: (r(2, 2, 1, 4, seed=1), 2, L(1, 4), 50.0, False)],
    bug="offsets are ignored in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="topk_router",
    object="TopKRouter", kind="function",
    inputs=lambda: (r(4, 5, seed=1), 2, True, 2.5),
    more=[lambda: (r(3, 4, seed=2), 3, False, 1.0), lambda: (r(2, 4, seed=3), 4, True, 1.0)],
    bug="the derivative of the renormalising sum is missing",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="moe_combine",
    object="MoeCombine", kind="function",
    inputs=lambda: (r(5, 3, seed=1), r(3, 2, seed=2), L([[0, 4], [2, -1], [1, 3]])),
    more=[lambda: (r(4, 2, seed=1), r(2, 2, seed=2), L([[0, 1], [3, 2]]))],
    bug="dropped slots receive a gate gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="biased_attention",
    object="BiasedAttention", kind="function",
    inputs=lambda: (r(2, 2, 3, 4, seed=1), r(2, 2, 5, 4, seed=2), r(2, 2, 5, 4, seed=3, grad=False), r(1, 2, 3, 5, seed=4), None, 2.0),
    more=[lambda: (r(1, 2, 2, 3, seed=1), r(1, 2, 2, 3, seed=2), r(1, 2, 2, 3, seed=3), r(1, 1, 1, 2, seed=4), 0.3, None)],
    bug="the bias's gradient is only computed when v needs one",
    fits=["none"], order="first",
))

CASES.append(dict(
    name="paged_gather",
    object="PagedGather", kind="function",
    inputs=lambda: (r(4, 2, 1, 2, seed=1), L([[0, 1], [0, 3]]), L(3, 4)),
    more=[lambda: (r(3, 2, 2, 2, seed=1), L([[2, 0]]), L(3)), lambda: (r(3, 1, 1, 2, seed=1), L([[2, 0], [2, 0], [1, 2]]), L(2, 1, 2))],
    bug="blocks shared by sequences are overwritten in place of accumulated",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="reset_scan",
    object="ResetScan", kind="function",
    inputs=lambda: (u(2, 4, 3, seed=1, lo=0.2), r(2, 4, 3, seed=2), B([[0, 0, 1, 0], [1, 0, 0, 0]]), r(2, 3, seed=3)),
    more=[lambda: (u(1, 3, 2, seed=1, lo=0.2), r(1, 3, 2, seed=2), None, None)],
    bug="the carry is updated in place, which writes into the gradient of the second output",
    fits=["modified"], order="first",
))

CASES.append(dict(
    name="giou_loss",
    object="GIoULoss", kind="function",
    inputs=lambda: (D([[0.1, 0.2, 1.3, 1.4], [0.0, 0.1, 1.0, 0.9], [0.3, 0.2, 0.8, 2.1]], True),
                    D([[0.5, 0.6, 1.9, 1.1], [2.1, 0.3, 3.0, 1.5], [0.1, 0.5, 1.2, 1.7]], True), "mean", 1e-7),
    more=[lambda: (D([[0.1, 0.2, 1.3, 1.4], [0.0, 0.1, 1.0, 0.9]], True),
                   D([[0.5, 0.6, 1.9, 1.1], [0.3, 1.3, 1.4, 1.5]]), "none", 1e-7)],
    bug="boxes apart along one axis alone receive an intersection gradient along it",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="tversky_seg",
    object="TverskySeg", kind="function",
    inputs=lambda: (r(2, 3, 2, 2, seed=1), L([[[0, 1], [2, 255]], [[1, 1], [0, 2]]]), 0.3, 0.7, 1.0, 255, D([1.0, 2.0, 0.5])),
    more=[lambda: (r(1, 2, 4, seed=1), L([[0, 1, 1, -1]]), 0.5, 0.5, 0.1, -1, None)],
    bug="the false negatives' share beta is missing from the denominator's derivative at true pixels",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="point_sample",
    object="PointSample", kind="function",
    inputs=lambda: (r(2, 2, 3, 4, seed=1), u(2, 3, 2, seed=2, lo=0.05, hi=0.95), False),
    more=[lambda: (r(1, 3, 4, 3, seed=1), u(1, 4, 2, seed=3, lo=0.05, hi=0.95), True)],
    bug="without align_corners the coordinates' gradient is scaled by the size minus one",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="chamfer",
    object="Chamfer", kind="function",
    inputs=lambda: (r(2, 4, 3, seed=1), r(2, 5, 3, seed=2), L(4, 2), L(3, 5)),
    more=[lambda: (r(1, 3, 3, seed=3), r(1, 2, 3, seed=4), L([3]), L([2]))],
    bug="the second direction is normalised by the first cloud's length in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="three_interpolate",
    object="InverseDistanceInterp", kind="function",
    inputs=lambda: (r(2, 3, 3, seed=1), r(2, 5, 3, seed=2), r(2, 5, 2, seed=3), 3, 1e-2),
    more=[lambda: (r(1, 2, 3, seed=4), r(1, 3, 3, seed=5), r(1, 3, 1, seed=6), 2, 1e-6)],
    bug="sign of the gradient of the known positions",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="rulebook_conv",
    object="RulebookConv", kind="function",
    inputs=lambda: (r(4, 3, seed=1), r(3, 3, 3, seed=2), r(3, seed=3),
                    [(L(0, 1, 2), L(0, 1, 2)), (L(1, 3), L(2, 0)), (L([]), L([]))], 3),
    more=[lambda: (r(3, 2, seed=1), r(2, 2, 2, seed=2), None, [(L(0, 2), L(1, 1)), (L([1]), L([0]))], 2)],
    bug="the kernel is not transposed in the gradient of the features",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="neighbor_max",
    object="NeighborMax", kind="function",
    inputs=lambda: (r(4, 3, seed=1), L([[1, 2], [0, -1], [-1, -1], [0, 2]])),
    more=[lambda: (r(4, 3, seed=7), L([[3, 2], [0, 2], [-1, 1], [0, -1]]))],
    bug="the position among the neighbours is taken for the row in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="tridiagonal_solve",
    object="TridiagonalSolve", kind="function",
    inputs=lambda: (r(2, 4, seed=1), r(2, 5, seed=2, shift=4.0, scale=0.5), r(2, 4, seed=3), r(2, 5, seed=4)),
    more=[lambda: (r(2, seed=1), r(3, seed=2, shift=4.0, scale=0.5), r(2, seed=3), r(3, seed=4))],
    bug="the adjoint system is not transposed",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="implied_vol",
    object="ImpliedVol", kind="function",
    inputs=lambda: (D([0.25, 0.22, 0.2], True), D([1.1, 1.0, 0.95], True), D([1.0, 1.0, 1.02], True), D([1.0, 1.5, 2.0], True), 0.04),
    more=[lambda: (D([0.15, 0.2], True), D([1.0, 1.1]), D([1.0, 1.2], True), D([0.9, 1.4]), 0.0)],
    bug="the strike's gradient is not discounted",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="spring_energy",
    object="SpringEnergy", kind="function",
    inputs=lambda: (D([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3], [1.0, 0.4, 2.6]], True), D([0.0, 0.5, 1.1], True), D([2.0, 1.5, 0.7], True),
                    L([[0, 1], [1, 2], [2, 0]]), None),
    more=[lambda: (r(4, 3, seed=1), u(3, seed=2), u(3, seed=3, lo=0.5), L([[0, 1], [1, 2], [0, 3]]), D([2.0, 2.0, 3.0]))],
    bug="division by the zero distance of coincident nodes",
    fits=["NaN"], order="first",
))

CASES.append(dict(
    name="affine_fake_quant",
    object="AffineFakeQuant", kind="function",
    inputs=lambda: (r(3, 2, 4, seed=1, scale=3.0), D([0.6, 0.9], True), L(1, -1), 3, True),
    more=[lambda: (r(4, 3, seed=1, scale=3.0), D([0.6, 0.9, 0.5], True), None, 3, True),
          lambda: (r(2, 2, 2, 2, seed=5, scale=2.0), D([0.6, 0.9], True), L(1, 2), 2, False)],
    surrogate=lambda *args: clip_surrogate,
    bug="the zero point is ignored in backward's clipping range",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="vocab_parallel_ce",
    object="VocabParallelCE", kind="function",
    inputs=lambda: (L(0, 3, -100, 6), (0, 3, 5), -100, r(4, 3, seed=1), r(4, 2, seed=2), r(4, 3, seed=3)),
    more=[lambda: (L(4, 2), (0, 4), -1, r(2, 4, seed=1), r(2, 2, seed=2))],
    bug="the first id after a shard is counted as the shard's last in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="calibrated_logloss",
    object="calibrated_logloss", kind="callable",
    inputs=lambda: (r(3, 2, seed=1), L([[0, 1], [1, 1], [0, 0]]), u(3, 2, seed=2, grad=False), D([2.0, 5.0]), 0.1, "mean"),
    more=[lambda: (r(3, 2, seed=1), L([[0, 1], [1, 1], [0, 0]]), None, None, 0.0, "none"),
          lambda: (r(2, 2, seed=1), L([[0, 1], [1, 0]]), None, D([3.0, 0.5]), 0.2, "sum")],
    bug="pos_weight is ignored in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="approx_ndcg",
    object="approx_ndcg_loss", kind="callable",
    inputs=lambda: (r(2, 4, seed=1), u(2, 4, seed=2, hi=3.0, grad=False), B([[1, 1, 1, 1], [1, 0, 1, 1]]), 0.5),
    more=[lambda: (r(1, 3, seed=1), u(1, 3, seed=2, hi=3.0, grad=False), None, 1.0)],
    bug="the factor ln 2 of the base two logarithm is missing",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="overlap_add",
    object="overlap_add", kind="callable",
    inputs=lambda: (r(3, 3, 4, seed=1), u(4, seed=2, lo=0.3, grad=False), 2),
    more=[lambda: (r(2, 4, 4, seed=1), None, 1)],
    bug="as_strided takes the incoming gradient for contiguous",
    fits=["layout"], order="first",
))

CASES.append(dict(
    name="mu_law",
    object="mu_compress", kind="callable",
    inputs=lambda: (D([0.3, -0.5, 0.12, 0.8], True), D(20.0, True)),
    more=[lambda: (D([[0.3, -0.5], [0.7, -0.2]], True), 12.0)],
    bug="the denominator is detached, so the second derivative is wrong",
    fits=["second derivative"], order="second",
))

CASES.append(dict(
    name="si_sdr",
    object="si_sdr_loss", kind="callable",
    inputs=lambda: near(r(2, 6, seed=1, grad=False), 0.5) + (True,),
    more=[lambda: near(r(2, 2, 5, seed=1, grad=False), 0.4) + (False, 1e-6, False)],
    bug="the signals are kept in bfloat16 for backward",
    fits=["dtype"], order="first",
))

CASES.append(dict(
    name="fused_linear_ce",
    object="fused_linear_ce", kind="callable",
    inputs=lambda: (r(5, 3, seed=1), r(4, 3, seed=2), L(0, -100, 3, 1, 2), r(4, seed=3), -100, 0.1, 1e-2, 2),
    more=[lambda: (r(4, 2, seed=1), r(5, 2, seed=2), L(0, 4, 3, 1), None, -1, 0.0, 0.0, 3)],
    bug="the weight's gradient keeps the last chunk alone",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="load_balance",
    object="load_balance_loss", kind="callable",
    inputs=lambda: (r(5, 3, seed=1), L([[0, 1], [2, 1], [0, 2], [1, 0], [0, 1]]), B([1, 1, 0, 1, 0]), 0.7),
    more=[lambda: (r(4, 3, seed=1), L([[0], [2], [0], [1]]), None, 1.0)],
    bug="the mean in backward counts padding tokens",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="dpo",
    object="dpo_loss", kind="callable",
    inputs=lambda: (r(4, seed=1), r(4, seed=2), r(4, seed=3, grad=False), r(4, seed=4, grad=False), 0.5, 0.1, "sigmoid"),
    more=[lambda: (r(3, seed=1), r(3, seed=2), r(3, seed=3), r(3, seed=4), 0.4, 0.0, "ipo"),
          lambda: (r(3, seed=1), r(3, seed=2), r(3, seed=3), r(3, seed=4), 0.8, 0.0, "hinge", True)],
    bug="label smoothing is ignored in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="decode_attention",
    object="decode_attention", kind="callable",
    inputs=lambda: (r(2, 4, 3, seed=1), r(2, 4, 2, 3, seed=2), r(2, 4, 2, 3, seed=3), L(3, 4), r(4, seed=4)),
    more=[lambda: (r(1, 6, 2, seed=1), r(1, 3, 2, 2, seed=2), r(1, 3, 2, 2, seed=3), L([2]), None, 0.5)],
    bug="query heads are grouped in the other order for the keys' gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="varlen_softmax",
    object="varlen_softmax", kind="callable",
    inputs=lambda: (r(7, 2, seed=1), L(0, 3, 5, 7), 0.8),
    more=[lambda: (r(5, 1, seed=1), L(0, 4, 4, 5)), lambda: (r(3, 2, seed=1), L(0, 1, 3), 2.0)],
    bug="the first row of a segment is counted with the segment before",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="sequence_logprob",
    object="sequence_logprob", kind="callable",
    inputs=lambda: (r(2, 4, 3, seed=1), L([[0, 2, -100, 1], [1, -100, -100, 2]]), B([[0, 1, 0, 1], [1, 0, 0, 1]]), True, True),
    more=[lambda: (r(1, 3, 4, seed=1), L([[3, -1, 0]]), B([[1, 0, 1]]), False, False)],
    bug="backward overwrites the user's labels at masked positions",
    fits=["modified"], order="first",
))

CASES.append(dict(
    name="focal",
    object="focal_loss", kind="callable",
    inputs=lambda: (r(3, 2, seed=1), L([[0, 1], [1, 1], [0, 0]]), D(3.5, True), 2.0, 0.25),
    more=[lambda: (r(4, seed=1), L(0, 1, 1, 0), None, 1.5, None)],
    bug="backward returns one gradient too few",
    fits=["number of gradients"], order="first",
))

CASES.append(dict(
    name="voxel_mean",
    object="voxel_mean", kind="callable",
    inputs=lambda: (r(6, 2, seed=1), L(0, 2, -1, 2, 3, 0), 4),
    more=[lambda: (r(3, 3, seed=1), L(1, 1, 0))],
    bug="points outside of the grid receive the last voxel's gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="black_scholes",
    object="black_scholes", kind="callable",
    inputs=lambda: (D([1.1, 0.9], True), D([1.0, 1.0], True), D([0.3, 0.25], True), D([0.7, 1.4], True), D(0.03, True), 0.01, "put"),
    more=[lambda: (D([1.1, 0.9, 1.0], True), D(1.0), D([0.3, 0.25, 0.4], True), D([0.7], True), D([0.03, 0.0, 0.05], True))],
    bug="rho of puts has the sign of calls",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="mvn_nll",
    object="mvn_nll", kind="callable",
    inputs=lambda: (r(4, 3, seed=1), r(3, seed=2), D([[1.2, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.4, 0.2, 1.5]], True), "none"),
    more=[lambda: (r(3, 2, seed=1), r(2, seed=2), None, "mean"), lambda: (r(3, 2, seed=1), r(2, seed=2), D([[0.7, 0.0], [0.5, 1.1]], True), "sum")],
    bug="no gradient for the mean",
    fits=["none"], order="first",
))

CASES.append(dict(
    name="discount_curve",
    object="discount_factors", kind="callable",
    inputs=lambda: (D([0.02, 0.05, 0.03, 0.06], True), D([0.3, 1.4, 2.7, 6.0, 0.8], True), D([0.5, 1.0, 2.0, 5.0])),
    more=[lambda: (D([0.1, 0.4], True), D([[0.3, 1.4], [0.9, 2.5]], True), D([0.5, 2.0]))],
    bug="the slope of the interpolated rate is missing from the gradient of t",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="sharded_embedding",
    object="sharded_embedding", kind="callable",
    inputs=lambda: (L([[0, 5], [3, 3]]), [r(4, 2, seed=1), r(2, 2, seed=2)]),
    more=[lambda: (L(1, 4, 2, 0), (r(1, 3, seed=1), r(2, 3, seed=2, grad=False), r(2, 3, seed=3)))],
    bug="backward takes all shards to have as many rows as this one",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="jagged_to_padded",
    object="jagged_to_padded", kind="callable",
    inputs=lambda: (r(7, 2, seed=1), L(0, 4, 4, 7), 2, -1.0),
    more=[lambda: (r(5, 1, seed=1), L(0, 2, 5))],
    bug="entries that were cut receive the last slot's gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="pruned_embedding",
    object="PrunedEmbedding", kind="module",
    make=lambda cls: fill(cls(5, 3, "dimension", -1.0, 0), 1, 0.6),
    inputs=lambda: (L([[0, 2, 1], [4, 4, 3]]),),
    more=[lambda: (L(3, 1),)],
    bug="the sigmoid's slope is missing from the thresholds' gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="factorization_machine",
    object="FactorizationMachine", kind="module",
    make=lambda cls: fill(cls(3, 4, 2, 0.7), 2),
    inputs=lambda: (L([[0, 2, 1], [3, 3, 0]]), r(2, 3, seed=1)),
    more=[lambda: (L([[1, 0, 2]]),)],
    bug="the sum over fields is detached in backward",
    fits=["second derivative"], order="second",
))

CASES.append(dict(
    name="pcen",
    object="PCEN", kind="module",
    make=lambda cls: fill(cls(3, smooth=0.2), 3, 0.2),
    inputs=lambda: (u(2, 3, 4, seed=1, lo=0.1, hi=2.0),),
    more=[lambda: (u(1, 3, 5, seed=2, lo=0.1, hi=2.0), u(1, 3, seed=3, lo=0.1))],
    bug="the subtracted offset is missing from delta's gradient",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="streaming_conv",
    object="StreamingConv", kind="module",
    make=lambda cls: fill(cls(2, 3, activation="silu"), 14),
    inputs=lambda: (r(2, 2, 4, seed=1), r(2, 2, 2, seed=2)),
    more=[lambda: (r(1, 2, 5, seed=3),)],
    bug="the input is kept on the class, where the next call replaces it",
    fits=["state"], order="first",
))

CASES.append(dict(
    name="rms_residual",
    object="AddRMSNorm", kind="module",
    make=lambda cls: fill(cls(4, unit_offset=True), 4),
    inputs=lambda: (r(2, 3, 4, seed=1), r(2, 3, 4, seed=2)),
    more=[lambda: (r(3, 4, seed=3),)],
    bug="the gradient that comes through the second output is dropped",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="qk_norm",
    object="QKNorm", kind="module",
    make=lambda cls: fill(cls(4, 2, 2.0), 5),
    inputs=lambda: (r(2, 2, 4, 3, seed=1), r(2, 3, 2, 3, seed=2)),
    more=[lambda: (r(1, 1, 4, 5, seed=1), r(1, 2, 2, 5, seed=2))],
    bug="the gain's gradient is not summed over the channels of a head",
    fits=["shape"], order="first",
))

CASES.append(dict(
    name="adaptive_layer_norm",
    object="AdaptiveLayerNorm", kind="module",
    make=lambda cls: fill(cls(4, 3), 6),
    inputs=lambda: (r(2, 3, 4, seed=1), r(2, 3, seed=2)),
    more=[lambda: (r(3, 2, 4, seed=1), r(3, 3, seed=2, grad=False))],
    bug="view on an incoming gradient that need not be contiguous",
    fits=["layout"], order="first",
))

CASES.append(dict(
    name="soft_argmax",
    object="SoftArgmax2d", kind="module",
    make=lambda cls: fill(cls(normalized=False), 7),
    inputs=lambda: (r(2, 2, 3, 4, seed=1),),
    more=[lambda: (r(1, 1, 2, 5, seed=2),)],
    bug="x and y are swapped in backward",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="implicit_heat",
    object="ImplicitHeat", kind="module",
    make=lambda cls: fill(cls(5, 0.3, 2), 8),
    inputs=lambda: (r(2, 5, seed=1), r(2, 5, seed=2)),
    more=[lambda: (r(5, seed=1),)],
    bug="the conductivities' gradient takes the temperatures before the step",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="pact",
    object="PACT", kind="module",
    make=lambda cls: fill(cls(3, 2, 1.5), 9, 0.1),
    inputs=lambda: (r(3, 2, 3, seed=1, scale=2.0),),
    more=[lambda: (r(4, 2, seed=2, scale=2.0),)],
    surrogate=lambda module, *args: lambda x: torch.minimum(x.clamp(min=0), module.alpha.view(1, -1, *[1] * (x.dim() - 2))),
    bug="negative inputs also count into the gradient of the clipping level",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="lora_linear",
    object="LoraLinear", kind="module",
    make=lambda cls: fill(cls(3, 4, 2, 3.0), 10),
    inputs=lambda: (r(2, 3, 3, seed=1),),
    more=[lambda: (r(5, 3, seed=2, grad=False),)],
    bug="the incoming gradient is scaled in place",
    fits=["modified"], order="first",
))

CASES.append(dict(
    name="weight_norm_linear",
    object="WeightNormConv1d", kind="module",
    make=lambda cls: fill(cls(2, 3, 3, 2), 11),
    inputs=lambda: (r(2, 2, 6, seed=1),),
    more=[lambda: (r(1, 2, 5, seed=2),)],
    bug="power of the norm in the projection term",
    fits=["values"], order="first",
))

CASES.append(dict(
    name="stats_pooling",
    object="StatsPooling", kind="module",
    make=lambda cls: fill(cls(2, affine=True), 12),
    inputs=lambda: (r(3, 2, 4, seed=1), L(4, 1, 3)),
    more=[lambda: (r(2, 2, 3, seed=2),)],
    bug="division by a zero deviation",
    fits=["NaN"], order="first",
))

CASES.append(dict(
    name="dequant_linear",
    object="DequantLinear", kind="module",
    make=lambda cls: fill(cls(6, 3, 2, True, 3), 13, 0.2),
    inputs=lambda: (r(4, 6, seed=1),),
    more=[lambda: (r(2, 2, 6, seed=2, grad=False),)],
    bug="the zero points are missing from the scales' gradient",
    fits=["values"], order="first",
))
