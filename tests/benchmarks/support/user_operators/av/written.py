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
    name="sigmoid_attention", object="sigmoid_attention", kind="callable",
    inputs=lambda: (r(2, 2, 3, 4), r(2, 2, 5, 4, seed=1), r(2, 2, 5, 3, seed=2), r(2, seed=3)),
    more=[lambda: (r(1, 3, 4, 2), r(1, 3, 4, 2, seed=1), r(1, 3, 4, 2, seed=2), r(3, seed=3), 0.5)],
    bug="the bias gradient is taken after the scores' gradient was multiplied by scale", fits=["value"], order="first"))
CASES.append(dict(
    name="favor_attention", object="FavorAttention", kind="function",
    inputs=lambda: (r(2, 3, 2, scale=0.6), r(2, 4, 2, seed=1, scale=0.6), r(2, 4, 3, seed=2), r(5, 2, seed=3)),
    more=[lambda: (r(1, 2, 3, scale=0.6), r(1, 2, 3, seed=1, scale=0.6), r(1, 2, 1, seed=2), r(4, 3, seed=3, grad=False))],
    bug="the normaliser's gradient never reaches the keys", fits=["value"], order="first"))
CASES.append(dict(
    name="varlen_qkvpacked", object="VarlenQKVPacked", kind="function",
    inputs=lambda: (r(6, 3, 2, 2), torch.tensor([0, 2, 2, 6]), True, None),
    more=[lambda: (r(5, 3, 1, 3, seed=4), torch.tensor([0, 3, 5]), False, 1.3), lambda: (r(4, 3, 2, 2, seed=5), torch.tensor([0, 4]), True, 0.25)],
    bug="backward rebuilds the scores with the default scale though another was given", fits=["value"], order="first"))
CASES.append(dict(
    name="natten1d_dilated", object="natten1d_dilated", kind="callable",
    inputs=lambda: (r(1, 2, 5, 2), r(1, 2, 5, 2, seed=1), r(1, 2, 5, 2, seed=2), 3),
    more=[lambda: (r(2, 1, 6, 2), r(2, 1, 6, 2, seed=1), r(2, 1, 6, 3, seed=2), 3, 2), lambda: (r(1, 1, 4, 2), r(1, 1, 4, 2, seed=1), r(1, 1, 4, 2, seed=2), 1)],
    bug="the recomputed softmax forgets the border mask", fits=["value"], order="first"))
CASES.append(dict(
    name="merge_attn_states", object="MergeAttnStates", kind="function",
    inputs=lambda: (r(2, 3, 4), r(2, 3, seed=1), r(2, 3, 4, seed=2), r(2, 3, seed=3)),
    more=[lambda: (r(3, 2), t([0.5, float("-inf"), 1.0], grad=False), r(3, 2, seed=2), t([float("-inf"), 0.2, -30.0], grad=False)), lambda: (r(5), t(0.3), r(5, seed=2), t(-0.4))],
    bug="the gradient that comes in for the merged lse is ignored", fits=["value"], order="first"))
CASES.append(dict(
    name="xca_attention", object="XCA", kind="function",
    inputs=lambda: (r(2, 2, 3, 4), r(2, 2, 3, 4, seed=1), r(2, 2, 3, 4, seed=2), t([1.0, 1.0])),
    more=[lambda: (r(1, 2, 2, 5), r(1, 2, 2, 5, seed=1), r(1, 2, 2, 5, seed=2), t([2.5, 0.4]))],
    bug="the temperature's gradient uses the similarities already multiplied by the temperature", fits=["value"], order="first"))
CASES.append(dict(
    name="forgetting_attention", object="ForgettingAttention", kind="function",
    inputs=lambda: (r(1, 2, 4, 3), r(1, 2, 4, 3, seed=1), r(1, 2, 4, 3, seed=2), r(1, 2, 4, seed=3)),
    more=[lambda: (r(2, 1, 3, 2), r(2, 1, 3, 2, seed=1), r(2, 1, 3, 4, seed=2), r(2, 1, 3, seed=3, shift=2.0))],
    bug="the cumulative sum's gradient runs forwards instead of backwards", fits=["value"], order="first"))
CASES.append(dict(
    name="aft_full", object="aft_full", kind="callable",
    inputs=lambda: (r(2, 3, 2), r(2, 3, 2, seed=1), r(2, 3, 2, seed=2), r(3, 3, seed=3)),
    more=[lambda: (r(1, 4, 2), r(1, 4, 2, seed=1), r(1, 4, 2, seed=2), r(4, 4, seed=3), True)],
    bug="backward exponentiates the saved keys in place, which are the caller's", fits=["modified"], order="first"))
CASES.append(dict(
    name="ssmax_attention", object="ScalableSoftmaxAttention", kind="function",
    inputs=lambda: (r(2, 2, 3, 2), r(2, 2, 5, 2, seed=1), r(2, 2, 5, 2, seed=2), t([0.4, 0.9]), torch.tensor([5, 2])),
    more=[lambda: (r(1, 1, 2, 3), r(1, 1, 3, 3, seed=1), r(1, 1, 3, 3, seed=2), t([0.7]), torch.tensor([1]))],
    bug="the learned factor's gradient lacks log n", fits=["value"], order="first"))
CASES.append(dict(
    name="selective_attention", object="SelectiveAttention", kind="function",
    inputs=lambda: (r(2, 2, 5, 2), r(2, 2, 5, 2, seed=1), r(2, 2, 5, 2, seed=2)),
    more=[lambda: (r(1, 1, 4, 3, seed=3), r(1, 1, 4, 3, seed=4), r(1, 1, 4, 3, seed=5))],
    bug="the exclusive cumulative sum is differentiated as an inclusive one", fits=["value"], order="first"))
CASES.append(dict(
    name="gated_attention_unit", object="GatedAttentionUnit", kind="function",
    inputs=lambda: (r(2, 3, 4), r(2, 3, 4, seed=1), r(2, 3, 2, seed=2), r(2, 2, seed=3), r(2, 2, seed=6)),
    more=[lambda: (r(1, 4, 2), r(1, 4, 2, seed=1), r(1, 4, 3, seed=2), r(2, 3, seed=3), r(2, 3, seed=4))],
    bug="the base's gradient is assigned by the key path over the query path", fits=["value"], order="first"))
CASES.append(dict(
    name="block_sparse_attention", object="block_sparse_attention", kind="callable",
    inputs=lambda: (r(2, 1, 6, 2, scale=3.0), r(2, 1, 6, 2, seed=1), r(2, 1, 6, 2, seed=2), torch.tensor([[[1, 0, 0], [1, 1, 0], [1, 0, 1]]]).bool()),
    more=[lambda: (r(1, 2, 4, 3), r(1, 2, 4, 3, seed=1), r(1, 2, 4, 3, seed=2), torch.tensor([[[1, 1], [0, 0]], [[0, 1], [1, 1]]]).bool())],
    bug="the gradients of keys and values are accumulated in bfloat16", fits=["dtype", "value"], order="first"))
CASES.append(dict(
    name="slot_weights", object="SlotWeights", kind="function",
    inputs=lambda: (r(2, 3, 2), r(2, 4, 2, seed=1), r(2, 4, 3, seed=2)),
    more=[lambda: (r(1, 1, 3), r(1, 3, 3, seed=1), r(1, 3, 3, seed=2)), lambda: (r(1, 2, 2), r(1, 5, 2, seed=1), r(1, 5, 1, seed=2))],
    bug="the weighted mean's gradient is centred over slots instead of inputs", fits=["value"], order="first"))
CASES.append(dict(
    name="rope_mixed", object="RopeMixed", kind="function",
    inputs=lambda: (r(2, 2, 3, 4), r(2, 2, 2, seed=1), torch.tensor([[0, 0], [0, 1], [1, 0]])),
    more=[lambda: (r(1, 1, 2, 2), r(1, 1, 2, seed=1), r(2, 2, seed=2))],
    bug="the angles' gradient is taken from the unrotated input", fits=["value"], order="first"))
CASES.append(dict(
    name="kerple_bias", object="kerple_bias", kind="callable",
    inputs=lambda: (t([0.7, 1.4]), t([0.5, 2.0]), 4),
    more=[lambda: (t([0.7, 1.4]), t([0.5, 1.2]), 3, "power")],
    bug="the power kernel's exponent gets 0 * log 0 on the diagonal", fits=["NaN"], order="first"))
CASES.append(dict(
    name="disentangled_bias", object="DisentangledBias", kind="function",
    inputs=lambda: (r(2, 1, 4, 2), r(2, 1, 4, 2, seed=1), r(1, 4, 2, seed=2), r(1, 4, 2, seed=3)),
    more=[lambda: (r(1, 2, 3, 2), r(1, 2, 3, 2, seed=1), r(2, 8, 2, seed=2), r(2, 8, 2, seed=3))],
    bug="the position-to-content part scatters the gradient without transposing it", fits=["value"], order="first"))
CASES.append(dict(
    name="decomposed_rel_pos", object="DecomposedRelPos", kind="function",
    inputs=lambda: (r(2, 2, 4, 6), r(2, 2, 4, 2, seed=1), r(2, 3, 2, seed=2), r(2, 2, 2, seed=3)),
    more=[lambda: (r(1, 6, 4), r(1, 6, 3, seed=1), r(3, 2, 3, seed=2), r(2, 2, 3, seed=3))],
    bug="the incoming gradient is viewed, which fails when it is not contiguous", fits=["layout"], order="first"))
CASES.append(dict(
    name="spatial_gating_unit", object="SpatialGatingUnit", kind="module",
    make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 3, 6),), more=[lambda: (r(1, 3, 4, seed=2),)],
    bug="the norm's gradient is not centred", fits=["value"], order="first"))
CASES.append(dict(
    name="mogrifier", object="mogrifier", kind="callable",
    inputs=lambda: (r(2, 3), r(2, 2, seed=1), [r(3, 2, seed=2), r(2, 3, seed=3), r(3, 2, seed=4)]),
    more=[lambda: (r(1, 2), r(1, 2, seed=1), [r(2, 2, seed=2), r(2, 2, seed=3)])],
    bug="the weights' gradients come back in the order of the backward loop", fits=["value"], order="first"))
CASES.append(dict(
    name="dynamic_tanh", object="DynamicTanh", kind="module",
    make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 4, 3),), more=[lambda: (r(3, seed=1),)],
    bug="the incoming gradient is multiplied in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="partial_rms", object="PartialRMS", kind="function",
    inputs=lambda: (r(2, 3, 4), r(4, seed=1), 1.0, 1e-6),
    more=[lambda: (r(3, 8), r(8, seed=1), 0.25, 1e-6), lambda: (r(5), r(5, seed=1), 0.5, 1e-3)],
    bug="the projection is divided by all features instead of those of the estimate", fits=["value"], order="first"))
CASES.append(dict(
    name="deepnorm", object="DeepNorm", kind="function",
    inputs=lambda: (r(2, 3), r(2, 3, seed=1), r(3, seed=2), r(3, seed=3)),
    more=[lambda: (r(2, 2, 4), r(2, 2, 4, seed=1), r(4, seed=2), r(4, seed=3), 1.8), lambda: (r(3, 3), r(3, 3, seed=1), r(3, seed=2), r(3, seed=3), 0.5, 1e-3)],
    bug="the shared gradient is scaled in place, so the branch gets alpha too", fits=["value"], order="first"))
CASES.append(dict(
    name="switchable_norm", object="SwitchableNorm2d", kind="module",
    make=lambda cls: fill(cls(3), scale=0.8),
    inputs=lambda: (r(2, 3, 2, 2, scale=2.0),), more=[lambda: (r(3, 3, 1, 3, seed=2, shift=1.0),)],
    bug="the variance weights' softmax is differentiated with the mean weights", fits=["value"], order="first"))
CASES.append(dict(
    name="region_norm", object="RegionNorm", kind="function",
    inputs=lambda: (r(2, 2, 6), torch.tensor([[0, 0, 1, 1, 1, 0], [2, 0, 0, 2, 2, 0]]), 3, 1e-3),
    more=[lambda: (r(1, 1, 4), torch.tensor([[0, 1, 1, 1]]), 2, 1e-2)],
    bug="the inverse deviation is saved as a constant, so the second derivative lacks it", fits=["value"], order="second"))
CASES.append(dict(
    name="power_iter_weight", object="normalise_weight", kind="callable",
    inputs=lambda: (r(3, 4), t([0.6, -0.48, 0.64], grad=False), t([0.5, 0.5, -0.5, 0.5], grad=False)),
    more=[lambda: (r(2, 2, seed=4), t([0.8, 0.6]), t([0.6, -0.8]))],
    bug="sigma is not squared in its own gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="complex_rms", object="ComplexRMSNorm", kind="function",
    inputs=lambda: (c(2, 3), c(3, seed=1), 1e-6), more=[lambda: (c(2, 2, 2, seed=3), c(2, seed=1), 0.1)],
    bug="the projection keeps its imaginary part", fits=["value"], order="first"))
CASES.append(dict(
    name="expert_choice", object="ExpertChoice", kind="function",
    inputs=lambda: (r(5, 2), r(5, 3, seed=1), 3), more=[lambda: (r(4, 3), r(4, 2, seed=1), 1), lambda: (r(2, 1), r(2, 2, seed=1), 2)],
    bug="a token taken by several experts gets the gradient of one only", fits=["value"], order="first"))
CASES.append(dict(
    name="importance_cv2", object="importance_cv2", kind="callable",
    inputs=lambda: (u(4, 3),), more=[lambda: (u(2, 3, 4, seed=1), 0.1), lambda: (u(3, 1),)],
    bug="the variance's gradient is that of the biased one", fits=["value"], order="first"))
CASES.append(dict(
    name="capacity_combine", object="CapacityCombine", kind="function",
    inputs=lambda: (r(2, 3, 2), r(4, seed=1), torch.tensor([0, 1, 0, 0]), torch.tensor([0, 0, 1, 2])),
    more=[lambda: (r(2, 2, 3), r(5, seed=1), torch.tensor([0, 0, 0, 0, 1]), torch.tensor([0, 1, 2, 3, 0]))],
    bug="the token just past the capacity is kept in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="smear_linear", object="smear_linear", kind="callable",
    inputs=lambda: (r(2, 3, 2), u(2, 3, seed=1), r(3, 4, 2, seed=2)),
    more=[lambda: (r(2, 3, 2), u(2, 3, seed=1), r(3, 2, 2, seed=2), r(3, 2, seed=3)), lambda: (r(1, 1, 2), u(1, 2, seed=1), r(2, 3, 2, seed=2), r(2, 3, seed=3, grad=False))],
    bug="the gates get nothing through the merged bias", fits=["value"], order="first"))
CASES.append(dict(
    name="product_key_memory", object="ProductKeyMemory", kind="function",
    inputs=lambda: (r(3, 4), r(3, 2, seed=1), r(3, 2, seed=2), r(9, 2, seed=3), 2),
    more=[lambda: (r(2, 2), r(4, 1, seed=1), r(4, 1, seed=2), r(16, 3, seed=3), 3)],
    bug="the second half-keys' gradient goes to the rows of the first", fits=["value"], order="first"))
CASES.append(dict(
    name="noisy_load", object="NoisyLoad", kind="function",
    inputs=lambda: (r(4, 4), u(4, 4, lo=0.5, hi=1.5, seed=1), r(4, 4, seed=2, grad=False), 2),
    more=[lambda: (r(3, 3), u(3, 3, lo=0.5, hi=1.5, seed=1), r(3, 3, seed=2), 1)],
    bug="the noise scale gets nothing through the threshold", fits=["value"], order="first"))
CASES.append(dict(
    name="softcapped_nll", object="softcapped_nll", kind="callable",
    inputs=lambda: (r(5, 3), r(4, 3, seed=1), torch.tensor([0, 3, -100, 1, 3]), 2.0, -100, 2),
    more=[lambda: (r(3, 2), r(5, 2, seed=1), torch.tensor([4, 0, 2])), lambda: (r(2, 2), r(3, 2, seed=1), torch.tensor([-1, -1]), 1.0, -1)],
    bug="the kept gradients are scaled in place, so a second backward finds them scaled", fits=["cache"], order="first"))
CASES.append(dict(
    name="jsd_distill", object="JSDDistill", kind="function",
    inputs=lambda: (r(3, 4), r(3, 4, seed=1), 0.3),
    more=[lambda: (r(2, 3), r(2, 3, seed=1), 0.0), lambda: (r(2, 3), r(2, 3, seed=1), 1.0)],
    bug="the reverse KL branch leaves the softmax's mean out", fits=["value"], order="first"))
CASES.append(dict(
    name="tvd_distill", object="tvd_distill", kind="callable",
    inputs=lambda: (r(3, 4), r(3, 4, seed=1), torch.tensor([True, False, True])),
    more=[lambda: (r(2, 2, 3), r(2, 2, 3, seed=1), None, 2.0)],
    bug="tau squared though each softmax gives back one tau", fits=["value"], order="first"))
CASES.append(dict(
    name="sparse_kd", object="SparseKD", kind="function",
    inputs=lambda: (r(2, 5), torch.tensor([[0, 3], [4, 1]]), t([[-0.9, -1.6], [-1.1, -2.0]], grad=False)),
    more=[lambda: (r(3, 4), torch.tensor([[1], [0], [3]]), t([[-0.3], [-1.0], [-2.0]]))],
    bug="the tail bucket's part of the students' gradient is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="nce_vocab", object="nce_vocab", kind="callable",
    inputs=lambda: (r(3, 2), r(5, 2, seed=1), torch.tensor([0, 2, 2]), torch.tensor([1, 4, 1, 2]), r(5, seed=2, shift=-2.0, scale=0.3, grad=False)),
    more=[lambda: (r(2, 3), r(4, 3, seed=1), torch.tensor([3, 0]), torch.tensor([0, 1]), r(4, seed=2, shift=-1.5, scale=0.2, grad=False), r(4, seed=3)),
          lambda: (r(2, 1), r(3, 1, seed=1), torch.tensor([1, 1]), torch.tensor([1]), r(3, seed=2, shift=-1.0, scale=0.2))],
    bug="the bias gets the noise words' part only, not the targets'", fits=["value"], order="first"))
CASES.append(dict(
    name="taylor_xent", object="TaylorCrossEntropy", kind="function",
    inputs=lambda: (r(3, 4), torch.tensor([0, 3, 1])),
    more=[lambda: (r(3, 3), torch.tensor([2, 2, 1]), "none"), lambda: (r(2, 3), torch.tensor([2, 0]), "sum")],
    bug="the sum is divided by the batch as the mean is", fits=["value"], order="first"))
CASES.append(dict(
    name="vera_linear", object="VeRALinear", kind="function",
    inputs=lambda: (r(2, 3, 4), r(2, 4, seed=1, grad=False), r(3, 4, seed=2, grad=False), r(2, 3, seed=3, grad=False), r(3, seed=4), r(2, seed=5)),
    more=[lambda: (r(2, 2), r(3, 2, seed=1), r(2, 2, seed=2), r(3, 2, seed=3), r(2, seed=4), r(3, seed=5))],
    bug="the rank vector's gradient hangs on whether B, which is frozen, needs one", fits=["none"], order="first"))
CASES.append(dict(
    name="hira_linear", object="hira_linear", kind="callable",
    inputs=lambda: (r(4, 3), r(2, 3, seed=1, grad=False), r(2, 3, seed=2), r(2, 2, seed=3)),
    more=[lambda: (r(2, 2, 3), r(4, 3, seed=1), r(1, 3, seed=2), r(4, 1, seed=3), 0.5)],
    bug="the first factor's gradient lacks the elementwise weight", fits=["value"], order="first"))
CASES.append(dict(
    name="aqlm_linear", object="AQLMLinear", kind="function",
    inputs=lambda: (r(3, 4), ints(3, 2, 2, hi=3), r(2, 3, 2, seed=1), r(3, seed=2)),
    more=[lambda: (r(2, 2, 3), ints(2, 1, 1, hi=4), r(1, 4, 3, seed=1), t([0.5, 0.0]))],
    bug="the scales' gradient divides by the scale, NaN for a pruned row", fits=["NaN"], order="first"))
CASES.append(dict(
    name="monarch_linear", object="Monarch", kind="function",
    inputs=lambda: (r(2, 6), r(2, 2, 3, seed=1), r(2, 3, 2, seed=2)),
    more=[lambda: (r(2, 2, 4), r(2, 3, 2, seed=1), r(3, 1, 2, seed=2)), lambda: (r(4), r(2, 2, 2, seed=1), r(2, 2, 2, seed=2))],
    bug="the middle result is saved as a constant, so the second derivative loses its path", fits=["value"], order="second"))
CASES.append(dict(
    name="switchback_linear", object="SwitchbackLinear", kind="function",
    surrogate=lambda *_: lambda x, w, b: x @ w.T + (0 if b is None else b),
    inputs=lambda: (r(2, 3, 4), r(2, 4, seed=1), r(2, seed=2)),
    more=[lambda: (r(3, 2), r(4, 2, seed=1), None)],
    bug="without a bias backward returns two gradients for three inputs", fits=["number of gradients"], order="first"))
CASES.append(dict(
    name="volume_warp", object="VolumeWarp", kind="function",
    inputs=lambda: (r(1, 2, 2, 3, 2), u(1, 3, 2, 3, 2, lo=-1.3, hi=1.3, seed=1)),
    more=[lambda: (r(2, 1, 1, 2, 3), u(2, 3, 1, 2, 3, lo=-0.9, hi=0.9, seed=1))],
    bug="displacements that left the volume keep a gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="log_polar_sample", object="LogPolarSample", kind="function",
    inputs=lambda: (r(2, 2, 4, 5), u(2, 2, lo=1.2, hi=1.8, seed=1), 2, 5, 1.9),
    more=[lambda: (r(1, 1, 3, 3), t([[0.3, 1.6]]), 3, 3, 2.7)],
    bug="the two coordinates of the centre's gradient are swapped", fits=["value"], order="first"))
CASES.append(dict(
    name="lip_pool", object="lip_pool", kind="callable",
    inputs=lambda: (r(2, 2, 4, 4), r(2, 2, 4, 4, seed=1)), more=[lambda: (r(1, 2, 5, 4), r(1, 2, 5, 4, seed=1), 3, 1), lambda: (r(1, 1, 5, 5), r(1, 1, 5, 5, seed=1), 2, 2)],
    bug="the importance's gradient is not centred by the pooled value", fits=["value"], order="first"))
CASES.append(dict(
    name="mixed_pool", object="MixedPool2d", kind="module",
    make=lambda cls: fill(cls(2)),
    inputs=lambda: (r(2, 2, 4, 5),), more=[lambda: (r(1, 2, 3, 3, seed=1),)],
    bug="the average is divided by the window's side, not by its area", fits=["value"], order="first"))
CASES.append(dict(
    name="pac_conv", object="PACConv", kind="function",
    inputs=lambda: (r(1, 2, 3, 3), r(1, 2, 3, 3, seed=1, scale=0.6), r(2, 2, 3, 3, seed=2), r(2, seed=3)),
    more=[lambda: (r(2, 1, 2, 3), r(2, 1, 2, 3, seed=1), r(1, 1, 3, 3, seed=2), None)],
    bug="the guidance gets its gradient as the centre only, not as a neighbour", fits=["value"], order="first"))
CASES.append(dict(
    name="dw_xcorr", object="DepthwiseXCorr", kind="function",
    inputs=lambda: (r(2, 2, 4, 3), r(2, 2, 2, 2, seed=1)), more=[lambda: (r(1, 3, 3, 4), r(1, 3, 1, 3, seed=1)), lambda: (r(1, 1, 2, 2), r(1, 1, 2, 2, seed=1))],
    bug="backward takes the windows of a non-contiguous search with contiguous strides", fits=["layout"], order="first"))
CASES.append(dict(
    name="partial_conv2d", object="PartialConv2d", kind="function",
    inputs=lambda: (r(2, 2, 4, 3), ints(2, 1, 4, 3, hi=2).double(), r(2, 2, 2, 2, seed=2), r(2, seed=3), 1, 0),
    more=[lambda: (r(1, 1, 4, 4), torch.zeros(1, 1, 4, 4, dtype=torch.float64).index_fill(2, torch.tensor([3]), 1.0), r(1, 1, 3, 3, seed=2), r(1, seed=3), 2, 1)],
    bug="the incoming gradient is scaled in place through a view of it", fits=["modified"], order="first"))
CASES.append(dict(
    name="adder_conv", object="adder_conv", kind="callable",
    inputs=lambda: (r(2, 2, 3, 3), r(1, 2, 2, 2, seed=1)),
    more=[lambda: (r(1, 1, 4, 3), r(3, 1, 3, 3, seed=1), 2, 1)],
    bug="the patches' gradient is assigned by each output channel instead of added", fits=["value"], order="first"))
CASES.append(dict(
    name="rg_lru", object="rg_lru", kind="callable",
    inputs=lambda: (r(2, 4, 2), r(2, 4, 2, seed=1), r(2, 4, 2, seed=2), r(2, seed=3, shift=-2.0)),
    more=[lambda: (r(1, 3, 3), r(1, 3, 3, seed=1), r(1, 3, 3, seed=2), r(3, seed=3, shift=-2.5), r(1, 3, seed=4))],
    bug="the first state, when given, has None for a gradient", fits=["none"], order="first"))
CASES.append(dict(
    name="slstm_scan", object="SLSTMScan", kind="function",
    inputs=lambda: (r(2, 4, 2), r(2, 4, 2, seed=1), r(2, 4, 2, seed=2), r(2, 4, 2, seed=3)),
    more=[lambda: (r(1, 1, 3), r(1, 1, 3, seed=1), r(1, 1, 3, seed=2), r(1, 1, 3, seed=3)), lambda: (r(1, 3, 2), r(1, 3, 2, seed=1, shift=5.0), r(1, 3, 2, seed=2, shift=1.0), r(1, 3, 2, seed=3))],
    bug="the normaliser is carried back without the forget gate", fits=["value"], order="first"))
CASES.append(dict(
    name="longhorn_scan", object="LonghornScan", kind="function",
    inputs=lambda: (r(2, 3, 2), u(2, 3, 2, lo=0.2, hi=0.9, seed=1), r(2, 3, 2, seed=2), r(2, 3, 2, seed=3)),
    more=[lambda: (r(1, 4, 1), u(1, 4, 1, lo=0.2, hi=0.9, seed=1), r(1, 4, 3, seed=2), r(1, 4, 3, seed=3))],
    bug="the keys get nothing through the step size", fits=["value"], order="first"))
CASES.append(dict(
    name="titans_memory", object="TitansMemory", kind="function",
    inputs=lambda: (r(2, 3, 2), r(2, 3, 2, seed=1), r(2, 3, 2, seed=2), u(2, 3, seed=3), u(2, 3, seed=4), u(2, 3, seed=5)),
    more=[lambda: (r(1, 4, 3), r(1, 4, 3, seed=1), r(1, 4, 1, seed=2), u(1, 4, seed=3), u(1, 4, seed=4), u(1, 4, seed=5))],
    bug="the states are kept on the class, those of the last call are used", fits=["cache"], order="first"))
CASES.append(dict(
    name="damped_ema", object="damped_ema", kind="callable",
    inputs=lambda: (r(2, 4, 2), r(2, 3, seed=1), r(2, 3, seed=2), r(2, 3, seed=3), r(2, 3, seed=4)),
    more=[lambda: (r(1, 2, 3), r(3, 1, seed=1), r(3, 1, seed=2), r(3, 1, seed=3), r(3, 1, seed=4))],
    bug="the decay's gradient uses the state after the step", fits=["value"], order="first"))
CASES.append(dict(
    name="segment_entropy", object="SegmentEntropy", kind="function",
    inputs=lambda: (r(6), torch.tensor([0, 2, 0, 2, 2, 3]), 4), more=[lambda: (r(4, seed=2), torch.tensor([1, 1, 0, 0]), 2)],
    bug="the log-probabilities are saved as a constant, so the second derivative lacks them", fits=["value"], order="second"))
CASES.append(dict(
    name="varlen_causal_conv", object="varlen_causal_conv", kind="callable",
    inputs=lambda: (r(7, 2), r(2, 3, seed=1), torch.tensor([0, 3, 4, 7])),
    more=[lambda: (r(5, 1), r(1, 2, seed=1), torch.tensor([0, 2, 2, 5]), r(1, seed=2))],
    bug="backward lets one tap too many cross the boundary between sequences", fits=["value"], order="first"))
CASES.append(dict(
    name="siglog", object="Siglog", kind="function",
    inputs=lambda: (c(2, 3), t(0.8), t(1.5)),
    more=[lambda: (torch.tensor([0.5 - 1j, 0j, 2 + 0.3j], dtype=torch.complex128, requires_grad=True), t(1.0), t(2.0))],
    bug="the direction of z is z / |z|, NaN at zero", fits=["NaN"], order="first"))
CASES.append(dict(
    name="complex_attention", object="HermitianAttention", kind="function",
    inputs=lambda: (c(2, 2, 3), c(2, 3, 3, seed=1), c(2, 3, 2, seed=2), 0.5), more=[lambda: (c(1, 2), c(4, 2, seed=1), c(4, 2, seed=2), 1.0)],
    bug="the queries' gradient uses conjugated keys", fits=["value"], order="first"))
