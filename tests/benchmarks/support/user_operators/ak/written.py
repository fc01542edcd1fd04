import math

import torch


def r(*shape, seed=0, grad=True, scale=1.0, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=g, dtype=torch.float64) * scale + shift).requires_grad_(grad)


def u(*shape, seed=0, grad=True, lo=0.0, hi=1.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=g, dtype=torch.float64) * (hi - lo) + lo).requires_grad_(grad)


def t(*values, grad=True):
    return torch.tensor(values, dtype=torch.float64).requires_grad_(grad)


def ints(*values):
    return torch.tensor(values)


def mask(*rows):
    return torch.tensor(rows).bool()


def build(cls, *args, seed=0, jitter=0.3, **kwargs):
    torch.manual_seed(seed)
    m = cls(*args, **kwargs).double()
    g = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for p in m.parameters():
            p.add_(jitter * torch.randn(p.shape, generator=g, dtype=torch.float64))
    return m


CASES = []

CASES.append(dict(
    name="swiglu_packed",
    object="PackedSwiGLU", kind="function",
    inputs=lambda: (r(3, 8), 0.4),
    more=[lambda: (r(2, 3, 4, seed=1),)],
    bug="the gradient of the gate is not cut off where the gate was clamped",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="focal_masked",
    object="focal_loss", kind="callable",
    inputs=lambda: (r(3, 4), ints([1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]), mask([1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1])),
    more=[lambda: (r(5, seed=2), ints(1, 0, 1, 1, 0), None, 1.5, 0.5, "none"),
          lambda: (r(5, seed=2), ints(1, 0, 1, 1, 0), None, 2.0, 0.25, "sum")],
    bug="the mean in backward divides by all the anchors, in forward by the valid ones",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="weighted_bag",
    object="WeightedBag", kind="function",
    inputs=lambda: (r(5, 3), ints(1, 3, 3, 0, 1, 2), ints(0, 2, 5), r(6, seed=1), 0),
    more=[lambda: (r(4, 2), ints(0, 1, 2, 2), ints(0, 0, 3))],
    bug="rows looked up more than once get one of their gradients only",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="rope_partial",
    object="PartialRotary", kind="function",
    inputs=lambda: (r(2, 3, 6), ints(0, 1, 5), 4, 100.0, True),
    more=[lambda: (r(1, 4, 4, seed=3), ints(3, 2, 1, 0), 4)],
    bug="backward always pairs the channels as halves, also with interleaved=True",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="alibi_attention",
    object="AlibiAttention", kind="function",
    inputs=lambda: (r(1, 2, 3, 4), r(1, 2, 3, 4, seed=1), r(1, 2, 3, 4, seed=2), None, True),
    more=[lambda: (r(2, 2, 3, 2), r(2, 2, 3, 2, seed=1), r(2, 2, 3, 2, seed=2), t(0.5, 0.25)),
          lambda: (r(1, 2, 3, 2), r(1, 2, 4, 2, seed=1), r(1, 2, 4, 2, seed=2), t(0.5, 0.25), False)],
    bug="without slopes one gradient too few is returned",
    fits=["number of gradients"],
    order="first",
))
CASES.append(dict(
    name="gemma_norm",
    object="GemmaNorm", kind="module", make=lambda cls: build(cls, 5),
    inputs=lambda: (r(2, 3, 5),),
    more=[lambda: (r(5, seed=4),)],
    bug="the gradient of x is scaled with weight in place of 1 + weight",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="moe_combine",
    object="CombineExperts", kind="function",
    inputs=lambda: (r(3, 4), r(3, 4, 2, seed=1), 2),
    more=[lambda: (r(2, 3, seed=5), r(2, 3, 3, seed=6), 3)],
    bug="only the diagonal of the softmax Jacobian is used",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="router_losses",
    object="router_losses", kind="callable",
    inputs=lambda: (r(5, 3), mask(1, 1, 0, 1, 1)),
    more=[lambda: (r(4, 4, seed=7),)],
    bug="the z-loss is a square, the factor logsumexp is missing in its gradient",
    fits=["value"],
    order="first",
))
def lsq_surrogate(m, x0):
    s0 = m.step.detach().clone()
    v = x0 / s0
    rest = v.round() - v
    inside = (v >= m.lo) & (v <= m.hi)
    k = 1 / math.sqrt(x0.numel() * m.hi)

    def f(x):
        s = s0 + k * (m.step - s0)
        return torch.where(inside, x + rest * s, v.clamp(m.lo, m.hi) * s)

    return f


CASES.append(dict(
    name="lsq_weight",
    object="LSQQuantizer", kind="module", make=lambda cls: build(cls, 3, jitter=0.0),
    inputs=lambda: (r(3, 5),),
    more=[lambda: (r(7, seed=3),)],
    surrogate=lambda m, x: lsq_surrogate(m, x),
    bug="values outside the range give no gradient to the step size",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="sinkhorn_cost",
    object="SinkhornCost", kind="function",
    inputs=lambda: (u(2, 3, 4, hi=2.0),),
    more=[lambda: (u(1, 3, 3, seed=5), 0.3, 400)],
    bug="the kept plan is multiplied in place: a second backward finds it scaled",
    fits=["modified"],
    order="first",
))
CASES.append(dict(
    name="tridiagonal_solve",
    object="TridiagonalSolve", kind="function",
    inputs=lambda: (r(2, 3, scale=0.7), u(2, 4, lo=3.0, hi=4.0), r(2, 3, seed=2, scale=0.7), r(2, 4, seed=3)),
    more=[lambda: (r(1, 1), u(1, 2, lo=3.0, hi=4.0), r(1, 1, seed=2), r(1, 2, seed=3))],
    bug="the adjoint system is not transposed",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="so3_exp",
    object="SO3Exp", kind="function",
    inputs=lambda: (t([0.3, -1.0, 0.5], [0.0, 0.0, 0.0], [1e-3, 2e-3, -1e-3], [2.0, 0.3, 0.1]),),
    more=[lambda: (r(3, 3, seed=3),)],
    bug="0 / 0 at the zero rotation",
    fits=["nan"],
    order="first",
))
CASES.append(dict(
    name="segment_distance",
    object="segment_distance", kind="callable",
    inputs=lambda: (t([0.5, 1.0], [3.0, 0.5], [-1.0, -1.0]), t([0.0, 0.1], [0.0, 0.0], [0.2, 0.3]), t([1.0, 0.0], [1.2, 0.3], [1.0, 1.5])),
    more=[lambda: (r(2, 3), r(2, 3, seed=1), r(2, 3, seed=2))],
    bug="backward uses the foot on the infinite line also beyond the ends",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="quat_rotate",
    object="QuatRotate", kind="function",
    inputs=lambda: (r(4, 4), r(4, 3, seed=1)),
    more=[lambda: (r(2, 2, 4, seed=3), r(2, 2, 3, seed=4))],
    bug="the part along q is not projected out (normalisation)",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="catmull_rom",
    object="CatmullRom", kind="function",
    inputs=lambda: (r(2, 5), t(0.3, 1.6, 3.7, -0.8, 2.2, 4.9)),
    more=[lambda: (r(1, 2), t(0.3, 0.6))],
    bug="positions outside the table get the slope of the end",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="flow_warp",
    object="flow_warp", kind="callable",
    inputs=lambda: (r(1, 2, 3, 4), r(1, 2, 3, 4, seed=1)),
    more=[lambda: (r(2, 1, 2, 2), r(2, 2, 2, 2, seed=3, scale=0.4))],
    bug="x and y of the flow's gradient are exchanged",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="lut_activation",
    object="LutActivation", kind="module", make=lambda cls: build(cls, 9),
    inputs=lambda: (t([0.26, -1.1, 1.7, 2.6], [0.51, -2.9, 1.1, -0.3]),),
    more=[lambda: (t(0.3, 0.9),)],
    bug="the cells are kept on the class, a second call overwrites them",
    fits=["state"],
    order="first",
))
CASES.append(dict(
    name="dilated_fir",
    object="CausalFIR", kind="function",
    inputs=lambda: (r(2, 3, 7), r(3, 3, seed=1), 2),
    more=[lambda: (r(1, 1, 4), r(1, 2, seed=1))],
    bug="the dilation is forgotten in the gradient of the taps",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="gated_scan",
    object="GatedScan", kind="function",
    inputs=lambda: (u(2, 4, 3, lo=0.2, hi=0.9), r(2, 4, 3, seed=1), r(2, 3, seed=2), mask([0, 0, 1, 0], [0, 0, 0, 0])),
    more=[lambda: (u(1, 3, 2, lo=0.2, hi=0.9), r(1, 3, 2, seed=1)),
          lambda: (u(1, 3, 2, lo=0.2, hi=0.9), r(1, 3, 2, seed=1), None, mask([1, 0, 1]))],
    bug="nothing is returned for the initial state",
    fits=["None for"],
    order="first",
))
def cplx(*shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.complex128).requires_grad_()


CASES.append(dict(
    name="modrelu",
    object="ModReLU", kind="function",
    inputs=lambda: (cplx(4, 3), t(-0.3, 0.2, -0.8)),
    more=[lambda: (cplx(3, seed=4), t(-0.3, 0.2, 0.0))],
    bug="the conjugate of the incoming gradient is missing in the real inner product",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="von_mises",
    object="VonMisesLogProb", kind="function",
    inputs=lambda: (r(4, 3), r(3, seed=1), u(3, seed=2, lo=0.5, hi=4.0)),
    more=[lambda: (r(4), r(seed=1), u(4, 1, seed=2, lo=0.5, hi=4.0))],
    bug="a scaled Bessel function over one that is not scaled",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="student_t_loss",
    object="StudentTLoss", kind="module", make=lambda cls: build(cls, 3),
    inputs=lambda: (r(4, 3, scale=2.0), mask(1, 0, 1, 1)),
    more=[lambda: (r(2, 3, seed=5),)],
    bug="the parameter is the logarithm, the chain factor df is missing",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="tobit_loss",
    object="tobit_nll", kind="callable",
    inputs=lambda: (r(3, 4), r(4, seed=1, scale=0.3), r(3, 4, seed=2, grad=False), mask([0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1])),
    more=[lambda: (r(3), r(seed=1, scale=0.3), r(3, seed=2), mask(0, 1, 1))],
    bug="censored samples: the factor z is missing in the gradient of log_sigma",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="negbin_op",
    object="negbin_nll", kind="callable",
    inputs=lambda: (u(2, 3, lo=0.5, hi=4.0), u(2, 3, seed=1, lo=0.5, hi=3.0), ints([0, 3, 1], [2, 5, 0])),
    more=[lambda: (u(4, lo=0.5, hi=4.0), u(4, seed=1, lo=0.5, hi=3.0), ints(0, 0, 1, 2))],
    bug="the residual takes the integer dtype of the counts",
    fits=["dtype", "value"],
    order="first",
))
CASES.append(dict(
    name="list_mle",
    object="ListMLE", kind="function",
    inputs=lambda: (r(2, 5), t([1.0, 0.0, 3.0, 2.0, 0.5], [0.0, 2.0, 1.0, 9.0, 9.0], grad=False), mask([1, 1, 1, 1, 1], [1, 1, 1, 0, 0])),
    more=[lambda: (r(1, 3), t([1.0, 2.0, 3.0], grad=False), mask([1, 1, 1]))],
    bug="the sorting is applied once more in place of its inverse",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="soft_rank",
    object="SoftRank", kind="function",
    inputs=lambda: (r(2, 4), 0.7, mask([1, 1, 1, 1], [1, 1, 1, 0])),
    more=[lambda: (r(1, 3, seed=2),)],
    bug="probabilities kept from forward are constants to the second derivative",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="arc_margin",
    object="ArcMargin", kind="module", make=lambda cls: build(cls, 3, 4, scale=4.0, easy_margin=True),
    inputs=lambda: (r(8, 3), ints(0, 1, 2, 3, 0, 1, 2, 3)),
    more=[lambda: (r(3, 3, seed=8), ints(1, 1, 2))],
    bug="the margin's slope is used below the threshold, too, where the logit is linear",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="crf_partition",
    object="CRFPartition", kind="function",
    inputs=lambda: (r(2, 4, 3), r(3, 3, seed=1), ints(4, 2)),
    more=[lambda: (r(1, 1, 2), r(2, 2, seed=1), ints(1))],
    bug="transitions of padded steps are counted",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="soft_dtw",
    object="SoftDTW", kind="function",
    inputs=lambda: (u(2, 3, 4, hi=2.0), 0.5),
    more=[lambda: (u(1, 2, 2),)],
    bug="the table of forward lies in a shared work array that the next call overwrites",
    fits=["state"],
    order="first",
))
CASES.append(dict(
    name="lp_pool",
    object="LpPool", kind="module", make=lambda cls: build(cls, 2),
    inputs=lambda: (r(2, 2, 7),),
    more=[lambda: (r(2, 4, seed=1),)],
    bug="the incoming gradient is divided in place",
    fits=["modified"],
    order="first",
))
CASES.append(dict(
    name="gem_pool",
    object="GeM", kind="module", make=lambda cls: build(cls),
    inputs=lambda: (u(2, 3, 2, 3, lo=0.2, hi=2.0),),
    more=[lambda: (u(1, 1, 2, 2, lo=0.2, hi=2.0, seed=4),)],
    bug="the exponent 1/p is not differentiated",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="blur_pool",
    object="BlurPool1d", kind="function",
    inputs=lambda: (r(1, 2, 6),),
    more=[lambda: (r(2, 1, 5),)],
    bug="the border goes back as for replicate padding, forward reflects",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="ws_conv",
    object="WSConv1d", kind="module", make=lambda cls: build(cls, 2, 3, 3, padding=1),
    inputs=lambda: (r(2, 2, 5),),
    more=[lambda: (r(1, 2, 3, seed=2),)],
    bug="the gradient of the gain has shape (O,), the parameter (O, 1, 1)",
    fits=["shape"],
    order="first",
))
CASES.append(dict(
    name="overlap_add_op",
    object="overlap_add", kind="callable",
    inputs=lambda: (r(2, 3, 4), r(4, seed=1), 2),
    more=[lambda: (r(1, 2, 3), r(3, seed=1), 3)],
    bug="the incoming gradient is taken to be contiguous",
    fits=["layout"],
    order="first",
))
CASES.append(dict(
    name="fractional_shift",
    object="TemporalShift", kind="module", make=lambda cls: build(cls, 4),
    inputs=lambda: (r(2, 5, 4),),
    more=[lambda: (r(1, 2, 4, seed=2),)],
    bug="sign of the gradient of the offsets",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="squeeze_excite",
    object="SqueezeExcite", kind="module", make=lambda cls: build(cls, 4, 3),
    inputs=lambda: (r(2, 4, 3, shift=0.4),),
    more=[lambda: (r(1, 4, 2, seed=2),)],
    bug="kept activations have no graph: second derivatives miss them",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="weight_norm_linear",
    object="WeightNormLinear", kind="module", make=lambda cls: build(cls, 4, 3),
    inputs=lambda: (r(2, 2, 4),),
    more=[lambda: (r(1, 4, seed=2),)],
    bug="the index of eps is asked for in place of that of the bias",
    fits=["None for"],
    order="first",
))
CASES.append(dict(
    name="spectral_linear",
    object="SpectralLinear", kind="module", make=lambda cls: build(cls, 4, 3, jitter=0.1),
    inputs=lambda: (r(2, 4),),
    more=[lambda: (r(1, 4, seed=2),)],
    bug="the buffers themselves are kept, the power iteration changes them before backward",
    fits=["state", "value"],
    order="first",
))
CASES.append(dict(
    name="lora_linear",
    object="LoRALinear", kind="module", make=lambda cls: build(cls, 4, 3),
    inputs=lambda: (r(3, 4, scale=3.0),),
    more=[lambda: (r(2, 2, 4, seed=2),)],
    bug="the input is kept in bfloat16 to save memory",
    fits=["dtype", "value"],
    order="first",
))
CASES.append(dict(
    name="gumbel_select",
    object="GumbelSelect", kind="function",
    inputs=lambda: (r(3, 4), r(3, 4, seed=1, grad=False), 0.5),
    more=[lambda: (r(5), r(5, seed=1))],
    surrogate=lambda *args: lambda logits, noise, tau=1.0: ((logits + noise) / tau).softmax(-1),
    bug="the temperature is missing in the gradient",
    fits=["value"],
    order="first",
))
def vq_surrogate(m, z0):
    index = torch.cdist(z0, m.codebook.detach()).argmin(-1)
    e0 = m.codebook.detach()[index].clone()

    def f(z):
        loss = (m.codebook[index] - z0).square().mean() + m.beta * (z - e0).square().mean()
        return z - z0 + e0, index, loss

    return f


CASES.append(dict(
    name="vq_layer",
    object="VectorQuantizer", kind="module", make=lambda cls: build(cls, 3, 2),
    inputs=lambda: (r(6, 2),),
    more=[lambda: (r(2, 2, seed=2),)],
    surrogate=lambda m, z: vq_surrogate(m, z),
    bug="codes chosen more than once keep the gradient of one sample only",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="chunked_linear_ce",
    object="ChunkedLinearCE", kind="function",
    inputs=lambda: (r(5, 3), r(4, 3, seed=1), ints(0, 3, -100, 2, 1)),
    more=[lambda: (r(3, 2), r(3, 2, seed=1), ints(-1, 1, 2), -1, 8)],
    bug="the saved gradients are scaled in place, a second backward fails",
    fits=["modified"],
    order="first",
))
CASES.append(dict(
    name="causal_linear_attention",
    object="CausalLinearAttention", kind="function",
    inputs=lambda: (r(2, 3, 2), r(2, 3, 2, seed=1), r(2, 3, 2, seed=2), True),
    more=[lambda: (r(1, 4, 2), r(1, 4, 2, seed=1), r(1, 4, 3, seed=2))],
    bug="with strict=True the own step is left in the gradients of k and v",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="cosine_scores",
    object="CosineScores", kind="module", make=lambda cls: build(cls, 3, max_scale=5.0),
    inputs=lambda: (r(2, 3, 2, 3), r(2, 3, 2, 3, seed=1)),
    more=[lambda: (r(1, 3, 1, 2), r(1, 3, 2, 2, seed=1))],
    bug="heads above the largest scale still give their scale a gradient",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="giou_loss",
    object="GIoULoss", kind="function",
    inputs=lambda: (t([0.0, 0.1, 2.0, 1.5], [0.0, 0.0, 1.0, 1.0], [0.2, 0.3, 0.9, 0.8]), t([0.5, 0.6, 2.5, 1.2], [2.0, 1.5, 3.0, 2.2], [0.1, 0.1, 1.3, 1.4])),
    more=[lambda: (t([0.5, 0.6, 2.5, 1.2]), t([0.0, 0.1, 2.0, 1.5], grad=False))],
    bug="the upper corner of the hull goes to the smaller one of the two boxes",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="wing_op",
    object="wing", kind="callable",
    inputs=lambda: (r(3, 4, scale=2.0), r(3, 4, seed=1, scale=0.5), 1.0, 0.5),
    more=[lambda: (r(5), r(5, seed=3, grad=False))],
    bug="large negative errors are taken for small ones",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="segment_softmax_op",
    object="segment_softmax", kind="callable",
    inputs=lambda: (r(6, 2), ints(0, 2, 2, 0, 1, 2), 4),
    more=[lambda: (r(3, 1), ints(0, 0, 0), 1)],
    bug="the incoming gradient is multiplied in place",
    fits=["modified"],
    order="first",
))
CASES.append(dict(
    name="jagged_to_padded",
    object="JaggedToPadded", kind="function",
    inputs=lambda: (r(7, 3), ints(0, 2, 2, 7), 4, -1.0),
    more=[lambda: (r(3, 2), ints(0, 1, 3), 2)],
    bug="zeros_like keeps the strides of values, reshape(-1) is then a copy and the sums are lost",
    fits=["layout"],
    order="first",
))
CASES.append(dict(
    name="pinhole_project",
    object="PinholeProject", kind="function",
    inputs=lambda: (t([0.3, 0.5, 2.0], [-1.0, 0.4, 0.2], [0.6, -0.2, -1.0], [1.0, 1.0, 4.0]), t(1.5, 1.2), t(0.5, 0.4), 0.5),
    more=[lambda: (t([0.3, 0.5, 2.0]), t(1.5, 1.2), t(0.5, 0.4))],
    bug="points before the near plane get a gradient of the clamped depth",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="box_sdf",
    object="box_sdf", kind="callable",
    inputs=lambda: (t([0.7, 0.3, -0.15], [1.5, -0.9, 0.3], [-0.1, 0.4, 0.35], [0.2, 0.1, 0.9]), t(1.2, 0.5, 0.4), 0.1),
    more=[lambda: (t([0.2, 0.3], [2.0, 0.1]), t([1.0, 0.5], [0.3, 0.4]))],
    bug="inside, the nearest face is looked for by |p| without the size of the box",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="rbf_cutoff",
    object="RadialBasis", kind="module", make=lambda cls: build(cls, 4, 3.0, jitter=0.1),
    inputs=lambda: (t(0.4, 1.3, 2.5, 3.6, 0.9),),
    more=[lambda: (t(1.1),)],
    bug="the exponential is kept from forward: forces are right, their derivatives are not",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="lj_pairs",
    object="lj_pairs", kind="callable",
    inputs=lambda: (t([0.0, 0.0, 0.0], [1.1, 0.1, 0.0], [0.2, 1.2, 0.3], [1.9, 1.5, 0.2]), ints([0, 0, 1, 2, 0], [1, 2, 2, 3, 3]), 0.8, 1.0, 1.5),
    more=[lambda: (t([0.0, 0.0, 0.0], [1.1, 0.1, 0.0], [0.2, 1.2, 0.3]), ints([0, 1], [1, 2]))],
    bug="pairs beyond the cutoff still pull",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="volume_render",
    object="VolumeRender", kind="function",
    inputs=lambda: (u(2, 4, hi=2.0), u(2, 4, seed=1, lo=0.1, hi=0.5, grad=False), u(2, 4, 3, seed=2), u(3, seed=3)),
    more=[lambda: (u(1, 1), u(1, 1, seed=1), u(1, 1, 2, seed=2), u(2, seed=3))],
    bug="the sum over the samples behind includes the sample itself",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="exclusive_cumprod",
    object="ExclusiveCumprod", kind="function",
    inputs=lambda: (t([0.5, -1.2, 0.0, 0.7, 1.1], [1.3, 0.4, -0.6, 0.9, 0.2]),),
    more=[lambda: (r(3, seed=1),), lambda: (t([0.0, 2.0, 0.0]),)],
    bug="divides by x: 0 / 0 at a zero",
    fits=["nan"],
    order="first",
))
CASES.append(dict(
    name="attention_pool",
    object="MaskedAttentionPool", kind="function",
    inputs=lambda: (r(3, 4, 2), r(2, seed=1), mask([1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1])),
    more=[lambda: (r(1, 3, 3), r(3, seed=1), mask([1, 1, 0]))],
    bug="the softmax of an empty sequence is NaN and is kept like that for backward",
    fits=["nan"],
    order="first",
))
CASES.append(dict(
    name="toeplitz",
    object="Toeplitz", kind="function",
    inputs=lambda: (r(2, 5),),
    more=[lambda: (r(1, 1),), lambda: (r(1, 7),)],
    bug="the flat view takes the incoming gradient to be contiguous",
    fits=["layout"],
    order="first",
))
CASES.append(dict(
    name="dirichlet_kl",
    object="dirichlet_kl", kind="callable",
    inputs=lambda: (u(2, 3, lo=0.5, hi=3.0, grad=False), u(2, 3, seed=1, lo=0.5, hi=3.0)),
    more=[lambda: (u(4, lo=0.5, hi=3.0), u(4, seed=1, lo=0.5, hi=3.0))],
    bug="beta gets a gradient only when alpha needs one, too",
    fits=["None for"],
    order="first",
))
CASES.append(dict(
    name="tversky",
    object="TverskyLoss", kind="module", make=lambda cls: build(cls),
    inputs=lambda: (u(2, 2, 4, lo=0.1, hi=0.9), ints([[0, 1, 1, 0], [1, 0, 0, 1]], [[1, 1, 1, 0], [0, 0, 1, 0]])),
    more=[lambda: (u(1, 1, 3, lo=0.1, hi=0.9), ints([[0, 1, 0]]))],
    bug="the weights of false positives and false negatives are exchanged",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="lyapunov",
    object="Lyapunov", kind="function",
    inputs=lambda: (r(3, 3, scale=0.3).detach().add(torch.eye(3, dtype=torch.float64)).requires_grad_(), r(3, 3, seed=1)),
    more=[lambda: (t([1.0, 0.3], [-0.2, 1.5]), r(2, 2, seed=1))],
    bug="takes X and the adjoint for symmetric",
    fits=["value"],
    order="first",
))
CASES.append(dict(
    name="deq_tanh",
    object="DEQTanh", kind="module", make=lambda cls: build(cls, 3, 4, jitter=0.15),
    inputs=lambda: (r(2, 3),),
    more=[lambda: (r(1, 3, seed=5),)],
    bug="the Jacobian is not transposed in the adjoint solve",
    fits=["value"],
    order="first",
))
