"""What a parameter's name says about it: kinds with weights, ranks, values to try.

The tables hold words that authors of operators use, not the names of operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Pattern (matched against the whole lower-case name) → kinds and their weights.
_KINDS: tuple[tuple[str, dict[str, float]], ...] = (
    (
        r"(num|n|nb|max|min|total|len|count)_?(bins?|classes|heads?|groups?|iters?|steps?|points?|samples?|neighbou?rs?|levels?|bits?|chunks?|bwd_passes|num|out|inputs?|params?|features?|channels?|nodes?|segments?|splits?)",
        {"int": 4},
    ),
    (
        r"(n|k|m|num|n_.*|num_.*|nb_.*|order|degree|depth|groups?|heads?|levels?|n?bits?|bit_?width|num_bits|.*_bits|kernel|kernel_?size|stride|padding|pad|dilation|steps?|niter|n_iter|max_iter|.*_iters?|iterations|chunks?|topk|top_k|max_num|radix|window|window_size|block_?size|batch_?size|group_?size|hop_?(length|size)|.*_steps|.*_width_bits|repeats?|times_?n|seq_?len|length|dims?|ndim|world_?size|rank|seed|step|q[np]|.*_len|.*_dim_size|dim_size|padding_l|block_rows|chunk_rows|shards|seqlen)",
        {"int": 3},
    ),
    (r"(dim|axis|dim_?\d|axis_?\d|d|.*_dim|.*_axis|dimension)", {"int": 3.5}),
    (
        r"(output_?size|out_?size|size|shape|.*_shape|sizes|.*_sizes|new_shape|out_shape|.*_size|hw|dims|padding|pads)",
        {"shape": 2.5, "int": 2.4},
    ),
    (r"(idx|i|j|pos)", {"int": 3.2, "index": 2.4}),
    (
        r"(index|ind|indices|.*_idxs?|.*_ind|.*_index|.*_indices|inds?|inv|inverse|ind_inv|.*_inverse|perm|permutation|batch_index|segment_ids?|.*_ids?|ids|tokens?|assignments?|edge_index|.*_coords?_idx|gather_?map|order_idx|nbrs?|neighbou?rs?|knn_idx|permuted_indices)",
        {"index": 3, "int": 2},
    ),
    (r"(target|targets|labels?|y_true|classes|gt|ground_truth|tgt)", {"index": 2.6, "tensor": 2.4}),
    (
        r"(batch|offsets?|offs|ptr|indptr|rowptr|.*_start_index|lengths|.*_lengths|lens|.*_lens|counts?|.*_cnt|splits?)",
        {"index": 2, "tensor": 1.2, "int": 1},
    ),
    (
        r"(mask|masks|.*_mask|.*_masks|valid|keep|active|selected|is_valid|where|cond|condition|mask_.*)",
        {"mask": 3, "tensor": 2},
    ),
    (
        r"(training|train|inplace|in_place|hard|causal|symmetric|signed|narrow_range|keep_?dim|keepdims|aligned|clockwise|transposed?|normali[sz]ed?|average|deterministic|verbose|debug|soft|reverse|descending|sorted|largest|bidirectional|is_.*|has_.*|use_.*|do_.*|return_.*|ensure_.*|with_.*|enable_.*|.*_first|preserve_.*|requires_grad|.*_requires_grad|fast|exact|stable|flag|size_average|reduce|full|affine|log_target|unbiased|half|do_.*|batch_first|layout_.*|inverse_?transform|inv_?only|cache.*|async_op|straight_through|stochastic|quantized?)",
        {"bool": 3},
    ),
    (
        r"(eps|epsilon|alpha|beta|gamma|delta|lam|lamb|lambda_?|lambd|lmbda?|l1|l2|mu|nu|rho|tau|theta|kappa|sigma|temp|temperature|t_?emp|p|prob|probability|momentum|threshold|thresh|thr|th|slope|.*_slope|.*slope|rate|.*_rate|ratio|scale|scaling|.*_scale|scale_.*|scale_?factor|factor|.*_factor|coeffs?|coef|margin|tol|[ar]tol|.*_tol|strength|.*_weight_decay|weight_decay|lr|vmin|vmax|min|max|.*_min|.*_max|min_.*|max_.*|low|high|lower|upper|lo|hi|left|right|width|radius|.*_radius|clip.*|bound|.*_threshold|.*_prob|dropout.*|drop.*|decay|damping|sharpness|height|lens|constant|const|grad_scale|reg|.*_reg|penalty|clamp.*|gain|budget|v_th.*|v_reset|dt|delta_t|a_?min|a_?max|c|s|step|.*_step|max_norm|norm_factor|rate_.*|slopes?|.*_value|value)",
        {"float": 3},
    ),
    (
        r"(zero_?point|scale|scales|alpha|beta|gamma|sigma|threshold|step_?size|temperature|theta|.*_scale|lengthscale|slope|decay|mean|var|std|variance|.*_mean|.*_var|.*_std)",
        {"tensor": 1.8},
    ),
    (
        r"(reduction|mode|method|aggr|aggregate|reduce|reduce_type|.*_mode|activation|act|act_type|kind|type|.*_type|name|.*_name|backend|padding_mode|pool_mode|norm|order_by|layout|format|estimator|style|variant|solver|.*_method|rounding_mode|surrogate)",
        {"str": 2},
    ),
    (
        r"(fn|func|function|f|act|activation|.*_fn|.*_func|.*_function|fcn|.*_fcn|forward_func|callback|closure|run_function|op|operator|act_fn|kernel_fn|objective|loss_fn|g|proj|projection)",
        {"callable": 3},
    ),
    (r"(module|model|layer|net|network|block|self|mod)", {"module": 3, "callable": 1}),
    (r"(dtype|.*_dtype|out_type)", {"dtype": 4}),
    (r"(device|.*_device)", {"device": 4}),
    (r"(generator|rng)", {"none": 3}),
    (
        r"(kwargs|options|opts?|config|cfg|params_dict|.*_kwargs|.*_args|.*_options|state_dict|meta|info|cache|.*_dict|dic|ctx_dict)",
        {"dict": 2.5, "none": 1},
    ),
    (r"(group|process_group|.*_group|pg|stream|handle|handles|state|comm|out)", {"none": 2}),
    (
        r"(xs|ys|zs|tensors|inputs_list|features_list|flat_args|weights_list|outputs|parameters|params|.*_list|seqs|sequences|tensor_list)",
        {"tensors": 2.5, "tensor": 1},
    ),
    (
        r"(x|y|z|u|v|w|q|a|b|h|s|r|t|i|j|x\d|y\d|z\d|a\d|b\d|w\d|u\d|v\d|h\d|.*_x|x_.*|xx)",
        {"tensor": 2.5},
    ),
    (
        r"(inputs?|input_|_input|input\d|inp|inp\d?|in_|data|tensor|tensors?_?\d?|features?|feats?|.*_features?|.*_feats?|logits?|.*logits|hidden.*|embeddings?|embeds?|matrix|mat|mat_?[ab\d]|mat[ab\d]|vec|vector|rhs|lhs|weights?|.*_weights?|weight_.*|bias|.*_bias|bias_.*|bias\d|kernel|kernels|filters?|query|key|value|queries|keys|values|.*_states?|states?|grads?|grad_.*|.*_grad|g_.*|d[xyzow]|dout|points?|.*points.*|xyz.*|.*xyz|coords?|pos|positions?|preds?|predictions?|prediction|probs|probabilities|scores?|images?|img|imgs|signal|waveform|audio|spectrogram|spec|spikes?|spk|mem|membrane|potential|current|vol|volume|depth_?map|field|flow|grid|boxes|bboxes|rois?|activations?|samples?|y_pred|output|out|real|imag|re|im|logp.*|log_.*|posterior|prior|cov|covar.*|.*_covar|chol|prec|precision_matrix|sigma_mat|transition.*|emissions?|potentials?|theta|phi|cos|sin|rows|loss|frames?|video|residual|skip|gate|up|lut|table|codebook|anchors?|positive|negative|basis|points_.*|.*_emb|.*_embedding|src|source|dst|dest|e1|e2|p1|p2|ts|y0|x0|z0|times|time|knots|center_features|sampling_locations|spatial_shapes)",
        {"tensor": 2.8},
    ),
    (r"[abxyzwuvqkm]{1,2}\d?", {"tensor": 1.5}),
)
#: Upper-case single letters: matrices, except those that customarily count something.
_UPPER_COUNTS = frozenset("NTLDHJRS")

_RANKS: tuple[tuple[str, tuple[int, ...]], ...] = (
    (
        r"(bias|.*_bias|b_\w+|bias_.*|running_.*|bn_.*|gamma|beta|ln_[wb]|norm_[wb]|lengths|.*_lengths|lens|offsets?|offs|ptr|indptr|rowptr|segment_ids?|y0_len|ts|times?|t)",
        (1, 2),
    ),
    (
        r"(scale|scales|alpha|temperature|threshold|sigma|step_?size|zero_?point|tau|lengthscale|theta|.*_scale|min_val|max_val|lower|upper|slope|decay|.*_threshold|.*_min|.*_max|s|lr|eps|gain|factor|loss|scalar|coeff?|momentum|margin|.*_factor|temp|gamma_?|beta_?|vmin|vmax|a_?min|a_?max|lower_?bound|upper_?bound|bound|.*_bound|width|radius|n?bits?|strength|clip.*)",
        (0, 1, 2),
    ),
    (
        r"(target|targets|labels?|classes|idx|ind|index|.*_index|ids|.*_ids?|batch|perm|permutation|permuted_indices|inverse|segment_ids?|lens)",
        (1, 2, 3),
    ),
    (r"(images?|img|imgs|feature_?maps?|features?_?map|frames?|image\d|img\d|nchw)", (4, 3, 2)),
    (r"(wave(form)?|signal|audio)", (2, 3, 1)),
    (r"(cov|covar.*|chol|matrix|mat|.*_covar|prec|sigma_mat|cost|cost_matrix|c|d|m|a)", (2, 3, 1)),
    (r"(vol|volume|voxels?)", (5, 4, 3)),
    (r"(xyz.*|points?.*|.*_xyz|unknown|known|pts)", (3, 2)),
    (r"(q|k|v|query|key|value|queries|keys|values)", (3, 4, 2)),
)

_FLOATS: tuple[tuple[str, tuple[float, ...]], ...] = (
    (r"(eps|epsilon|.*_eps)", (1e-3, 0.1)),
    (r".*tol.*", (1e-6,)),
    (
        r"(min|low|lower|left|lo|vmin|a_?min|.*_min|min_.*|lower_.*|.*_low|grad_min|minimum)",
        (-0.6, 0.3),
    ),
    (
        r"(max|high|upper|right|hi|vmax|a_?max|.*_max|max_.*|upper_.*|.*_high|grad_max|maximum|bound|clip.*)",
        (0.7, 1.3),
    ),
    (
        r"(p|prob|probability|.*_prob|dropout.*|drop.*|momentum|ratio|rate|q|quantile|beta\d?|decay)",
        (0.3, 0.7),
    ),
    (r"(nu)", (1.5, 0.7)),
    (r"(alpha|gamma|power|exponent)", (0.7, 1.5, 2.5)),
    (r"(width|lens|radius|.*_radius|sigma|std)", (1.3, 0.5)),
    (r"(threshold|thresh|thr|th|v_th.*|.*_threshold|margin)", (0.4, 1.3)),
    (
        r"(lambda?_?|lambd|lmbda?|lam|scale|factor|coeff?|grad_scale|strength|.*_scale|.*_factor)",
        (0.7, 1.7),
    ),
)
_INTS: tuple[tuple[str, tuple[int, ...]], ...] = (
    (r"(dim|axis|.*_dim|.*_axis|dimension|d)", (-1, 1, 0)),
    (r"(dim0|axis0|dim_?1|axis_?1)", (0, 1)),
    (r"(dim1|axis1|dim_?2|axis_?2)", (1, 0)),
    (r"(idx|index|ind|.*_idx|.*_index|rank|.*_id|offset)", (1, 0, 2)),
    (r"(stride|dilation|groups?|deform_groups|.*_groups|world_size|repeats?|group_size)", (1, 2)),
    (r"(padding|pad|.*_pad|padding_\w)", (1, 0)),
    (r"(bits?|n_?bits?|num_?bits|bit_?width|.*_bits?|.*_bit_?width|k_?bits?)", (4, 8, 2)),
    (
        r"(kernel|kernel_?size|k_?size|.*_kernel|window_?size|pool_size|block_?size|patch_size)",
        (3, 2, 1),
    ),
    (r"(q_?n|qmin|quant_min|n_levels_?neg|.*_min|min_.*|low)", (-2, 0, 1)),
    (r"(q_?p|qmax|quant_max|.*_max|max_.*|high)", (3, 7)),
    (r"(n_?iters?|max_?iters?|.*_iters?|iterations|max_steps|steps|num_steps|t)", (6, 20, 2)),
    (r"(ignore_index)", (-100,)),
    (r"(seed|offset)", (0,)),
    (r"(levels?|n_?levels?|num_?levels)", (4, 2)),
    (r"(vocab_start_index|.*_start(_index)?|start|begin)", (0,)),
    (r"(vocab_end_index|.*_end(_index)?|end|stop)", (3, 100)),
)
_STRINGS = ("mean", "sum", "none", "max", "add", "relu", "linear", "")


@lru_cache(maxsize=4096)
def kinds(name: str) -> dict[str, float]:
    """Kinds that ``name`` suggests, with weights; empty when it says nothing."""
    bare = name.strip("_")
    if len(bare) == 1 and bare.isupper():
        return {"int": 2.0, "tensor": 1.5} if bare in _UPPER_COUNTS else {"tensor": 2.5}
    found: dict[str, float] = {}
    for pattern, weights in _KINDS:
        if re.fullmatch(pattern, bare.lower()):
            for kind, weight in weights.items():
                found[kind] = max(found.get(kind, 0.0), weight)
    return found


def ranks(name: str) -> tuple[int, ...]:
    """Ranks that a tensor of this name usually has, likeliest first."""
    bare = name.strip("_").lower()
    for pattern, found in _RANKS:
        if re.fullmatch(pattern, bare):
            return found
    return ()


def floats(name: str) -> tuple[float, ...]:
    """Values to try for a floating parameter of this name."""
    return _first(_FLOATS, name, (0.7, 1.7, 2.5))


def ints(name: str) -> tuple[int, ...]:
    """Values to try for an integer parameter of this name."""
    return _first(_INTS, name, (2, 3, 1, 4, 0))


def strings(name: str) -> tuple[str, ...]:
    """Values to try for a string parameter of this name."""
    return ("mean", "sum", "none") if "reduc" in name.lower() else _STRINGS


def is_axis(name: str) -> bool:
    """Whether the name says that the parameter selects an axis."""
    return re.fullmatch(r"_?(dim|axis|dimension|.*_dim|.*_axis)", name.lower()) is not None


def inverse_of(name: str, others: list[str]) -> str:
    """Which of ``others`` this parameter is the inverse permutation of; empty when none."""
    if not re.search(r"inv", name.lower()):
        return ""
    plain = [other for other in others if other != name and "inv" not in other.lower()]
    return plain[-1] if plain else ""


def callables(name: str) -> list[Callable[..., Any]]:
    """Stand-ins for a function argument."""
    if re.search(r"dist|metric|cdist|covar|gram|kernel", name.lower()):
        return [pairwise_distance, stand_in]
    return [stand_in, pairwise_distance]


def stand_in(*args: Any, **kwargs: Any) -> torch.Tensor:
    """``tanh`` of the sum of the tensors that broadcast to the largest one."""
    import torch

    found = [item for item in (*args, *kwargs.values()) if isinstance(item, torch.Tensor)]
    found = [item for item in found if item.is_floating_point() or item.is_complex()]
    if not found:
        raise TypeError("a function argument was called without a tensor")
    largest = max(found, key=lambda item: (item.numel(), item.dim()))
    total = largest
    for item in found:
        if item is not largest:
            try:
                joined = total + item
            except RuntimeError:
                continue
            if joined.shape == largest.shape:
                total = joined
    return torch.tanh(total)


def pairwise_distance(x: torch.Tensor, y: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Distances between the rows of ``x`` and of ``y``, 0.05 added under the root."""
    difference = x.unsqueeze(-2) - y.unsqueeze(-3)
    return (difference.square().sum(-1) + 0.05).sqrt()


def _first(
    table: tuple[tuple[str, tuple[Any, ...]], ...], name: str, default: tuple[Any, ...]
) -> tuple[Any, ...]:
    bare = name.strip("_").lower()
    for pattern, values in table:
        if re.fullmatch(pattern, bare):
            return values
    return default
