"""The whitelist: every function, method, attribute and constant that an expression may use."""

from __future__ import annotations

import math
from typing import Any


def _words(text: str) -> list[str]:
    return text.split()


#: ``torch`` functions whose result is no larger than their tensor arguments broadcast together.
_TORCH = _words("""
abs acos acosh add addcdiv addcmul all allclose amax amin aminmax angle any argmax argmin argsort
asin asinh atan atan2 atanh ceil clamp clip clone complex conj cos cosh count_nonzero
cummax cummin cumprod cumsum deg2rad detach diagonal digamma div dot eq equal erf erfc erfinv exp
exp2 expm1 flatten flip floor floor_divide fmax fmin fmod frac gather ge gt heaviside hypot imag
isclose isfinite isinf isnan is_complex is_floating_point kthvalue le lerp lgamma log log10 log1p
log2 logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit
logsumexp lt masked_fill masked_select max maximum mean median min minimum mode movedim mul
nan_to_num nanmean nansum narrow ne neg norm numel permute polar polygamma pow prod
rad2deg real reciprocal relu remainder renorm reshape roll rot90 round rsqrt rsub scatter
scatter_add select selu sgn sigmoid sign sin sinc sinh softmax sort sqrt square squeeze std
std_mean sub sum swapaxes t take take_along_dim tan tanh topk trace transpose tril triu
true_divide trunc unbind unflatten unsqueeze var var_mean vdot where xlogy log_softmax celu
index_add index_fill gcd searchsorted bucketize i0 nanmedian broadcast_to chunk split
""")

#: ``torch.nn.functional``, bounded in the same way.
_FUNCTIONAL = _words("""
elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 silu
softmin softplus softshrink softsign tanhshrink threshold normalize layer_norm rms_norm group_norm
batch_norm instance_norm mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
binary_cross_entropy_with_logits cross_entropy nll_loss kl_div cosine_similarity pairwise_distance
""")

#: ``torch.linalg``, bounded in the same way.
_LINALG = _words("""
cholesky det inv slogdet vector_norm matrix_norm eigvalsh svdvals matrix_exp
""")

#: ``torch.special``, bounded in the same way.
_SPECIAL = ["entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri", "xlog1py"]

#: Functions whose result may be larger than their arguments: its size is checked before they run.
_GROWING_TORCH = _words("""
addbmm addmm addmv addr baddbmm block_diag bmm cat
concat conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
cross cdist diag diag_embed diagflat einsum expand_copy hstack index_select inner kron linear
matmul meshgrid mm mv mvlgamma outer quantile repeat_interleave stack tensordot tile vstack
view_as_complex view_as_real avg_pool1d max_pool1d
""")
_GROWING_LINALG = ["solve", "solve_triangular"]
_GROWING_FUNCTIONAL = _words("""
adaptive_avg_pool1d adaptive_avg_pool2d avg_pool2d avg_pool3d embedding fold interpolate
max_pool2d max_pool3d one_hot pad pixel_shuffle pixel_unshuffle unfold bilinear
scaled_dot_product_attention
""")

#: Functions that make tensors from sizes; see ``_factories``.
FACTORIES = frozenset(
    _words("""
    arange bernoulli eye full full_like linspace logspace ones ones_like rand rand_like
    randint randn randn_like randperm tensor tril_indices triu_indices zeros
    zeros_like
""")
)

#: Plain Python, on numbers and sequences; see ``_builtins``.
BUILTINS = frozenset(["bool", "float", "int", "len", "list", "range", "tuple"])

#: Functions that plain numbers may be given to, where torch wants tensors.
MATH: dict[str, Any] = {
    name: getattr(math, name)
    for name in _words("""
    acos acosh asin asinh atan atan2 atanh ceil cos cosh erf erfc exp expm1 floor hypot isfinite
    isinf isnan lgamma log log10 log1p log2 sin sinh sqrt tan tanh trunc
""")
} | {"abs": abs, "round": round, "min": min, "max": max, "sum": sum, "square": lambda x: x * x}

#: Functions of two tensors that may be given a plain number for one of them.
PAIRS = frozenset(
    _words("""
    maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2 heaviside complex polar gcd
""")
)

#: name → where it is found and whether its result must be predicted.
SAME: dict[str, str] = {
    **dict.fromkeys(_SPECIAL, "torch.special"),
    **dict.fromkeys(_LINALG, "torch.linalg"),
    **dict.fromkeys(_FUNCTIONAL, "torch.nn.functional"),
    **dict.fromkeys(_TORCH, "torch"),
}
GROWING: dict[str, str] = {
    **dict.fromkeys(_GROWING_LINALG, "torch.linalg"),
    **dict.fromkeys(_GROWING_FUNCTIONAL, "torch.nn.functional"),
    **dict.fromkeys(_GROWING_TORCH, "torch"),
    "linear": "torch.nn.functional",
}
#: Names that torch spells differently.
ALIASES = {"stop_gradient": "detach", "inverse": "inv", "ln": "log", "concatenate": "concat"}

FUNCTIONS = frozenset(SAME) | frozenset(GROWING) | FACTORIES | BUILTINS | frozenset(ALIASES)

#: Names before a dot that only say where a function lives.
PREFIXES = frozenset(
    _words("""
F linalg math nn nn.functional special torch torch.linalg torch.nn torch.nn.functional torch.special
""")
)

#: Attributes of tensors (``values`` and ``indices`` are those of ``max(x, dim)`` and the like).
ATTRIBUTES = frozenset(
    ["H", "T", "dtype", "imag", "indices", "mH", "mT", "ndim", "real", "shape", "values"]
)

#: Functions that are not methods of tensors.
_FUNCTIONS_ONLY = frozenset(
    _words("""
    bucketize celu complex imag polar real rot90 rsub searchsorted selu std_mean var_mean where
""")
)
_METHODS_SAME = (set(_TORCH) - _FUNCTIONS_ONLY) | set(
    _words("""
    bfloat16 bool contiguous det dim double expand expand_as float half int item log_softmax long
    nelement resolve_conj size square sum_to_size to type_as view view_as reshape_as to_dense
    to_sparse to_sparse_csc to_sparse_csr coalesce unfold
""")
)
_METHODS_GROWING = set(
    _words("""
    addmm addmv baddbmm bmm diag diag_embed diagflat index_select inner
    kron matmul mm mv mvlgamma new_full new_ones new_zeros outer quantile repeat
    repeat_interleave tile
""")
)
#: Methods of tensors → whether the result must be predicted.
METHODS: dict[str, bool] = {
    **dict.fromkeys(sorted(_METHODS_SAME), False),
    **dict.fromkeys(sorted(_METHODS_GROWING), True),
}

#: Results that always share memory with an argument and so cost nothing. (``contiguous``,
#: ``reshape`` and the like copy a tensor that was expanded.)
VIEWS = frozenset(
    _words("""
    H T broadcast_to chunk detach diagonal expand expand_as imag mH mT movedim narrow permute real
    select split squeeze stop_gradient swapaxes t transpose unbind unfold unsqueeze view view_as
""")
)

#: Names of dtypes; ``torch.float32`` and the string "float32" mean the same.
DTYPES = frozenset(
    _words("""
    bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 uint8
""")
)

#: Plain values.
CONSTANTS: dict[str, Any] = {"e": math.e, "inf": math.inf, "nan": math.nan, "pi": math.pi}

#: Keyword arguments of functions. ``out``, ``generator``, ``device`` and the like are not here.
KEYWORDS = frozenset(
    _words("""
    align_corners alpha approximate as_tuple attn_mask beta bias ceil_mode chunks correction
    count_include_pad delta descending diagonal dilation dim dim0 dim1 dim2 dims dtype end
    eps equal_nan exponent fill_value groups high ignore_index index indices indexing input
    interpolation is_causal k keepdim kernel_size label_smoothing lambd largest left log_target
    low lower_bound margin mask max mean min mode momentum n nan negative_slope neginf
    normalized_shape num_classes num_groups offset ord other output_padding p pad
    padding posinf pos_weight q reduce reduction repeats requires_grad return_inverse right
    rounding_mode running_mean running_var scale scale_factor shape shifts side size sizes sorted
    source src stable start std step steps stride target tensor1 tensor2 threshold training
    transpose unbiased upper use_input_stats value var weight x1 x2 zero_infinity
""")
)

#: Functions that torch writes in Python → the arguments that an expression may give them, in the
#: order of torch's signature, with ``-`` for those that it may not: ``inplace``, ``out`` and
#: ``max_norm`` write to what they are given. (Functions written in C++ take arguments that they
#: write to by name only, and those names are not among ``KEYWORDS``.)
PARAMETERS: dict[str, tuple[str, ...]] = {
    name: tuple(rest)
    for name, *rest in (
        line.split()
        for line in """
        adaptive_avg_pool2d input output_size
        batch_norm input running_mean running_var weight bias training momentum eps
        binary_cross_entropy input target weight - - reduction
        binary_cross_entropy_with_logits input target weight - - reduction pos_weight
        cdist x1 x2 p
        cross_entropy input target weight - ignore_index - reduction label_smoothing
        elu input alpha
        embedding input weight padding_idx
        fold input output_size kernel_size dilation padding stride
        glu input dim
        group_norm input num_groups weight bias eps
        hardsigmoid input
        hardswish input
        hardtanh input min_val max_val
        huber_loss input target reduction delta weight
        instance_norm input running_mean running_var weight bias use_input_stats momentum eps
        interpolate input size scale_factor mode align_corners
        kl_div input target - - reduction log_target
        l1_loss input target - - reduction weight
        layer_norm input normalized_shape weight bias eps
        leaky_relu input negative_slope
        max_pool2d input kernel_size stride padding dilation ceil_mode
        max_pool3d input kernel_size stride padding dilation ceil_mode
        mish input
        mse_loss input target - - reduction weight
        nll_loss input target weight - ignore_index - reduction
        norm input p dim keepdim - dtype
        normalize input p dim eps
        pad input pad mode value
        relu6 input
        rms_norm input normalized_shape weight eps
        silu input
        smooth_l1_loss input target - - reduction beta
        softmin input dim - dtype
        softsign input
        split tensor split_size_or_sections dim
        tanhshrink input
        tensordot a b dims
        threshold input threshold value
        unfold input kernel_size dilation padding stride
        """.strip().splitlines()
    )
}
