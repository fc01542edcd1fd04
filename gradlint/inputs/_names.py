"""What a parameter's name suggests: kinds with weights, ranks, domains, values to try.

The tables hold words that authors of operators use, not the names of operators. Words are matched
against the whole lower-case name without outer underscores; ``*`` stands for anything, ``?`` for
an optional underscore.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from gradlint.inputs.domains import QUANTITIES

#: Words → kinds and their weights. A name that matches several rows gets the largest weights.
_KINDS: tuple[tuple[str, dict[str, float]], ...] = (
    (
        "n k m num n_* num_* nb_* *_num order degree depth groups heads levels bits "
        "nbits bit?width *_bits *_width kernel kernel?size stride padding pad dilation "
        "steps niter iters *_iter *_iters iterations chunks chunk?size topk top?k radix "
        "window window_size block?size batch?size group?size hop_size hop_length "
        "*_steps repeats seq?len seqlen length dims ndim world?size rank seed qn qp "
        "*_len dim?size padding_l block_rows chunk_rows shards *_count max?len capacity "
        "stages layers *_layers n?bins bins rounds n?samples scale_bits",
        {"int": 3.0},
    ),
    ("dim axis dim? d *_dim *_axis dimension", {"int": 3.5}),
    (
        "ignore_* *start *_end *_start *_begin *_id offset *start_index *end_index "
        "*start_idx *end_idx",
        {"int": 4.0},
    ),
    (
        "output?size out?size size shape *_shape sizes *_sizes out_shape *_size hw dims",
        {"shape": 2.5, "int": 2.4},
    ),
    ("idx i j", {"int": 3.2, "index": 2.4}),
    (
        "index ind indices *_idx *_idxs *idxs *_ind *_index *_indices inds inv inverse "
        "*_inv *_inverse inv_* perm permutation batch_index segment_ids *_ids ids "
        "tokens assignments expert edge_index nbrs neighbors neighbours *_map",
        {"index": 3.0, "int": 2.0},
    ),
    (
        "crow* col cols colind *ptr cu_* *seqlens *seq_lens faces edges edge_list parent parents "
        "tris triangles tets tetrahedra simplices quads",
        {"index": 3.2},
    ),
    ("row", {"index": 2.4, "int": 2.0}),
    ("relevance relevances grades *_grades", {"index": 3.2, "tensor": 2.4}),
    (
        "target targets label labels y_true classes gt ground_truth tgt *_labels *_targets",
        {"index": 2.6, "tensor": 2.4},
    ),
    (
        "batch offsets offs ptr indptr rowptr lengths *_lengths lens "
        "*_lens counts *_cnt splits *_splits",
        {"index": 2.0, "tensor": 1.2, "int": 1.0},
    ),
    (
        "mask masks *_mask *_masks valid keep active selected is_valid where cond condition mask_*",
        {"mask": 3.0, "tensor": 2.0},
    ),
    (
        "training train inplace in?place hard causal symmetric signed narrow_range "
        "keep?dim keepdims aligned clockwise transposed transpose normalize normalise "
        "normalized average deterministic verbose debug soft reverse descending sorted "
        "largest bidirectional is_* has_* use_* do_* return_* ensure_* with_* enable_* "
        "*_first preserve_* *requires_grad fast exact stable flag size_average reduce "
        "full affine log_target unbiased async_op straight_through stochastic quantize "
        "quantized zero_mean cifg",
        {"bool": 3.0},
    ),
    (
        "eps epsilon *_eps alpha beta gamma delta lam lamb lambda lambd lmbd lmbda l1 "
        "l2 mu nu rho tau theta kappa sigma temp temperature t p prob probability "
        "momentum threshold thresh thr th slope *_slope *slope rate *_rate ratio "
        "*_ratio scale scaling *_scale scale_* scale?factor factor *_factor coeff coef "
        "*_coeff *_coef margin tol rtol atol *_tol strength weight?decay lr vmin vmax "
        "min max *_min *_max min_* max_* low high lower upper lo hi left right width "
        "radius *_radius clip* bound *_bound *threshold *_prob dropout* drop* decay "
        "*_decay damping sharpness height lens constant const reg *_reg penalty clamp* "
        "gain budget v_th* v_reset dt delta_t amin amax a_min a_max c s step *_step "
        "max_norm norm_factor value *_value a b period *_period hardness bandwidth "
        "smoothing smooth weight_scale power exponent",
        {"float": 3.0},
    ),
    (
        "zero?point scale scales alpha beta gamma sigma threshold step?size temperature "
        "theta *_scale lengthscale slope decay mean var std variance *_mean *_var *_std "
        "*_zero_point",
        {"tensor": 1.8},
    ),
    (
        "reduction mode method aggr aggregate reduce reduce_type *_mode activation act "
        "act_type kind type *_type name *_name backend norm layout format estimator "
        "style variant solver *_method rounding surrogate direction",
        {"str": 2.0},
    ),
    (
        "fn func function f act activation *_fn *_func *_function fcn *_fcn *fcn "
        "callback closure op operator act_fn objective proj projection g solver",
        {"callable": 3.0},
    ),
    ("module model layer net network block self mod sde", {"module": 3.0, "callable": 1.0}),
    ("dtype *_dtype", {"dtype": 4.0}),
    ("device *_device", {"device": 4.0}),
    ("generator rng", {"none": 3.0}),
    (
        "kwargs options opts opt config cfg *_kwargs *_args *_options state_dict meta "
        "info *_dict dic *_config *_cfg",
        {"dict": 2.5, "none": 1.0},
    ),
    ("group process_group *_group pg stream handle handles comm out cache", {"none": 2.0}),
    (
        "xs ys zs tensors flat_args outputs parameters params *_list seqs sequences "
        "*_tensors *_params",
        {"tensors": 2.5, "tensor": 1.0},
    ),
    (
        "x y z u v w q a b h s r t x_* *_x *_y xx inputs input *_input in inp data "
        "tensor feature features feat feats *_features *_feats *_feat logits *logits "
        "logit hidden* embedding embeddings embed embeds *_emb *_embedding matrix mat "
        "vec vector rhs lhs weight weights *_weight *_weights weight_* bias *_bias "
        "bias_* kernel kernels filter filters query key value queries keys values state "
        "states *_state *_states grad grads grad_* *_grad g_* dx dy dz dw dout point "
        "points *points* *xyz* coords coord pos positions pred preds prediction "
        "predictions probs probabilities scores score image images img imgs signal "
        "waveform audio spec spectrogram spike spikes spk mem membrane potential "
        "current vol volume field flow grid boxes bboxes roi rois activations samples "
        "sample y_pred output real imag re im logp* log_* posterior prior cov *covar* "
        "chol prec precision *_matrix *_mat transition* emissions potentials theta phi "
        "cos sin rows loss frames video residual skip gate up lut table codebook anchor "
        "anchors positive negative basis source src dest dst ts y0 x0 z0 time times "
        "knots loc locs sparse dense *_in *_out z_* s_* v_* u_* mu_* *_map",
        {"tensor": 2.8},
    ),
    ("p1 p2 e1 e2 m1 m2", {"tensor": 1.5}),
)
#: Upper-case single letters: matrices, except those that customarily count something.
_UPPER_COUNTS = frozenset("NTLDHJRS")

#: What lies along one axis, in increasing order.
_INCREASING = (
    "knots *_knots cutpoint* *_cutpoints cut_points breakpoints *_breakpoints bin_edges "
    "boundaries *_boundaries"
)

_RANKS: tuple[tuple[str, tuple[int, ...]], ...] = (
    (
        "bias *_bias b_* bias_* running_* bn_* ln_w ln_b norm_w norm_b "
        "lengths *_lengths lens offsets offs ptr indptr rowptr segment_ids ts times "
        "time",
        (1, 2),
    ),
    (
        "scale scales alpha beta gamma temperature threshold sigma step?size zero?point tau "
        "lengthscale theta *_scale min_val max_val lower upper slope decay *_threshold "
        "*_min *_max min max s lr eps gain factor loss scalar coeff coef momentum "
        "margin *_factor temp vmin vmax amin amax *_bound bound width radius bits nbits "
        "strength clip* *_zero_point *_bit_width *_bits",
        (0, 1, 2),
    ),
    (
        "log_scale log_sigma log_std log_var log_temp* log_alpha log_beta log_tau log_l "
        "log_length* log_noise log_bandwidth raw_*",
        (0, 1, 2),
    ),
    (
        "target targets label labels classes idx ind index *_index ids *_ids batch perm "
        "permutation *_indices inverse segment_ids",
        (1, 2, 3),
    ),
    ("translation *_translation origin center centre", (1, 2)),
    (_INCREASING, (1, 2)),
    ("image images img imgs feature_map feature_maps frames", (4, 3, 2)),
    ("waveform wave signal audio", (2, 3, 1)),
    ("volume volumes voxel voxels", (5, 4, 3)),
    ("*xyz* points* *_points unknown known pts", (3, 2)),
    ("verts vertices vertex_positions *_verts *_vertices", (2, 3)),
    ("faces tris triangles tets tetrahedra simplices quads", (2,)),
)
#: Matrices that are square by their meaning, and the domain that goes with it.
_SQUARE = (
    ("cov *covar* covariance precision prec *_prec spd psd gram *_gram", "spd"),
    ("rotation rotations *_rotation rot rotmat* *_rotmat orthogonal*", "orthogonal"),
    ("*tril* chol *_chol chol_* cholesky lower_tri*", "tril"),
)
_DOMAINS = (
    ("min lower low *_min min_* *_lower lower_* lo vmin amin", "negative"),
    ("max upper high *_max max_* *_upper upper_* hi vmax amax", "positive"),
    (
        "scale scales *_scale std *_std sigma var *_var variance lengthscale "
        "temperature step?size bandwidth",
        "positive",
    ),
    (" ".join(QUANTITIES), "positive"),
    # Numbers that are the sizes of something.
    (
        "half_* extent extents *_extent *_extents *_size *_sizes *_width *_widths *_radius "
        "*_radii *_height *_heights",
        "positive",
    ),
    ("lam lamb lambd lmbda lambda_", "nonnegative"),
    ("p prob probs probability probabilities *_prob *_probs", "unit"),
    (_INCREASING, "ordered"),
    ("box boxes *_box *_boxes bbox bboxes *_bbox *_bboxes roi rois *_rois proposals", "corners"),
)

_FLOATS: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("eps epsilon *_eps", (1e-3, 0.1)),
    ("*tol*", (1e-6,)),
    ("min low lower left lo vmin amin *_min min_* lower_* *_low minimum", (-0.6, 0.3)),
    (
        "max high upper right hi vmax amax *_max max_* upper_* *_high maximum bound clip*",
        (0.7, 1.3),
    ),
    (
        "p prob probability *_prob dropout* drop* momentum ratio rate q quantile beta decay",
        (0.3, 0.7),
    ),
    ("nu", (1.5, 0.5, 2.5, 0.7)),
    ("alpha gamma power exponent", (0.7, 1.5, 2.5)),
    ("width lens radius *_radius sigma std", (1.3, 0.5)),
    ("threshold thresh thr th v_th* *_threshold margin", (0.4, 1.3)),
    ("tau_* *_tau", (1.7, 2.6)),
)
_INTS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("dim axis *_dim *_axis dimension d", (-1, 1, 0)),
    ("dim0 axis0 dim_0", (0, 1)),
    ("dim1 axis1 dim_1", (1, 0)),
    ("dim2 axis2 dim_2", (2, 0)),
    ("*start* begin", (0,)),
    ("idx index ind *_idx *_index rank *_id offset i j", (1, 0, 2)),
    ("stride dilation groups deform_groups *_groups world?size repeats group?size", (1, 2)),
    ("padding pad *_pad padding_*", (1, 0)),
    ("bits nbits n_bits num?bits bit?width *_bits *_bit_width kbits", (4, 8, 2)),
    ("kernel kernel?size ksize *_kernel window?size pool_size patch_size", (3, 2, 1)),
    ("min?iter min?iters min?iterations min?steps", (1, 2)),
    # A limit that is not meant to be reached: most methods have converged by then.
    ("max?iter max?iters max?iterations maxiter maxiters", (50, 20, 6, 2)),
    ("niter n_iter *_iters iters iterations max_steps steps num_steps", (6, 20, 2)),
    ("qn qmin quant_min *_min min_* low", (-2, 0, 1)),
    ("qp qmax quant_max *_max max_* high", (3, 7)),
    ("ignore_*", (-100,)),
    ("seed", (0,)),
    # What indices point to: of two nodes, all edges between them are alike.
    (
        "num?nodes n_nodes num?segments n_segments num?groups num?graphs n_graphs num?vertices "
        "n_vertices num?atoms n_atoms dim_size num?bins n_bins num?items num?users",
        (3, 4, 2),
    ),
    ("levels nlevels n_levels num?levels", (4, 2)),
    ("*end* stop", (3, 100)),
)
_STRINGS = ("mean", "sum", "none", "max", "add", "relu", "linear", "")


#: A name that says which of two operands it belongs to.
_OPERAND = re.compile(r"([A-Za-z]\w*?[A-Za-z])_?[ab12]")


@lru_cache(maxsize=4096)
def kinds(name: str) -> dict[str, float]:
    """Kinds that ``name`` suggests, with weights; empty when it says nothing."""
    bare = name.strip("_")
    if len(bare) == 1 and bare.isupper():
        return {"int": 2.0, "tensor": 1.5} if bare in _UPPER_COUNTS else {"tensor": 2.5}
    found: dict[str, float] = {}
    for words, weights in _KINDS:
        if matches(words, bare):
            for kind, weight in weights.items():
                found[kind] = max(found.get(kind, 0.0), weight)
    if not found and (operand := _OPERAND.fullmatch(bare)):
        return kinds(operand[1])  # of the first or the second operand: row_a, shape_b, index2
    return found


def rank_weights(name: str) -> dict[int, float]:
    """Ranks that a tensor of this name usually has, likeliest first, each with its weight; a
    capital, such as ``S``, stands for a matrix or a spectrum, not for the scale ``s``."""
    bare = name.strip("_")
    capital = len(bare) == 1 and bare.isupper()
    found: tuple[int, ...] = () if capital else _first(_RANKS, name, ())
    return {rank: 1.5 - 0.4 * position for position, rank in enumerate(found)}


def square_domain(name: str) -> str:
    """The domain of a matrix that is square by its name ("spd", "tril"); empty when it is not."""
    return next((domain for words, domain in _SQUARE if matches(words, name)), "")


def weighs(name: str) -> bool:
    """Whether an argument of this name holds a weight for each class or channel."""
    return matches("weight weights *_weight *_weights", name)


def masks(name: str) -> bool:
    """Whether an argument of this name is a mask, or is added to scores as one."""
    return matches("mask *mask *masks mask_* *bias", name)


_LOGARITHMS = "log_* ln_* logvar logscale logsigma logstd"


def is_logarithm(name: str) -> bool:
    """Whether a tensor of this name is the logarithm of something that is no probability."""
    return matches(_LOGARITHMS, name) and "prob" not in name.lower()


def domain(name: str) -> str:
    """The domain that the name of a floating tensor suggests; the logarithm of what is positive may
    be any number."""
    if is_logarithm(name):
        return "real"
    return next((domain for words, domain in _DOMAINS if matches(words, name)), "real")


def floats(name: str) -> tuple[float, ...]:
    """Values to try for a floating parameter of this name."""
    usual = (0.7, 1.7, 2.5)
    return tuple(dict.fromkeys((*_first(_FLOATS, name, ()), *usual)))


def ints(name: str) -> tuple[int, ...]:
    """Values to try for an integer parameter of this name."""
    return tuple(dict.fromkeys((*_first(_INTS, name, ()), 2, 3, 1, 4, 0)))


def strings(name: str) -> tuple[str, ...]:
    """Values to try for a string parameter of this name."""
    return ("mean", "sum", "none") if "reduc" in name.lower() else _STRINGS


def window(name: str) -> int | None:
    """The usual element of a list of window parameters (strides, paddings …) of this name."""
    if matches("stride dilation *_stride *_dilation", name):
        return 1
    return 0 if matches("padding *_padding pad", name) else None


def stops_gradients(name: str) -> bool:
    """Whether an argument of this name says which rows get no gradient although outputs depend on
    them, as ``padding_idx`` of ``torch.nn.functional.embedding`` does."""
    return any(word in name.lower() for word in ("padding_idx", "pad_id"))


def marks_entries(name: str) -> bool:
    """Whether an argument of this name may be the number of entries that do not count, where it is
    None by default."""
    return matches("pad padding pad_* padding_* *_pad *_padding missing* null* sentinel*", name)


def permutes(name: str) -> bool:
    """Whether the name says that integers are an order of positions, in which each occurs once."""
    return matches("*perm* *order* *ranking* *shuffle*", name)


def of_window(name: str) -> bool:
    """Whether the name says how windows lie on an image."""
    return matches("stride dilation padding *_stride *_dilation", name)


def selects(name: str) -> bool:
    """Whether an integer of this name says how many elements of an axis are selected."""
    return matches("k top?k *_top?k k?best k?nearest *neighbors *neighbours", name)


def is_axis(name: str) -> bool:
    """Whether the name says that the parameter selects an axis."""
    return matches("dim axis dimension *_dim *_axis", name)


def is_tolerance(name: str) -> bool:
    """Whether the name says how exactly something is solved or compared."""
    return matches("tol tolerance tol_* tolerance_* *_tol *_tolerance rtol atol", name)


def is_spacing(name: str) -> bool:
    """Whether a number of this name may be the distance between points of a grid; a tensor of this
    name is a gradient, or a hidden state."""
    return matches("dx dy dz dr h", name)


def tells_triangle(name: str) -> bool:
    """Whether the name is that of a flag that says which triangle of a matrix forward reads."""
    return matches("upper lower is_upper is_lower use_upper use_lower uplo", name)


def bounds_segments(name: str) -> bool:
    """Whether an argument of this name says where segments begin and end, as places of an axis."""
    return matches("offset offsets offs *_offsets ptr indptr rowptr *_ptr cu_*lens cu_*len", name)


def is_limit(name: str) -> bool:
    """Whether the name says that a number bounds values, softly or not."""
    words = "cap *_cap softcap clip *_clip clip_val* *limit *_thresh* thresh* cutoff"
    return matches(f"{words} max_norm max_val* max_abs max_logit", name)


def inverse_of(name: str, others: list[str]) -> str:
    """Which of ``others`` this parameter is the inverse permutation of; empty when none."""
    if "inv" not in name.lower():
        return ""
    plain = [other for other in others if other != name and "inv" not in other.lower()]
    return plain[-1] if plain else ""


@lru_cache(maxsize=128)
def _table(words: str) -> tuple[frozenset[str], tuple[tuple[str, str, str], ...]]:
    """The plain words of a row, and its patterns as (start, middle, end)."""
    plain: set[str] = set()
    patterns: list[tuple[str, str, str]] = []
    for word in words.split():
        for form in (word.replace("?", "_"), word.replace("?", "")):
            if "*" not in form:
                plain.add(form)
            elif form.startswith("*") and form.endswith("*"):
                patterns.append(("", form.strip("*"), ""))
            else:
                start, _, end = form.partition("*")
                patterns.append((start, "", end))
    return frozenset(plain), tuple(patterns)


def matches(words: str, name: str) -> bool:
    """Whether ``name`` is among ``words``, which may hold patterns."""
    lower = name.strip("_").lower()
    plain, patterns = _table(words)
    # `x` stands for `x1` too.
    for form in (lower, lower[:-1].rstrip("_")) if lower[-1:].isdigit() else (lower,):
        if form in plain:
            return True
        for start, middle, end in patterns:
            if form.startswith(start) and form.endswith(end) and middle in form:
                return True
    return False


def _first(
    table: tuple[tuple[str, tuple[Any, ...]], ...], name: str, default: tuple[Any, ...]
) -> tuple[Any, ...]:
    return next((values for words, values in table if matches(words, name)), default)
