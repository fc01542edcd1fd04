"""Pairs of operators: right/NAME.py and wrong/NAME.py, which has one fault."""
import torch


def _gen(seed):
    return torch.Generator().manual_seed(seed)


def _r(*shape, seed=0, scale=1.0, shift=0.0):
    """normal numbers that require a gradient"""
    return (torch.randn(*shape, generator=_gen(seed), dtype=torch.float64) * scale + shift).requires_grad_()


def _u(*shape, lo=0.1, hi=0.9, seed=0):
    """uniform numbers that require a gradient"""
    return (torch.rand(*shape, generator=_gen(seed), dtype=torch.float64) * (hi - lo) + lo).requires_grad_()


def _c(*shape, seed=0):
    """complex normal numbers that require a gradient"""
    return torch.randn(*shape, generator=_gen(seed), dtype=torch.complex128).requires_grad_()


def _f(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def _k(values):
    return torch.tensor(values, dtype=torch.float64)


def _i(values):
    return torch.tensor(values, dtype=torch.int64)


def _b(values):
    return torch.tensor(values, dtype=torch.bool)


def _d(t):
    return t.detach()


def _mod(m, scale=0.7, seed=11):
    """in float64, with seeded parameters"""
    m = m.double()
    g = _gen(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * scale)
    return m


def _lsq_surrogate(x, scale, qn, qp, grad_scale=1.0, axis=None):
    def along(s, x):
        return s if axis is None else s.reshape([-1 if i == axis % x.dim() else 1 for i in range(x.dim())])

    scale0 = scale.clone()
    v0 = x / along(scale0, x)
    gap = v0.round() - v0  # what rounding adds, held

    def f(x, scale, *_):
        s = along(scale0 + grad_scale * (scale - scale0), x)
        v = x / along(scale0, x)
        inside = (x / s + gap) * s
        # x keeps the slope one inside and none outside, where the result is a multiple of the step
        return torch.where(v < qn, qn * s, torch.where(v > qp, qp * s, inside))

    return f


def _xnor_surrogate(w):
    sign, clip = w.sign(), w.clamp(-1, 1)

    def f(w):
        return w.abs().mean(tuple(range(1, w.dim())), keepdim=True) * (sign + w.clamp(-1, 1) - clip)

    return f


CASES = [
    {
        "name": "poly1_cross_entropy",
        "object": "Poly1CrossEntropy",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "ignored rows are not zeroed",
        "inputs": lambda: (_r(5, 4), _i([0, 3, -100, 1, 2])),
        "more": [
            lambda: (_r(5, 4), _i([0, 3, -100, 1, 2]), 2.0, "none"),
            lambda: (_r(3, 6, seed=4), _i([5, 1, 1]), -0.5, "sum", 1),
            lambda: (_r(3, 2, seed=4), _i([-100, -100, -100])),
        ],
    },
    {
        "name": "list_mle",
        "object": "ListMLE",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the gradient is gathered by the order instead of put back",
        "inputs": lambda: (_r(2, 5), _k([[1.0, 3.0, 0.0, 2.0, 1.5], [0.0, 1.0, 2.0, 0.5, 4.0]])),
        "more": [
            lambda: (_r(2, 4, seed=2), _k([[1.0, 3.0, 0.0, 2.0], [0.0, 2.0, 2.0, 9.0]]), _b([[1, 1, 1, 0], [1, 1, 1, 1]])),
            lambda: (_r(1, 1, seed=2), _k([[1.0]]), None),
        ],
    },
    {
        "name": "approx_ndcg",
        "object": "ApproxNDCG",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the part of the other documents' ranks is missing",
        "inputs": lambda: (_r(2, 4), _i([[0, 2, 1, 3], [1, 0, 0, 2]])),
        "more": [
            lambda: (_r(1, 6, seed=3), _i([[0, 2, 1, 3, 0, 4]]), 0.3),
            lambda: (_r(2, 3, seed=3), _i([[0, 0, 0], [1, 1, 0]]), 2.0),
        ],
    },
    {
        "name": "cox_breslow",
        "object": "CoxPHLoss",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the risk set of backward leaves out the event itself and its ties",
        "inputs": lambda: (_r(6), _k([3.0, 1.0, 4.0, 1.0, 5.0, 2.0]), _i([1, 1, 0, 1, 1, 0])),
        "more": [
            lambda: (_r(4, seed=3), _k([3.0, 3.0, 3.0, 1.0]), _i([1, 0, 1, 1])),
            lambda: (_r(3, seed=3), _i([3, 2, 1]), _b([0, 0, 0])),
        ],
    },
    {
        "name": "giou_loss",
        "object": "GIoULoss",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "boxes that do not overlap get a gradient through the intersection",
        "inputs": lambda: (_f([[0.0, 0.1, 2.0, 2.2], [0.0, 0.2, 1.0, 3.0]]), _k([[1.0, 1.0, 3.0, 3.1], [2.0, 0.0, 3.0, 2.0]])),
        "more": [
            lambda: (_f([[0.0, 0.1, 2.0, 2.2], [0.0, 0.2, 1.0, 3.0], [0.5, 0.5, 0.8, 0.9]]),
                     _k([[1.0, 1.0, 3.0, 3.1], [2.0, 4.0, 3.0, 5.0], [0.0, 0.0, 2.0, 1.0]]), _k([0.5, 2.0, 1.0]), 2.0),
        ],
    },
    {
        "name": "nwd_loss",
        "object": "NWDLoss",
        "kind": "function",
        "order": "first",
        "fits": ["nan"],
        "bug": "0/0 where a box has been hit exactly",
        "inputs": lambda: (_f([[1.0, 2.0, 3.0, 4.0], [0.5, 0.5, 1.0, 1.5]]), _k([[1.0, 2.0, 3.0, 4.0], [0.6, 0.2, 1.3, 1.0]]), 2.0),
        "more": [
            lambda: (_r(2, 3, 4), _r(2, 3, 4, seed=1)),
            lambda: (_r(3, 4), _r(3, 4, seed=1), 0.7),
        ],
    },
    {
        "name": "batch_hard_triplet",
        "object": "BatchHardTriplet",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "only one anchor of those with the same negative reaches it",
        "inputs": lambda: (_r(6, 2), _i([0, 0, 0, 0, 0, 1])),
        "more": [
            lambda: (_r(6, 3), _i([0, 1, 0, 1, 2, 2]), 0.4),
            lambda: (_r(5, 3, seed=8), _i([0, 1, 0, 1, 1])),
        ],
    },
    {
        "name": "fused_linear_ce",
        "object": "FusedLinearCrossEntropy",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the weight's gradient is not scaled by the incoming one",
        "inputs": lambda: (_r(5, 3), _r(4, 3, seed=1), _i([1, 0, -100, 3, 2])),
        "more": [
            lambda: (_r(5, 3), _r(4, 3, seed=1), _i([1, 0, -100, 3, 2]), _r(4, seed=2)),
            lambda: (_r(3, 2), _r(5, 2, seed=1), _i([1, 0, 4]), _r(5, seed=2), 0, "sum", 3),
        ],
    },
    {
        "name": "crf_log_partition",
        "object": "CRFLogPartition",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "padded steps count in the transitions' gradient",
        "inputs": lambda: (_r(2, 4, 3), _r(3, 3, seed=1), _r(3, seed=2), _r(3, seed=3), _i([4, 2])),
        "more": [
            lambda: (_r(1, 3, 2), _r(2, 2, seed=1), _r(2, seed=2), _r(2, seed=3), _i([3])),
            lambda: (_r(3, 3, 2), _r(2, 2, seed=1), _r(2, seed=2), _r(2, seed=3), _i([1, 3, 2])),
        ],
    },
    {
        "name": "siglip_loss",
        "object": "SigLipLoss",
        "kind": "module",
        "order": "first",
        "fits": ['value'],
        "bug": "the log-temperature's gradient lacks exp(t)",
        "make": lambda m: m().double(),
        "inputs": lambda: (_r(3, 4), _r(3, 4, seed=1)),
        "more": [lambda: (_r(5, 2), _r(5, 2, seed=1)), lambda: (_r(1, 2), _r(1, 2, seed=1))],
    },
    {
        "name": "cumulative_link",
        "object": "CumulativeLinkNLL",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the lowest class gets a gradient from a cut that it does not have",
        "inputs": lambda: (_r(6), _f([-1.0, 0.3, 1.2]), _i([0, 3, 1, 2, 0, 1])),
        "more": [lambda: (_r(3, seed=4), _f([0.3]), _i([0, 1, 1])), lambda: (_r(2, seed=5), _f([0.3, 0.9]), _i([1, 2]), 1e-8)],
    },
    {
        "name": "sink_attention",
        "object": "SinkAttention",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "sign of the sink's gradient",
        "inputs": lambda: (_r(2, 2, 3, 4), _r(2, 2, 3, 4, seed=1), _r(2, 2, 3, 4, seed=2), _r(2, seed=3)),
        "more": [
            lambda: (_r(1, 3, 2, 2), _r(1, 3, 4, 2, seed=1), _r(1, 3, 4, 3, seed=2), _r(3, seed=3), False),
            lambda: (_r(1, 1, 2, 2), _r(1, 1, 4, 2, seed=1), _r(1, 1, 4, 2, seed=2), _r(1, seed=3), True),
        ],
    },
    {
        "name": "softcap_attention",
        "object": "SoftcapAttention",
        "kind": "function",
        "order": "first",
        "fits": ["modified in place"],
        "bug": "the saved tanh is changed in place, a second backward fails",
        "inputs": lambda: (_r(1, 2, 3, 4), _r(1, 2, 3, 4, seed=1), _r(1, 2, 3, 4, seed=2), None, 2.0),
        "more": [
            lambda: (_r(2, 1, 3, 2), _r(2, 1, 4, 2, seed=1), _r(2, 1, 4, 3, seed=2), _b([[1, 1, 0, 1], [1, 0, 0, 0]]), 1.5, 0.8),
            lambda: (_r(2, 1, 3, 2), _r(2, 1, 4, 2, seed=1), _r(2, 1, 4, 3, seed=2)),
        ],
    },
    {
        "name": "gemma_rmsnorm",
        "object": "GemmaRMSNorm",
        "kind": "module",
        "order": "first",
        "fits": ["value"],
        "bug": "backward uses the weight without the one",
        "make": lambda m: _mod(m(4)),
        "inputs": lambda: (_r(2, 3, 4),),
        "more": [lambda: (_r(4, seed=2),), lambda: (_r(5, 1, 4, seed=3),)],
    },
    {
        "name": "masked_batchnorm",
        "object": "MaskedBatchNorm",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "backward divides by all frames instead of the valid ones",
        "inputs": lambda: (_r(2, 4, 3), _b([[1, 1, 1, 0], [1, 1, 0, 0]]), _r(3, seed=1), _r(3, seed=2)),
        "more": [
            lambda: (_r(1, 5, 2), _b([[1, 1, 1, 1, 1]]), _r(2, seed=1), _r(2, seed=2), 0.1),
            lambda: (_r(3, 2, 1), _b([[1, 0], [1, 1], [1, 0]]), _r(1, seed=1), _r(1, seed=2), 0.01),
        ],
    },
    {
        "name": "causal_linear_attention",
        "object": "CausalLinearAttention",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the normaliser is treated as a constant",
        "inputs": lambda: (_r(1, 2, 4, 3), _r(1, 2, 4, 3, seed=1), _r(1, 2, 4, 3, seed=2)),
        "more": [lambda: (_r(2, 1, 3, 2), _r(2, 1, 3, 2, seed=1), _r(2, 1, 3, 4, seed=2), 0.1)],
    },
    {
        "name": "snake_beta",
        "object": "Snake",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "in the logscale branch the factor exp(alpha) is alpha",
        "inputs": lambda: (_r(2, 3, 4), _r(3, seed=1), True),
        "more": [lambda: (_r(2, 3, 4), _u(3, lo=0.5, hi=2.0)), lambda: (_r(1, 1, 6), _u(1, lo=-1.0, hi=-0.5), False)],
    },
    {
        "name": "srelu",
        "object": "SReLUFn",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the right slope's gradient lacks the threshold",
        "inputs": lambda: (_r(4, 3, 2, scale=2.0), _f([-0.5, -0.7, -0.2]), _f([0.1, 0.2, 0.3]), _f([0.4, 0.6, 0.9]), _f([1.5, 0.5, 0.7])),
        "more": [lambda: (_r(6, 2, seed=5, scale=2.0), _f([-0.5, -0.7]), _f([0.1, 0.2]), _f([0.4, 0.6]), _f([1.5, 0.5]))],
    },
    {
        "name": "acon_c",
        "object": "AconC",
        "kind": "module",
        "order": "first",
        "fits": ["value"],
        "bug": "the linear term is missing in the gradient of p2",
        "make": lambda m: _mod(m(3)),
        "inputs": lambda: (_r(2, 3, 2, 2),),
        "more": [lambda: (_r(1, 3, 1, 4, seed=5),)],
    },
    {
        "name": "xielu",
        "object": "xielu",
        "kind": "callable",
        "order": "first",
        "fits": ['value'],
        "bug": "the negative coefficient's gradient lacks softplus'",
        "inputs": lambda: (_r(3, 4), _f(0.3), _f(-0.6)),
        "more": [lambda: (_r(7, seed=3), _f(-0.3), _f(0.6), 0.2, -1e-4)],
    },
    {
        "name": "pade_activation",
        "object": "PadeActivationUnit",
        "kind": "module",
        "order": "first",
        "fits": ['value'],
        "bug": "sign of the denominator's derivative",
        "make": lambda m: _mod(m()),
        "inputs": lambda: (_r(3, 4),),
        "more": [lambda: (_r(5, seed=8),), lambda: (_r(1, 2, 3, seed=9),)],
    },
    {
        "name": "bias_geglu",
        "object": "bias_geglu",
        "kind": "callable",
        "order": "first",
        "fits": ["value"],
        "bug": "with linear_first=False the halves of the gradient are swapped",
        "inputs": lambda: (_r(2, 3, 4), _r(4, seed=1), False),
        "more": [lambda: (_r(2, 3, 4), _r(4, seed=1)), lambda: (_r(6), _r(6, seed=1), True)],
    },
    {
        "name": "entmax15",
        "object": "Entmax15Function",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "divides by the size of the support as sparsemax does",
        "inputs": lambda: (_r(3, 5),),
        "more": [lambda: (_r(4, 2, 3, seed=1), 1), lambda: (_r(6, 2, seed=7, scale=3.0), 0), lambda: (_f([0.7]),)],
    },
    {
        "name": "smooth_step",
        "object": "smooth_step",
        "kind": "callable",
        "order": "first",
        "fits": ['value'],
        "bug": "backward's window is twice too wide",
        "inputs": lambda: (_f([-1.4, -0.8, -0.6, -0.2, 0.1, 0.4, 0.7, 1.2]), 1.0),
        "more": [lambda: (_r(3, 4), 2.5), lambda: (_r(3, 4, seed=6), 0.4)],
    },
    {
        "name": "hard_concrete",
        "object": "HardConcreteGate",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the stretch's factor is missing",
        "inputs": lambda: (_r(6), _d(_u(6, lo=0.1, hi=0.9, seed=3))),
        "more": [
            lambda: (_r(2, 3, seed=2),),
            lambda: (_r(2, 5, seed=2, scale=2.0), _d(_u(2, 5, lo=0.05, hi=0.95, seed=3)), 0.5, -0.3, 1.2),
        ],
    },
    {
        "name": "lsq_quant",
        "object": "LSQ",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the step's gradient inside the range lacks -x/s",
        "surrogate": _lsq_surrogate,
        "inputs": lambda: (_r(3, 4), _f(0.3), -2, 3),
        "more": [
            lambda: (_r(3, 4, seed=4), _f([0.3, 0.2, 0.5]), -4, 3, 0.25, 0),
            lambda: (_r(2, 3, seed=5), _f([0.3, 0.2, 0.5]), 0, 3, 1.0, -1),
        ],
    },
    {
        "name": "pact",
        "object": "PACT",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "values below zero get a gradient",
        "surrogate": lambda x, alpha, bits=4: lambda x, alpha, bits=4: torch.minimum(x.clamp(min=0), alpha),
        "inputs": lambda: (_r(3, 4, scale=2.0), _f(1.1)),
        "more": [lambda: (_r(2, 3, 2, seed=6, scale=2.0), _f([0.8]), 2)],
    },
    {
        "name": "xnor_weight",
        "object": "XnorBinarize",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the scale's gradient is not averaged over its filter",
        "surrogate": _xnor_surrogate,
        "inputs": lambda: (_r(3, 4),),
        "more": [lambda: (_r(2, 2, 3, 1, seed=4),)],
    },
    {
        "name": "segment_softmax",
        "object": "SegmentSoftmax",
        "kind": "function",
        "order": "second",
        "fits": ["value"],
        "bug": "the output is kept without its history, second derivatives lack its part",
        "inputs": lambda: (_r(5, 2), _i([0, 2, 0, 2, 2]), 3),
        "more": [lambda: (_r(4, 1, seed=3), _i([1, 1, 0, 3]), 5)],
    },
    {
        "name": "gcn_propagate",
        "object": "GCNPropagate",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the degrees' part goes to the edges by their source",
        "inputs": lambda: (_r(4, 2), _i([[0, 1, 2, 3, 0, 2], [1, 2, 0, 0, 3, 1]]), _u(6, lo=0.3, hi=2.0)),
        "more": [
            lambda: (_r(3, 1), _i([[0, 0, 1], [1, 1, 1]]), _u(3, lo=0.3, hi=2.0)),
            lambda: (_r(3, 3), _i([[], []]), _u(0)),
        ],
    },
    {
        "name": "embedding_bag_weighted",
        "object": "WeightedEmbeddingBag",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the sample weights' gradient is not divided by the bag's count",
        "inputs": lambda: (_r(5, 3), _i([1, 0, 3, 1, 4, 0]), _i([0, 2, 2]), _u(6, lo=0.5, hi=2.0), "mean"),
        "more": [
            lambda: (_r(5, 3), _i([1, 0, 3, 1, 4, 0]), _i([0, 2, 2])),
            lambda: (_r(5, 3), _i([1, 0, 3, 1, 4, 0]), _i([0, 2, 2]), _u(6, lo=0.5, hi=2.0), "sum", 0),
            lambda: (_r(4, 2), _i([1, 2, 3, 1, 2]), _i([0, 1, 3]), _u(5, lo=0.5, hi=2.0), "mean", 2),
            lambda: (_r(4, 2), _i([1, 2, 3, 1, 2]), _i([0, 5]), None, "mean"),
        ],
    },
    {
        "name": "bilinear_points",
        "object": "SampleAtPoints",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "corners outside of the map are added at the border pixels",
        "inputs": lambda: (_r(2, 3, 4), _f([[0.4, 1.3], [-0.6, 0.2], [2.7, 2.5], [1.2, 0.7]])),
        "more": [lambda: (_r(1, 2, 2), _f([[0.4, 0.3], [5.6, 0.2]])), lambda: (_r(3, 1, 4), _f([[2.4, -0.3]]))],
    },
    {
        "name": "jagged_to_padded",
        "object": "jagged_to_padded",
        "kind": "callable",
        "order": "first",
        "fits": ["value"],
        "bug": "the first value that was cut off gets a gradient",
        "inputs": lambda: (_r(7, 2), _i([0, 2, 2, 7]), 3),
        "more": [lambda: (_r(4, 1), _i([0, 3, 4]), 5, -1.0), lambda: (_r(4, 3), _i([0, 4]), 1), lambda: (_r(4, 2), _i([0, 1, 4]))],
    },
    {
        "name": "gaussian_smearing",
        "object": "GaussianSmearing",
        "kind": "function",
        "order": "second",
        "fits": ["value"],
        "bug": "backward works on detached tensors, second derivatives are zero",
        "inputs": lambda: (_u(4, lo=0.3, hi=3.0), _f([0.5, 1.5, 2.5]), 0.6),
        "more": [
            lambda: (_u(4, lo=0.3, hi=3.0), _f([0.5, 1.5, 2.5]), 0.6, 2.0),
            lambda: (_u(2, lo=0.3, hi=3.0), _f([0.9]), 1.0, 5.0),
        ],
    },
    {
        "name": "fft_long_conv",
        "object": "FFTLongConv",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the filter's gradient is a convolution where a correlation belongs",
        "inputs": lambda: (_r(2, 3, 5), _r(3, 5, seed=1), _r(3, seed=2)),
        "more": [lambda: (_r(1, 2, 4), _r(2, 4, seed=1)), lambda: (_r(2, 1, 1), _r(1, 1, seed=1), None)],
    },
    {
        "name": "modrelu",
        "object": "ModReLU",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the radial part lacks a conjugate",
        "inputs": lambda: (_c(4, 3), _f([0.3, -0.4, -0.1])),
        "more": [lambda: (_c(2, 2, 2, seed=4), _f([0.1, -0.6]), 0.1), lambda: (_c(3, seed=4), _f([0.1, -0.6, 0.0]))],
    },
    {
        "name": "preemphasis",
        "object": "preemphasis",
        "kind": "callable",
        "order": "first",
        "fits": ["value"],
        "bug": "backward applies the filter itself instead of its transpose",
        "inputs": lambda: (_r(2, 6), _f(0.9)),
        "more": [lambda: (_r(5), _f([0.5]), True), lambda: (_r(2, 2, 1), _f(0.7))],
    },
    {
        "name": "soft_dtw",
        "object": "SoftDTW",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the diagonal step reads the cost of its neighbour",
        "inputs": lambda: (_u(2, 3, 4, lo=0.1, hi=2.0),),
        "more": [lambda: (_u(1, 4, 4, lo=0.1, hi=2.0, seed=4), 0.5, 1), lambda: (_u(2, 1, 3, lo=0.1, hi=2.0, seed=5), 2.0)],
    },
    {
        "name": "gated_linear_scan",
        "object": "GatedScan",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the last state's own gradient is forgotten",
        "inputs": lambda: (_u(2, 4, 3), _r(2, 4, 3, seed=1), _r(2, 3, seed=2)),
        "more": [lambda: (_u(1, 5, 2), _r(1, 5, 2, seed=1)), lambda: (_r(2, 1, 2), _r(2, 1, 2, seed=1), None)],
    },
    {
        "name": "selective_scan",
        "object": "SelectiveScanRef",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "softplus' derivative is taken at its result",
        "inputs": lambda: (_r(2, 2, 3), _r(2, 2, 3, seed=1), _u(2, 2, lo=-1.0, hi=-0.2), _r(2, 2, 3, seed=3), _r(2, 2, 3, seed=4), _r(2, seed=5), _r(2, seed=6), True),
        "more": [
            lambda: (_r(1, 2, 3), _u(1, 2, 3, seed=1), _u(2, 3, lo=-1.0, hi=-0.2), _r(1, 3, 3, seed=3), _r(1, 3, 3, seed=4)),
            lambda: (_r(1, 1, 4), _u(1, 1, 4, seed=1), _u(1, 2, lo=-1.0, hi=-0.2), _r(1, 2, 4, seed=3), _r(1, 2, 4, seed=4), None, _r(1, seed=6), False),
        ],
    },
    {
        "name": "wkv4",
        "object": "WKV",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the current token, which does not decay, counts in the decay's gradient",
        "inputs": lambda: (_u(2, lo=0.2, hi=1.0), _r(2), _r(2, 4, 2, seed=1), _r(2, 4, 2, seed=2)),
        "more": [lambda: (_u(3, lo=0.2, hi=1.0), _r(3), _r(1, 3, 3, seed=1), _r(1, 3, 3, seed=2)), lambda: (_u(1), _r(1), _r(2, 1, 1, seed=1), _r(2, 1, 1, seed=2))],
    },
    {
        "name": "delta_rule",
        "object": "DeltaRule",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the state's gradient does not pass through the prediction error",
        "inputs": lambda: (_r(1, 4, 3), _r(1, 4, 3, seed=1, scale=0.5), _r(1, 4, 2, seed=2), _u(1, 4)),
        "more": [lambda: (_r(2, 3, 2), _r(2, 3, 2, seed=1), _r(2, 3, 2, seed=2), _u(2, 3))],
    },
    {
        "name": "gem_pool",
        "object": "GeM",
        "kind": "module",
        "order": "first",
        "fits": ["value"],
        "bug": "the derivative of the exponent 1/p is missing",
        "make": lambda m: m(2.5, eps=0.2).double(),
        "inputs": lambda: (_u(2, 3, 2, 2, lo=0.3, hi=2.0),),
        "more": [lambda: (_r(1, 2, 3, 1, seed=4),)],
    },
    {
        "name": "causal_conv1d",
        "object": "CausalConv1d",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the recomputed pre-activation forgets the bias",
        "inputs": lambda: (_r(2, 3, 5), _r(3, 4, seed=1), _r(3, seed=2)),
        "more": [
            lambda: (_r(1, 2, 3), _r(2, 2, seed=1), None, "silu"),
            lambda: (_r(1, 2, 2), _r(2, 4, seed=1), _r(2, seed=2), None),
        ],
    },
    {
        "name": "ws_conv2d",
        "object": "WSConv2d",
        "kind": "module",
        "order": "first",
        "fits": ["value"],
        "bug": "the variance term is divided by the fan-in",
        "make": lambda m: _mod(m(2, 3, 2, padding=1)),
        "inputs": lambda: (_r(1, 2, 3, 3),),
        "more": [lambda: (_r(2, 2, 2, 2, seed=4),)],
    },
    {
        "name": "blur_pool1d",
        "object": "BlurPool1d",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the right border is folded back as with symmetric padding",
        "inputs": lambda: (_r(1, 2, 5),),
        "more": [
            lambda: (_r(2, 1, 6), 3),
            lambda: (_r(1, 2, 7), 2, (1.0, 4.0, 6.0, 4.0, 1.0)),
            lambda: (_r(1, 2, 4), 1, (2.0,)),
        ],
    },
    {
        "name": "kmax_pool",
        "object": "kmax_pool",
        "kind": "callable",
        "order": "first",
        "fits": ["value"],
        "bug": "backward has the indices by size, not by position",
        "inputs": lambda: (_r(2, 3, 6), 3),
        "more": [lambda: (_r(5, seed=4), 1), lambda: (_r(2, 4, seed=4), 4), lambda: (_r(2, 4, 3, seed=4), 2, 1)],
    },
    {
        "name": "attention_pool",
        "object": "MaskedAttentionPool",
        "kind": "function",
        "order": "first",
        "fits": ["nan"],
        "bug": "backward gives NaN for a sequence of length 0",
        "inputs": lambda: (_r(3, 4, 2), _r(3, 4, seed=1), _b([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]])),
        "more": [lambda: (_r(1, 3, 2), _r(1, 3, seed=1), _b([[0, 1, 1]]))],
    },
    {
        "name": "tied_head",
        "object": "TiedBigram",
        "kind": "module",
        "order": "first",
        "fits": ["value"],
        "bug": "a token that occurs twice gets only one of its gradients",
        "make": lambda m: _mod(m(5, 3), scale=0.6),
        "inputs": lambda: (_i([[0, 2, 2], [4, 0, 2]]),),
        "more": [lambda: (_i([1, 1, 3]),), lambda: (_i([[[4]]]),)],
    },
    {
        "name": "bias_dropout_add",
        "object": "BiasDropoutAdd",
        "kind": "function",
        "order": "first",
        "fits": ['modified in place', 'value'],
        "bug": "the incoming gradient is masked in place, the residual's too",
        "inputs": lambda: (_r(2, 3, 4), _r(4, seed=1), _r(2, 3, 4, seed=2), _d(_u(2, 3, 4, seed=3)) > 0.4, 0.4),
        "more": [lambda: (_r(3, 2), _r(2, seed=1), _r(3, 2, seed=2), _b([[1, 0], [0, 0], [1, 1]]))],
    },
    {
        "name": "fused_bias_gelu",
        "object": "bias_gelu",
        "kind": "callable",
        "order": "first",
        "fits": ['value'],
        "bug": "the 3 of the cubic term's derivative is missing",
        "inputs": lambda: (_r(2, 4), _r(4, seed=1)),
        "more": [lambda: (_r(2, 3, 2), _r(2, seed=1)), lambda: (_r(3), _r(3, seed=1))],
    },
    {
        "name": "topk_gate",
        "object": "TopKGate",
        "kind": "function",
        "order": "first",
        "fits": ['value'],
        "bug": "the renormaliser's term lacks a division",
        "inputs": lambda: (_r(3, 5),),
        "more": [lambda: (_r(3, 4, seed=3), 1, False), lambda: (_r(2, 4, seed=3), 3, True, 2.5), lambda: (_r(2, 4, seed=3), 2, False, 0.5)],
    },
    {
        "name": "moe_combine",
        "object": "MoECombine",
        "kind": "function",
        "order": "first",
        "fits": ["none for an input"],
        "bug": "the gates get none since the wrong flag is asked",
        "inputs": lambda: (_r(6, 2), _i([4, 0, 3, 1, 5, 2]), _u(3, 2)),
        "more": [lambda: (_r(3, 2), _i([2, 0, 1]), _u(3, 1)), lambda: (_r(3, 1), _i([2, 0, 1]), _u(1, 3))],
    },
    {
        "name": "rope_partial",
        "object": "PartialRoPE",
        "kind": "function",
        "order": "first",
        "fits": ['dtype float32', 'value'],
        "bug": "backward's angles are float32, which is too coarse for large positions",
        "inputs": lambda: (_r(1, 4, 2, 6), _i([0, 3, 20000003, 1700000123]), 4),
        "more": [lambda: (_r(2, 3, 1, 4), _i([0, 1, 2])), lambda: (_r(1, 2, 1, 6), _i([1000003, 7]), 2, 500000.0)],
    },
    {
        "name": "fourier_features",
        "object": "FourierFeatures",
        "kind": "function",
        "order": "first",
        "fits": ["state"],
        "bug": "the tensors are kept on the class, a second call overwrites them",
        "inputs": lambda: (_r(3, 2), _r(4, 2, seed=1, scale=0.3)),
        "more": [lambda: (_r(2, 1), _r(3, 1, seed=1, scale=0.3), _r(3, seed=2))],
    },
    {
        "name": "space_to_depth",
        "object": "SpaceToDepth",
        "kind": "function",
        "order": "first",
        "fits": ["layout"],
        "bug": "backward takes the gradient to be contiguous",
        "inputs": lambda: (_r(2, 2, 4, 6),),
        "more": [lambda: (_r(1, 1, 6, 3), 3), lambda: (_r(2, 3, 2, 2), 1)],
    },
    {
        "name": "lora_linear",
        "object": "LoRALinear",
        "kind": "function",
        "order": "first",
        "fits": ["number of gradients"],
        "bug": "without a bias one gradient too few is returned",
        "inputs": lambda: (_r(2, 3), _d(_r(4, 3, seed=1)), None, _r(2, 3, seed=2), _r(4, 2, seed=3), 0.5),
        "more": [
            lambda: (_r(2, 2, 3), _r(4, 3, seed=1), _r(4, seed=5), _r(2, 3, seed=2), _r(4, 2, seed=3), 2.0),
            lambda: (_r(3), _r(2, 3, seed=1), None, _r(1, 3, seed=2), _r(2, 1, seed=3)),
        ],
    },
    {
        "name": "kron_linear",
        "object": "KronLinear",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the gradient of B is transposed",
        "inputs": lambda: (_r(2, 6), _r(4, 2, seed=1), _r(3, 3, seed=2)),
        "more": [lambda: (_r(3, 6), _r(1, 2, seed=1), _r(2, 3, seed=2)), lambda: (_r(1, 2), _r(2, 1, seed=1), _r(3, 2, seed=2))],
    },
    {
        "name": "circulant_linear",
        "object": "CirculantLinear",
        "kind": "module",
        "order": "first",
        "fits": ["value"],
        "bug": "conjugate forgotten, x gets the gradient of the transposed matrix",
        "make": lambda m: _mod(m(5)),
        "inputs": lambda: (_r(3, 5),),
        "more": [lambda: (_r(5, seed=3),), lambda: (_r(1, 2, 5, seed=3),)],
    },
    {
        "name": "householder_product",
        "object": "HouseholderProduct",
        "kind": "function",
        "order": "first",
        "fits": ["value"],
        "bug": "the norm of the vectors is treated as a constant",
        "inputs": lambda: (_r(3, 4), _r(2, 4, seed=1)),
        "more": [lambda: (_r(2, 3), _r(3, 3, seed=1), True), lambda: (_r(1, 2), _r(1, 2, seed=1))],
    },
]
