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
    name="biquad",
    object="Biquad", kind="function",
    inputs=lambda: (r(2, 9), r(3, seed=1), t([-0.6, 0.3])),
    more=[lambda: (r(1, 2, seed=4), r(3, seed=5), t([0.5, 0.2]))],
    bug="gradient of the feedback taps correlates with the output delayed by 0 and 1 instead of 1 and 2",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="mulaw",
    object="MuLaw", kind="function",
    inputs=lambda: (u(3, 7, lo=-1, hi=1), t(8.0)),
    more=[lambda: (u(5, lo=-1, hi=1, seed=2), t(255.0))],
    bug="gradient of mu forgets that the normaliser log(1 + mu) depends on mu",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="flatness",
    object="spectral_flatness", kind="callable",
    inputs=lambda: (u(3, 6, lo=0.1, hi=2),),
    more=[lambda: (u(4, 3, 2, lo=0.1, hi=2, seed=1), 1, 1e-3)],
    bug="derivative of the arithmetic mean lacks its 1/n",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="quat_rotate",
    object="QuatRotate", kind="function",
    inputs=lambda: (r(4, 4), r(4, 3, seed=1)),
    more=[],
    bug="no projection orthogonal to the unit quaternion in the derivative of the normalisation",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="segment_std",
    object="SegmentStd", kind="function",
    inputs=lambda: (r(9, 3), torch.tensor([0, 2, 2, 0, 1, 2, 0, 1, 2]), 4, True),
    more=[lambda: (r(6, 2, seed=3), torch.tensor([1, 1, 0, 1, 0, 0]), 2)],
    bug="unbiased=True is ignored in backward",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="edge_mean",
    object="GatedEdgeMean", kind="function",
    inputs=lambda: (r(5, 3), r(8, seed=1), torch.tensor([0, 1, 1, 2, 4, 0, 3, 0]), torch.tensor([1, 0, 2, 2, 1, 4, 0, 2])),
    more=[],
    bug="a node that is the source of several edges keeps only the last edge's gradient",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="softdtw",
    object="SoftDTW", kind="function",
    inputs=lambda: (u(4, 5, lo=0.1, hi=2), 0.7),
    more=[lambda: (u(2, 3, lo=0.1, hi=2, seed=1),)],
    bug="the table kept for backward is the cached workspace, which the next call of that size overwrites",
    fits=["state"], order="first",
))
CASES.append(dict(
    name="crf_logz",
    object="CRFLogPartition", kind="function",
    inputs=lambda: (r(3, 5, 3), r(3, 3, seed=1), torch.tensor([5, 2, 4])),
    more=[lambda: (r(2, 1, 4, seed=2), r(4, 4, seed=3), torch.tensor([1, 1])), lambda: (r(2, 3, 2, seed=2), r(2, 2, seed=3), torch.tensor([3, 3]))],
    bug="padded steps are counted in the gradient of the transitions",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="trimmed",
    object="trimmed_mean", kind="callable",
    inputs=lambda: (r(3, 6), 0),
    more=[lambda: (r(2, 7, seed=1), 2), lambda: (r(5, seed=2),)],
    bug="with k=0 the slice k:-k is empty and the gradient zero",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="gem",
    object="GeMPool", kind="module", make=lambda cls: fill(cls(2.0, 0.05), keep=("p",)),
    inputs=lambda: (r(2, 2, 3, 3),),
    more=[],
    bug="values clamped at eps still get a gradient",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="tversky",
    object="FocalTversky", kind="function",
    inputs=lambda: (u(3, 2, 5, lo=0.05, hi=0.95), (u(3, 2, 5, seed=1) > 0.5).double(), 0.3, 0.7, 1.5, 1.0),
    more=[lambda: (u(1, 6, lo=0.05, hi=0.95, seed=3), (u(1, 6, seed=4) > 0.5).double(), 0.5, 0.5, 1.0, 0.1)],
    bug="alpha and beta change places in backward",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="diou",
    object="DIoULoss", kind="function",
    inputs=lambda: (t([[0.0, 0.1, 2.0, 1.9], [3.0, 0.2, 4.1, 1.2], [0.5, 0.4, 0.9, 0.8]]), t([[0.5, 0.4, 2.4, 2.5], [1.0, 0.0, 2.2, 1.0], [0.0, 0.0, 1.5, 1.2]], grad=False)),
    more=[],
    bug="boxes apart along one axis still get a gradient of the intersection along that axis",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lovasz",
    object="lovasz_hinge", kind="callable",
    inputs=lambda: (r(3, 5), ints(3, 5, hi=2, seed=1)),
    more=[lambda: (r(12, seed=3), torch.tensor([0, 1, 255, 1, 0, 0, 255, 1, 1, 0, 1, 0]), 255)],
    bug="sorted weights are put back with the permutation instead of its inverse",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="negbin",
    object="NegBinNLL", kind="function",
    inputs=lambda: (u(4, 3, lo=0.5, hi=4), r(3, seed=1), ints(4, 3, hi=6).double()),
    more=[],
    bug="no chain factor theta for the gradient of log_theta",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="vonmises",
    object="von_mises_nll", kind="callable",
    inputs=lambda: (r(4, 3), r(3, seed=1), u(4, 1, lo=0.5, hi=5, seed=2)),
    more=[],
    bug="the Bessel ratio is saved from forward, so the derivative of the gradient with respect to kappa lacks it",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="ordinal",
    object="OrdinalHead", kind="module", make=lambda cls: fill(cls(4), keep=("cuts",)),
    inputs=lambda: (r(7), torch.tensor([0, 3, 1, 1, 2, 0, 3])),
    more=[],
    bug="gradients of the cut points are shifted by one",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="poincare",
    object="PoincareDistance", kind="function",
    inputs=lambda: (u(4, 3, lo=-0.5, hi=0.5), u(4, 3, lo=-0.4, hi=0.3, seed=1)),
    more=[],
    bug="the squared conformal factor in the gradient of v is the one of u",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="modrelu",
    object="ModReLU", kind="function",
    inputs=lambda: (c(4, 3), t([0.3, -0.4, -0.9])),
    more=[],
    bug="inner product without the conjugate",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="frame_energy",
    object="FrameEnergyDB", kind="function",
    inputs=lambda: (r(2, 12), u(4, lo=0.3, hi=1, seed=1), 2),
    more=[lambda: (r(1, 9, seed=2), u(3, lo=0.3, hi=1, seed=3), 3)],
    bug="as_strided in backward reads the input as if it were contiguous",
    fits=["layout"], order="first",
))
CASES.append(dict(
    name="tv3d",
    object="CharbonnierTV", kind="function",
    inputs=lambda: (r(3, 4, 3), t([1.5, 0.7, 1.1]), 0.3),
    more=[lambda: (r(2, 1, 5, seed=1), t([1.0, 1.0, 2.0]), 0.5)],
    bug="spacing is a tensor that may require a gradient, but gets None",
    fits=["None for"], order="first",
))
CASES.append(dict(
    name="masked_ncc",
    object="MaskedNCC", kind="function",
    inputs=lambda: (r(3, 6, grad=False), r(3, 6, seed=1), u(3, 6, seed=2, grad=False) > 0.3),
    more=[lambda: (r(2, 5), r(2, 5, seed=1), torch.ones(2, 5, dtype=torch.bool))],
    bug="the gradient of the second image hangs on whether the first one needs one",
    fits=["None for"], order="first",
))
CASES.append(dict(
    name="tridiag",
    object="TridiagonalSolve", kind="function",
    inputs=lambda: (r(2, 4), r(2, 5, seed=1, shift=4.0, scale=0.3), r(2, 4, seed=2), r(2, 5, seed=3)),
    more=[],
    bug="the adjoint system is solved with the matrix instead of its transpose",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lotka",
    object="LotkaVolterraRK4", kind="function",
    inputs=lambda: (u(3, 2, lo=0.5, hi=2), t([1.1, 0.8, 0.9, 0.5]), 0.3, 4),
    more=[lambda: (u(1, 2, lo=0.5, hi=2, seed=1), t([0.7, 0.4, 1.0, 0.3]), 0.1, 1)],
    bug="the third stage's adjoint flows back to the second with h instead of h/2",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="matern32",
    object="Matern32", kind="function",
    inputs=lambda: (t([[0.0, 1.0], [0.5, -0.3], [2.0, 0.2]]), t([[0.5, -0.3], [1.0, 1.0]]), t([0.1, -0.2]), t(0.3)),
    more=[lambda: (r(3, 2), r(4, 2, seed=1), t([0.0, 0.4]), t(-0.2))],
    bug="s / s is NaN where two points coincide",
    fits=["nan"], order="first",
))
CASES.append(dict(
    name="householder",
    object="HouseholderChain", kind="function",
    inputs=lambda: (r(3, 4), r(3, 4, seed=1)),
    more=[lambda: (r(2, 3, seed=2), r(1, 3, seed=3))],
    bug="gradients of the reflection vectors are in reverse order",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="givens",
    object="GivensLayer", kind="module", make=lambda cls: fill(cls(4, 2)),
    inputs=lambda: (r(3, 4),),
    more=[],
    bug="the incoming gradient is rotated in place",
    fits=["modified"], order="first",
))
CASES.append(dict(
    name="cayley",
    object="OrthoLinear", kind="module", make=lambda cls: fill(cls(4, bias=True)),
    inputs=lambda: (r(3, 4),),
    more=[],
    bug="the part of the gradient through M^T is missing",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="kron_linear",
    object="KroneckerLinear", kind="module", make=lambda cls: fill(cls((2, 3), (4, 3))),
    inputs=lambda: (r(3, 6),),
    more=[],
    bug="gradient of the right factor is transposed",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="tt_embedding",
    object="TTEmbedding", kind="module", make=lambda cls: fill(cls(4, 3, 2, 2, 2)),
    inputs=lambda: (torch.tensor([[0, 11, 5], [7, 5, 2]]),),
    more=[],
    bug="row index of the left core computed with the wrong vocabulary factor in backward",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="hash_embedding",
    object="HashEmbedding", kind="module", make=lambda cls: fill(cls(7, 3)),
    inputs=lambda: (torch.tensor([[3, 0, 15], [8, 22, 0]]),),
    more=[],
    bug="padding ids send their gradient to the table",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="alibi_attn",
    object="AlibiAttention", kind="function",
    inputs=lambda: (r(2, 4, 3), r(2, 4, 3, seed=1), r(2, 4, 2, seed=2), t([0.5, 0.1])),
    more=[lambda: (r(1, 2, 2, seed=3), r(1, 2, 2, seed=4), r(1, 2, 2, seed=5), t([-0.3]))],
    bug="the saved probabilities are overwritten by the gradient of the scores",
    fits=["modified"], order="first",
))
CASES.append(dict(
    name="retention",
    object="Retention", kind="function",
    inputs=lambda: (r(2, 5, 3, scale=2), r(2, 5, 3, seed=1, scale=2), r(2, 5, 2, seed=2, scale=2), t(0.9)),
    more=[lambda: (r(1, 1, 2), r(1, 1, 2, seed=1), r(1, 1, 3, seed=2), t(0.5))],
    bug="the states for backward are kept in bfloat16 whatever the dtype of the inputs",
    fits=["dtype", "value"], order="first",
))
CASES.append(dict(
    name="diag_ssm",
    object="DiagonalScan", kind="function",
    inputs=lambda: (u(2, 4, 3, lo=0.2, hi=0.95), r(2, 4, 3, seed=1), r(2, 3, seed=2)),
    more=[],
    bug="the gradient of the last state output is dropped",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="grn",
    object="GlobalResponseNorm", kind="function",
    inputs=lambda: (r(2, 4, 3), r(3, seed=1), r(3, seed=2)),
    more=[],
    bug="mean over the channels in the denominator taken as a constant",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="involution1d",
    object="Involution1d", kind="function",
    inputs=lambda: (r(2, 2, 2, 5), r(2, 2, 3, 5, seed=1)),
    more=[lambda: (r(1, 1, 2, 2, seed=2), r(1, 1, 5, 2, seed=3))],
    bug="the kernel of position t is applied to the gradient of its neighbour (not shifted along)",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lsq_quant",
    object="LSQ", kind="function",
    inputs=lambda: (t([[-2.3, -0.9, -0.3, 0.13], [0.38, 0.71, 1.9, -1.45]]), t(0.31), -4, 3),
    more=[lambda: (u(6, lo=-1, hi=3, seed=1), t(0.4), 0, 3)],
    surrogate=lambda x, s, lo, hi: (lambda x1, s1, *_: ((x1 / s1).clamp(lo, hi) + (x / s).clamp(lo, hi).round() - (x / s).clamp(lo, hi)) * s1),
    bug="step size gradient of values below the range is not qmin",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="harmonic_synth",
    object="HarmonicSynth", kind="function",
    inputs=lambda: (u(2, 7, lo=0.5, hi=2.4), u(2, 3, 7, seed=1), 10),
    more=[],
    bug="the adjoint of the cumulative phase runs forwards in time",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="volume_render",
    object="VolumeRender", kind="function",
    inputs=lambda: (u(3, 4, lo=0.1, hi=2), u(3, 4, 3, seed=1), u(3, 4, lo=0.1, hi=0.6, seed=2)),
    more=[],
    bug="the transmittance is kept on the class, so that a second call overwrites it",
    fits=["state"], order="first",
))
CASES.append(dict(
    name="splat2d",
    object="Splat2D", kind="function",
    inputs=lambda: (u(2, 2, lo=0.5, hi=3), t([[0.8, 0.2, 0.6], [0.5, -0.1, 0.9]]), t([0.7, 0.4]), 3, 4),
    more=[],
    bug="the off-diagonal entry of the conic counts once instead of twice",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="vertex_normals",
    object="VertexNormals", kind="function",
    inputs=lambda: (r(5, 3), torch.tensor([[0, 1, 2], [0, 2, 3], [1, 4, 2], [3, 2, 4]]), True, 1e-8),
    more=[lambda: (r(4, 3, seed=1), torch.tensor([[0, 1, 2], [1, 3, 2]]), False)],
    bug="no entry for the eps argument that was added later",
    fits=["number of gradients"], order="first",
))
CASES.append(dict(
    name="bond_angle",
    object="HarmonicAngle", kind="function",
    inputs=lambda: (r(5, 3), torch.tensor([[0, 1, 2], [1, 2, 3], [4, 1, 0]]), u(3, lo=1, hi=3, seed=1), t([1.8, 1.9, 2.0])),
    more=[],
    bug="no force on the atom at the vertex",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="xpos",
    object="apply_xpos", kind="callable",
    inputs=lambda: (r(2, 4, 6), 3, 100.0, 8.0),
    more=[lambda: (r(3, 4, seed=1),), lambda: (r(2, 1, 3, 2, seed=1), 1, 50.0, 4.0, True)],
    bug="backward divides by the decay scale (as for a pure inverse) instead of multiplying",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="blurpool",
    object="blur_pool1d", kind="callable",
    inputs=lambda: (r(2, 2, 7),),
    more=[lambda: (r(1, 2, 8, seed=1), 3), lambda: (r(1, 1, 2, seed=1), 1)],
    bug="padding treated as replicated at the border instead of reflected",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="compressor",
    object="compress_db", kind="callable",
    inputs=lambda: (u(3, 6, lo=-40, hi=0), t(-20.0), t(4.0)),
    more=[lambda: (u(8, lo=-30, hi=0, seed=1), t(-12.0), t(2.0), 10)],
    bug="gradient of the ratio saturates above the knee",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lj_switch",
    object="lennard_jones", kind="callable",
    inputs=lambda: (t([0.95, 1.12, 1.5, 1.63, 1.71, 2.1, 1.2, 2.4]), t(2.0), t(1.1), 1.4, 2.2),
    more=[lambda: (t([1.3, 2.2, 2.9]), t(1.0), t(1.0))],
    bug="derivative of the switching function is missing",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="hill",
    object="hill", kind="callable",
    inputs=lambda: (t([0.0, 0.3, 1.0, 2.5, 7.0], grad=False), t(1.4), t(2.3)),
    more=[lambda: (u(2, 3, lo=0.2, hi=3), t(0.8), t(1.5))],
    bug="0 * log(0) for a concentration of zero makes the gradient of n NaN",
    fits=["nan"], order="first",
))
CASES.append(dict(
    name="swiglu_clamped",
    object="swiglu_interleaved", kind="callable",
    inputs=lambda: (r(3, 8), 1.702, 0.8),
    more=[lambda: (r(2, 2, 4, seed=2, scale=2),)],
    bug="the linear half below -limit is not cut off",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="ragged_pool",
    object="attn_pool", kind="callable",
    inputs=lambda: (r(7, 3), r(7, seed=1), torch.tensor([0, 3, 3, 7])),
    more=[lambda: (r(3, 2), r(3, seed=1), torch.tensor([0, 1, 3]))],
    bug="the first token of a sequence is counted to the one before in backward (right=False)",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="decode_boxes",
    object="decode_boxes", kind="callable",
    inputs=lambda: (t([[0.3, -0.2, 0.5, 0.1], [1.0, 0.4, -0.7, 26.0]]), t([[0.0, 1.0, 2.0, 2.5], [1.0, 0.5, 1.8, 3.0]]), [10.0, 10.0, 5.0, 5.0]),
    more=[lambda: (r(3, 4, scale=0.3), t([[0.0, 0.0, 1.0, 1.0], [0.2, 0.1, 0.9, 1.4], [1.0, 2.0, 3.0, 3.0]]), [1.0, 1.0, 1.0, 1.0])],
    bug="no gradient for the anchors, which may be learned",
    fits=["None for"], order="first",
))
CASES.append(dict(
    name="peephole_lstm",
    object="PeepholeLSTMCell", kind="module", make=lambda cls: fill(cls(3, 2)),
    inputs=lambda: (r(3, 3), (r(3, 2, seed=1), r(3, 2, seed=2))),
    more=[],
    bug="the output peephole's gradient uses the old cell state",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="masked_instance_norm",
    object="MaskedInstanceNorm1d", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 3, 6), torch.tensor([6, 3])),
    more=[],
    bug="means in backward are over the padded length",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="gdn",
    object="GDN", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 3, 4),),
    more=[],
    bug="the inverse root is kept on ctx, a constant for the second derivative",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="frn_tlu",
    object="FilterResponseNorm1d", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 3, 5),),
    more=[],
    bug="the threshold in backward is applied before the affine part",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="lightconv",
    object="LightweightConv", kind="module", make=lambda cls: fill(cls(4, 2, 3)),
    inputs=lambda: (r(2, 5, 4),),
    more=[],
    bug="the weight's gradient lacks the axis of size one",
    fits=["shape"], order="first",
))
CASES.append(dict(
    name="snake",
    object="Snake", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (r(2, 3, 4),),
    more=[],
    bug="the saved sine of forward has no graph: second derivative incomplete",
    fits=["value"], order="second",
))
CASES.append(dict(
    name="arcface",
    object="ArcMarginProduct", kind="module", make=lambda cls: fill(cls(2, 4, s=4.0, m=0.9)),
    inputs=lambda: (r(8, 2), torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])),
    more=[],
    bug="angles beyond pi - m, where forward goes on linearly, get the derivative of the cosine",
    fits=["value"], order="first",
))
CASES.append(dict(
    name="evonorm",
    object="EvoNormS0", kind="module", make=lambda cls: fill(cls(4), seed=8),
    inputs=lambda: (r(2, 4, 3),),
    more=[],
    bug="the statistics lie on the module, where a second call before backward replaces them",
    fits=["state"], order="first",
))
CASES.append(dict(
    name="hadamard",
    object="FastfoodRotation", kind="module", make=lambda cls: fill(cls(4)),
    inputs=lambda: (r(2, 3, 4),),
    more=[lambda: (r(3, 4, seed=1),)],
    bug="clone keeps the strides of the incoming gradient, and the butterfly then works on a copy that reshape made",
    fits=["layout"], order="first",
))
CASES.append(dict(
    name="lifting",
    object="LearnedWavelet", kind="module", make=lambda cls: fill(cls(2)),
    inputs=lambda: (r(2, 8),),
    more=[],
    bug="the detail's incoming gradient is added to in place",
    fits=["modified"], order="first",
))
CASES.append(dict(
    name="bspline_kan",
    object="KANLayer", kind="module", make=lambda cls: fill(cls(3, 2, grid=4)),
    inputs=lambda: (u(3, 3, lo=-1.8, hi=1.8),),
    more=[],
    bug="the degree is counted twice in the derivative of the basis",
    fits=["value"], order="first",
))
