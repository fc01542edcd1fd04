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


def _case(name, object, inputs, more, bug, fits, order="first", make=None, kind=None):
    c = {"name": name, "group": name, "object": object, "inputs": inputs, "more": more,
         "order": order, "kind": kind or ("module" if make else "function"), "bug": bug, "fits": fits}
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


def _tril(n, seed=7):
    """a Cholesky factor"""
    m = torch.randn(n, n, generator=_g(seed), dtype=torch.float64).tril(-1) * 0.3 + torch.eye(n, dtype=torch.float64)
    return m.requires_grad_()


def _lora(cls):
    m = _fill(cls(3, 4, 2, 3.0))
    m.weight.copy_(torch.randn(4, 3, generator=_g(6), dtype=torch.float64))
    return m


# The fault shows at ``inputs`` of every case; ``more`` are further uses at which the right operator is verified.

# ---- losses, ranking and contrastive learning
_case("asymmetric_loss", "AsymmetricLossFunction", lambda: (_r(3, 5), _t([[1., 0, 0, 1, 0], [0, 0, 1, 0, 0], [0, 1, 0, 0, 0]], torch.float64), 4.0, 1.0, 0.05),
      [lambda: (_r(2, 3, scale=3), _t([[1, 0, 0], [0, 1, 1]]), 1.0, 0.0, 0.3), lambda: (_r(4), _t([0, 1, 0, 1]), 2.5, 2.0, 0.01)],
      "the negatives' focusing weight is treated as a constant", ["missing term"])
_case("ntxent", "NTXent", lambda: (_u(3, 4, lo=-1), _u(3, 4, seed=1, lo=-1), 0.5),
      [lambda: (_r(2, 3), _r(2, 3, seed=1), 1.0), lambda: (_r(1, 2), _d(_r(1, 2, seed=1)))],
      "the gradient through a vector's use as the other side of a pair is taken to equal that of its use as anchor", ["transpose", "missing term"])
_case("triplet_swap", "TripletLossWithSwap", lambda: (_r(4, 3), _r(4, 3, seed=1), _r(4, 3, seed=2), 1.0, True),
      [lambda: (_r(4, 3), _r(4, 3, seed=1), _r(4, 3, seed=2)), lambda: (_r(2, 2), _d(_r(2, 2, seed=1)), _r(2, 2, seed=2), 3.0, True)],
      "with swap=True the positive lacks the gradient of its distance to the negative", ["option", "missing term"])
_case("listmle", "ListMLE", lambda: (_r(2, 4), _t([[3., 1, 0, 2], [0, 0, 1, 2]])),
      [lambda: (_r(1, 3), _t([[0, 1, 2]])), lambda: (_r(3, 1), _t([[1], [0], [2]]))],
      "the sum over the stages that still hold an item runs from the wrong end", ["cumulative", "order"])
_case("log_cosh_loss", "LogCoshLoss", lambda: (_r(3, 2), _r(3, 2, seed=1), "mean"),
      [lambda: (_r(4), _d(_r(4, seed=1)), "sum"), lambda: (_r(2, 3), _r(2, 3, seed=1), "none")],
      "backward detaches the slope, so the second derivative is lost", ["detached"], order="second")
_case("pearson_loss", "PearsonLoss", lambda: (_r(2, 5), _r(2, 5, seed=1)),
      [lambda: (_r(4), _r(4, seed=1)), lambda: (_r(2, 1, 3), _d(_r(2, 1, 3, seed=1)))],
      "backward reads intermediates from a module-level cache keyed by shape, which a second forward overwrites", ["state"],
      make=lambda cls: cls(), order="first")
_case("arcface_head", "ArcFaceHead", lambda: (_r(3, 4), _t([0, 2, 1])),
      [lambda: (_r(2, 4, seed=3), _t([4, 4])), lambda: (_r(1, 4, seed=4), _t([3]))],
      "the derivative of sin(theta) with respect to cos(theta) lacks 1/sin(theta)", ["chain rule"],
      make=lambda cls: _fill(cls(4, 5, 0.3, 4.0)))
_case("logit_entropy", "CategoricalEntropy", lambda: (_r(2, 4), -1, 1.0),
      [lambda: (_r(3, 2, 2), 0, 0.5), lambda: (_r(5), 0), lambda: (_r(2, 3, 2), -2, 2.0)],
      "backward uses log-probabilities saved as an intermediate, so the second derivative is lost", ["detached"], order="second")

# ---- normalisation, activations, clamps
_case("rms_norm", "RMSNormFunction", lambda: (_r(2, 3, 4), (3, 4), _r(3, 4, seed=1), 1e-6),
      [lambda: (_r(2, 3), (3,)), lambda: (_r(2, 2, 3), (3,), _r(3, seed=1), 0.1), lambda: (_r(4), (4,), _d(_r(4, seed=1)), 1e-3)],
      "divides by the last dimension instead of all normalised elements; shows for two normalised dimensions", ["factor", "shape"])
_case("snake_activation", "Snake", lambda: (_r(2, 3, 4),), [lambda: (_r(1, 3, 2),), lambda: (_r(3, 3, 1),)],
      "with a logarithmic alpha the factor exp(alpha) is missing", ["option", "chain rule"],
      make=lambda cls: _fill(cls(3, 1.0, True)))
_case("srelu", "SReLU", lambda: (_r(3, 2, 4, scale=2),), [lambda: (_r(4, 2),), lambda: (_r(1, 2, 2, 2, scale=2),)],
      "the left threshold's gradient lacks the one of 1 - a_left", ["missing term", "threshold"],
      make=lambda cls: cls(2).double())
_case("range_clamp", "LearnedRangeClamp", lambda: (_r(2, 3, 4), _u(3, 1, lo=-1, hi=-0.3), _u(3, 1, seed=1, lo=0.2, hi=0.9)),
      [lambda: (_r(5), _f(-0.4), _f(0.4)), lambda: (_r(2, 2), _d(_u(2, seed=2, lo=-1, hi=-0.5)), _f(0.1)), lambda: (_r(4), _f(0.5), _f(-0.5))],
      "the two bounds receive each other's gradient", ["swapped"])
_case("swish_beta", "SwishBeta", lambda: (_r(3, 4), _f(1.3)), [lambda: (_r(2), _f(-0.7)), lambda: (_r(2, 2, 2), _d(_f(1.0)))],
      "in the handwritten double backward the second derivative with respect to x lacks a factor 2 in one term", ["double backward", "factor"], order="second")
_case("modrelu", "ModReLU", lambda: (_c(2, 3),), [lambda: (_c(3, seed=4),), lambda: (_c(1, 2, 3, seed=5),)],
      "the derivative of b / |z| is missing", ["complex", "missing term"], make=lambda cls: _fill(cls(3), scale=0.6))
_case("sparsemax", "Sparsemax", lambda: (_r(3, 4), 0), [lambda: (_r(2, 3),), lambda: (_r(2, 3, 2), 1), lambda: (_r(2, 3, 2), -2), lambda: (_r(4), 0)],
      "backward averages over the last dimension whatever dim is", ["axis", "option"])
_case("soft_threshold", "SoftThreshold", lambda: (_r(3, 4), _u(4, lo=0.1, hi=0.6)), [lambda: (_r(5), _f(0.3)), lambda: (_r(2, 3), _d(_u(2, 1, lo=0.2)))],
      "backward zeroes entries of the incoming gradient in place", ["modified input"])

# ---- windows, pooling, morphology, resampling
_case("lp_pool1d", "LpPool1d", lambda: (_r(2, 2, 8), 2.0, 3, 2, 1, 2),
      [lambda: (_r(1, 2, 6), 3.0, 2), lambda: (_r(1, 1, 7), 2.0, 3, 1, 0, 3), lambda: (_r(1, 1, 5), 1.0, 2, 2)],
      "the gradient is scattered as if dilation were 1", ["dilation", "option"])
_case("grey_dilation", "GreyDilation2d", lambda: (_r(1, 2, 6, 5), _r(3, 2, seed=1, scale=0.3), 2, 1),
      [lambda: (_r(2, 1, 4, 4), _r(2, 2, seed=1), 1, 0), lambda: (_r(1, 1, 3, 4), _r(3, 3, seed=1), 1, 2), lambda: (_r(1, 1, 7, 7), _d(_r(2, 3, seed=1)), 3, 1)],
      "the row of the maximum ignores the stride", ["stride", "option"])
_case("pos_embed_interp", "ResamplePositions", lambda: (_r(5, 3), 8, False),
      [lambda: (_r(4, 2), 7), lambda: (_r(4, 2), 1), lambda: (_r(6, 2), 3, False), lambda: (_r(1, 2), 3, False)],
      "backward always uses the aligned-corners positions", ["option"])
_case("sample_line", "SampleLine", lambda: (_r(2, 2, 5), _f([[0.3, -0.7, 3.6], [-1.4, 2.2, 5.3]]), "border"),
      [lambda: (_r(1, 3, 4), _f([[0.4, 1.7, -0.3, 3.6, 5.1]])), lambda: (_r(1, 1, 3), _d(_f([[0.5, 9.0]])), "border")],
      "positions clamped at the left border still get a gradient", ["threshold", "boundary"])
_case("catmull_rom", "CatmullRom", lambda: (_r(5, 2), _f([0.2, 1.7, 2.4, 3.9])),
      [lambda: (_r(2, 3), _f([0.3, 0.8])), lambda: (_r(3, 1), _d(_f([0.0, 2.0])))],
      "one basis function's derivative has a wrong coefficient", ["value"])

# ---- segments, sparse operands, graphs, embeddings
_case("segment_moments", "SegmentMoments", lambda: (_r(6, 2), _t([0, 1, 0, 3, 1, 0]), 4),
      [lambda: (_r(3, 1), _t([0, 0, 0]), 1), lambda: (_r(4, 3), _t([2, 1, 2, 2]), 3)],
      "the variance's gradient lacks the factor 2; the mean's is right", ["factor", "several outputs"])
_case("coo_matmul", "COOMatmul", lambda: (_t([0, 2, 1, 0]), _t([1, 0, 1, 2]), _c(4), _c(3, 2, seed=1), 3),
      [lambda: (_t([0, 0, 1]), _t([1, 1, 0]), _r(3), _r(2, 2, seed=1), 4), lambda: (_t([1, 0]), _t([0, 0]), _d(_c(2)), _c(1, 3, seed=1), 2)],
      "the dense operand's gradient lacks the conjugate of the values; shows for complex operands", ["complex", "conjugate"])
_case("sddmm", "SampledDenseDense", lambda: (_r(3, 2), _r(4, 2, seed=1), _t([0, 1, 1, 2, 0]), _t([1, 1, 3, 0, 1])),
      [lambda: (_r(2, 3), _r(2, 3, seed=1), _t([0, 0, 1]), _t([0, 0, 1])), lambda: (_r(1, 2), _d(_r(2, 2, seed=1)), _t([0]), _t([1]))],
      "b's gradient is added by index, so a column that comes twice keeps one contribution", ["repeated index"])
_case("continuous_filter_conv", "CFConv", lambda: (_r(4, 3), _u(5, 2, seed=1), _t([[0, 1, 2, 3, 1], [1, 0, 1, 2, 3]])),
      [lambda: (_r(2, 3), _u(2, 2, seed=1), _t([[0, 1], [1, 1]])), lambda: (_d(_r(3, 3)), _d(_u(1, 2, seed=1)), _t([[2], [0]]))],
      "the filters' gradient uses the target's features instead of the source's", ["wrong tensor", "wrong index"],
      make=lambda cls: _fill(cls(3, 2)))
_case("padded_embedding", "ScaledEmbedding", lambda: (_r(5, 3), _t([[1, 0, 2], [4, 1, 0]]), 0),
      [lambda: (_r(4, 2), _t([3, 3, 1])), lambda: (_r(3, 4), _t(2), 1)],
      "the padding row gets the gradient of its positions although they are zero", ["padding", "mask"])
_case("edge_length", "EdgeLength", lambda: (_r(4, 3), _t([0, 1, 2, 3, 0]), _t([1, 2, 3, 0, 2])),
      [lambda: (_r(3, 3), _t([0, 0]), _t([1, 2]), 1e-2), lambda: (_r(2, 2), _t([1]), _t([0]))],
      "the handwritten double backward lacks the projection term", ["double backward", "missing term"], order="second")
_case("gaussian_rbf", "GaussianRBF", lambda: (_u(5, lo=0.5, hi=2), _f([0.6, 1.2, 1.8]), 2.0),
      [lambda: (_u(2, 3), _d(_f([0.1, 0.5])), 10.0), lambda: (_u(3, lo=0.2), _f([0.4]), 1.0)],
      "the handwritten double backward has gamma in place of 2 gamma", ["double backward", "factor"], order="second")

# ---- attention, recurrences, sequences
_case("softcap_attention", "SoftcapAttention", lambda: (_r(1, 2, 3, 4, scale=2), _r(1, 2, 3, 4, seed=1, scale=2), _r(1, 2, 3, 2, seed=2), torch.ones(3, 3).tril().bool(), 2.0),
      [lambda: (_r(2, 1, 2, 3), _r(2, 1, 4, 3, seed=1), _r(2, 1, 4, 2, seed=2)),
       lambda: (_r(1, 1, 2, 2), _r(1, 1, 3, 2, seed=1), _r(1, 1, 3, 1, seed=2), _t([[True, False, True], [False, False, False]]), 5.0, 1.0)],
      "the derivative of the soft cap is missing; shows when a cap is given", ["option", "chain rule"])
_case("linear_attention", "LinearAttention", lambda: (_r(2, 3, 2), _r(2, 4, 2, seed=1), _r(2, 4, 3, seed=2), _t([[True, True, False, True], [True, True, True, False]])),
      [lambda: (_r(1, 2, 3), _r(1, 2, 3, seed=1), _r(1, 2, 1, seed=2)), lambda: (_r(1, 1, 2), _r(1, 3, 2, seed=1), _d(_r(1, 3, 2, seed=2)), None, 1e-3)],
      "masked keys still get a gradient", ["mask", "option"])
_case("time2vec", "Time2Vec", lambda: (_r(2, 3),), [lambda: (_r(4),), lambda: (_d(_r(1, 2, 2)),)],
      "the linear component is differentiated as a periodic one", ["boundary", "value"], make=lambda cls: _fill(cls(4)))
_case("peephole_lstm", "PeepholeLSTMCell", lambda: (_r(2, 12), _r(2, 3, seed=1), _r(3, seed=2), _r(3, seed=3), _r(3, seed=4)),
      [lambda: (_r(1, 4), _r(1, 1, seed=1), _r(1, seed=2), _r(1, seed=3), _r(1, seed=4)), lambda: (_r(3, 8), _d(_r(3, 2, seed=1)), _r(2, seed=2), _d(_r(2, seed=3)), _r(2, seed=4))],
      "the new cell state lacks the gradient through the output gate's peephole", ["missing term"])
_case("indrnn", "IndRNN", lambda: (_r(4, 2, 3), _u(3, lo=0.3, hi=1.2), _r(2, 3, seed=2), True),
      [lambda: (_r(3, 2, 2), _u(2), None, False), lambda: (_r(3, 1, 2), _r(2, seed=1), _u(1, 2, seed=2)), lambda: (_r(1, 1, 2), _u(2), None, True)],
      "with reverse=True the recurrent weight's gradient pairs a step with the wrong neighbour", ["option", "off by one"])
_case("crf_log_partition", "CRFLogPartition", lambda: (_r(2, 4, 3), _r(3, 3, seed=1), _t([[True, True, True, True], [True, True, False, False]])),
      [lambda: (_r(1, 3, 2), _r(2, 2, seed=1)), lambda: (_r(2, 1, 3), _r(3, 3, seed=1), None)],
      "the transitions' gradient is transposed", ["transpose"])
_case("rel_shift", "RelShift", lambda: (_r(1, 2, 3, 3),), [lambda: (_r(2, 1, 2, 4),), lambda: (_r(1, 1, 3, 2),)],
      "backward reads the incoming gradient as if contiguous", ["layout"])
_case("lora_linear", "LoRALinear", lambda: (_r(2, 3),), [lambda: (_r(2, 2, 3),), lambda: (_d(_r(3)).unsqueeze(0),)],
      "whether lora_down needs a gradient is read from the frozen weight's slot", ["none", "needs_input_grad"],
      make=lambda cls: _lora(cls))

# ---- geometry, rendering and images
_case("so3_exp", "SO3Exp", lambda: (_r(3, 3),), [lambda: (_r(3, scale=1e-4),), lambda: (_r(2, 2, 3, scale=3),), lambda: (_f([[0.0, 0.0, 0.0]]),)],
      "in the gradient of K @ K one factor is not transposed", ["transpose", "sign"])
_case("pinhole_project", "PinholeProject", lambda: (_f([[0.5, -0.3, 1.5], [-0.8, 0.4, 2.0], [0.2, 0.9, 1.2]]), _f([1.1, 0.9, 0.1, -0.2]), _f(0.3)),
      [lambda: (_f([[0.5, -0.3, 1.5], [-0.8, 0.4, 2.0]]), _f([500.0, 480.0, 320.0, 240.0])), lambda: (_f([[0.1, 0.2, 3.0]]), _d(_f([2.0, 2.0, 0.5, 0.5])), _f(-0.1))],
      "the distortion is not differentiated with respect to the points", ["option", "missing term"])
_case("ray_aabb", "RayAABB", lambda: (_f([[-2.0, 0.1, 0.3], [2.0, 1.5, 0.4], [0.2, 3.0, -1.0]]), _f([[1.0, 0.2, -0.1], [-1.0, -0.5, 0.3], [0.1, -1.0, 0.4]]), _f([-1.0, -1.1, -0.9]), _f([1.0, 0.8, 1.2])),
      [lambda: (_r(4, 3), _r(4, 3, seed=1), _f([-1.0, -1.1, -0.9]), _f([1.0, 0.8, 1.2])), lambda: (_r(2, 3), _d(_r(2, 3, seed=1)), _d(_f([0.0, 0.0, 0.0])), _f([1.0, 1.0, 1.0]))],
      "entering always credits the lower corner, also for rays that travel in the negative direction", ["sign", "swapped"])
_case("render_weights", "AlphaComposite", lambda: (_u(2, 5, hi=0.9),), [lambda: (_u(3, hi=0.5),), lambda: (_u(2, 2, 1, hi=0.9),)],
      "the sum over later samples includes the sample itself", ["off by one"])
_case("srgb_to_linear", "SRGBToLinear", lambda: (_f([[0.01, 0.02, 0.5], [0.03, 0.3, 0.9]]),), [lambda: (_u(2, 3, lo=0.05),), lambda: (_f([0.001, 0.035, 1.0]),)],
      "backward switches branches at the threshold of the inverse function", ["threshold"])

# ---- signals, waves
_case("biquad", "Biquad", lambda: (_r(2, 6), _r(3, seed=1), _f([-0.6, 0.3])), [lambda: (_r(1, 2), _r(3, seed=1), _f([0.5, 0.2])), lambda: (_r(1, 4), _d(_r(3, seed=1)), _f([0.0, 0.0]))],
      "the feedback coefficients' gradient uses the output one sample too late", ["off by one"])
_case("stft_power", "STFTPower", lambda: (_r(2, 10), _d(torch.hann_window(4, periodic=False, dtype=torch.float64) + 0.08), 2),
      [lambda: (_r(1, 9), _u(4, seed=1), 3), lambda: (_r(1, 5), _u(5, seed=1), 1)],
      "the signal's gradient lacks the window", ["chain rule", "missing term"])
_case("spectral_filter", "SpectralFilter", lambda: (_r(2, 6), _c(4, seed=1)), [lambda: (_r(5), _c(3, seed=1)), lambda: (_r(2, 2, 4), _d(_c(3, seed=1)))],
      "the response's gradient counts the Nyquist bin twice; shows for even lengths", ["factor", "complex"])
_case("fresnel_propagate", "AngularSpectrum", lambda: (_c(1, 3, 4), _d(_r(3, 4, seed=1)), _f(0.7)), [lambda: (_c(2, 2, 2), _r(2, 2, seed=1), _f(-1.2)), lambda: (_c(1, 1, 3), _r(1, 3, seed=1), _d(_f(0.5)))],
      "the field's gradient lacks the conjugate of the kernel", ["complex", "conjugate"])

# ---- physics
_case("lennard_jones", "LennardJones", lambda: (_f([[0.2, 0.3, 0.1], [1.4, 0.2, 0.3], [2.8, 2.7, 2.9]]), _t([[0, 0, 1], [1, 2, 2]]), _t([3.0, 3.2, 3.1], torch.float64), 1.0, 1.0, 2.5),
      [lambda: (_f([[0.0, 0.0, 0.0], [1.3, 0.2, 0.3], [0.4, 1.2, 0.1]]), _t([[0, 0, 1], [1, 2, 2]])), lambda: (_f([[0.0, 0.0, 0.0], [1.3, 0.2, 0.3], [2.4, 2.2, 0.1]]), _t([[0, 0], [1, 2]]), None, 0.5, 1.1, 2.0)],
      "backward does not apply the minimum image convention; shows with a box", ["option", "boundary"])
_case("ising_energy", "LatticeEnergy", lambda: (_r(2, 3, 4), _r(3, 4, seed=1), _r(3, 4, seed=2), _r(3, 4, seed=3)),
      [lambda: (_r(1, 2, 2), _d(_r(2, 2, seed=1)), _r(2, 2, seed=2), _d(_r(2, 2, seed=3))), lambda: (_r(1, 1, 3), _r(1, 3, seed=1), _r(1, 3, seed=2), _r(1, 3, seed=3))],
      "the neighbours that couple to a spin are looked for in the wrong direction", ["boundary", "order"])

# ---- finance
_case("black_scholes", "BlackScholes", lambda: (_f([100.0, 95.0]), _f([100.0, 105.0]), _f([0.5, 1.0]), _f([0.2, 0.3]), _f(0.03), False),
      [lambda: (_f([1.0, 1.2]), _f(1.1), _f([0.5, 1.0]), _f([[0.2], [0.3]]), _f(0.03)), lambda: (_f(1.0), _d(_f(0.9)), _f(2.0), _f(0.4), _d(_f(0.0)), False)],
      "the put's sensitivity to the rate has the call's sign", ["option", "sign"])
_case("bond_yield", "YieldToMaturity", lambda: (_f([0.98, 1.05]), _f([[0.03, 0.03, 1.03], [0.05, 0.05, 1.05]]), _f([1.0, 2.0, 3.0])),
      [lambda: (_f([0.9]), _d(_f([[1.0]])), _f([2.5])), lambda: (_f([2.0, 0.5]), _f([[0.5, 1.0], [0.5, 0.4]]), _d(_f([0.5, 1.0])))],
      "the cash flows' gradient has the wrong sign", ["sign", "implicit"])

# ---- probability
_case("gmm_logprob", "GaussianMixtureLogProb", lambda: (_r(3, 2), _r(3, seed=1), _r(3, 2, seed=2), _r(3, 2, seed=3, scale=0.3)),
      [lambda: (_r(2, 1), _d(_r(2, seed=1)), _r(2, 1, seed=2), _r(2, 1, seed=3)), lambda: (_d(_r(2, 3)), _r(1, seed=1), _r(1, 3, seed=2), _r(1, 3, seed=3, scale=0.3))],
      "the logits' gradient lacks the normaliser of the mixture weights", ["missing term"])
_case("mahalanobis", "SquaredMahalanobis", lambda: (_r(4, 3), _r(3, seed=1), _tril(3)), [lambda: (_r(2, 2), _d(_r(2, seed=1)), _tril(2)), lambda: (_r(1, 1), _r(1, seed=1), _tril(1))],
      "the factor's gradient is not restricted to the lower triangle", ["mask", "missing projection"])

# ---- linear algebra and implicit layers
_case("cayley_map", "CayleyMap", lambda: (_r(3, 3, scale=0.4),), [lambda: (_r(2, 2, 2, scale=0.3),), lambda: (_c(2, 2).detach().mul(0.3).requires_grad_(),)],
      "the identity of I + Q is missing", ["missing term"])
_case("psd_projection", "NearestPSD", lambda: (_r(4, 4),), [lambda: (_r(2, 3, 3),), lambda: (_f([[2.0, 0.0], [0.0, 2.0]]),), lambda: (_f([[1.0, 0.2], [0.4, -1.0]]),)],
      "pairs of a positive and a negative eigenvalue contribute nothing", ["threshold", "missing term"])
_case("deq_tanh", "TanhEquilibrium", lambda: (_r(3, 3, scale=0.25), _r(2, 3, seed=1)), [lambda: (_r(2, 2, scale=0.2), _d(_r(1, 2, seed=1))), lambda: (_d(_r(2, 2, scale=0.2)), _r(3, 2, seed=1))],
      "the linear system of the implicit function theorem is not transposed", ["transpose", "implicit"])
_case("quadratic_form", "QuadraticForm", lambda: (_r(3, 2), _r(2, 2, seed=1)), [lambda: (_r(1, 3), _r(3, 3, seed=1)), lambda: (_r(2, 2), _d(_r(2, 2, seed=1)))],
      "the handwritten double backward takes the matrix's part to be symmetric", ["double backward", "transpose"], order="second")
