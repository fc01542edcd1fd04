"""The pairs of this set: inputs at which the right twin is right, and what is wrong in the other.

``order`` is the lowest order of derivative at which wrong/NAME.py is wrong.  ``more`` are
further inputs at which the right twin was proved.  ``surrogate`` counts the leaves whose
gradient is a declared estimate (straight through).  ``marked`` names the way of use in
which alone the fault shows, where one plain backward at ``inputs`` hides it.
"""
import torch

F64 = torch.float64


def gen(seed):
    return torch.Generator().manual_seed(seed)


def rn(*shape, s=0, k=1.0, add=0.0):
    """normal leaf"""
    return (torch.randn(shape, generator=gen(s), dtype=F64) * k + add).requires_grad_()


def un(*shape, s=0, lo=0.0, hi=1.0):
    """uniform leaf"""
    return (torch.rand(shape, generator=gen(s), dtype=F64) * (hi - lo) + lo).requires_grad_()


def cn(*shape, s=0):
    """complex normal leaf"""
    return torch.randn(shape, generator=gen(s), dtype=torch.complex128).requires_grad_()


def leaf(x):
    return torch.tensor(x, dtype=F64, requires_grad=True)


def fix(x):
    """no gradient wanted"""
    return x.detach()


def const(x, dtype=None):
    """integers and masks"""
    return torch.tensor(x, dtype=dtype)


def filled(module, s=3, k=0.6, add=0.0):
    """normal parameters"""
    module, g = module.double(), gen(s)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=F64) * k + add)
    return module


CASES = []


def pair(name, object, bug, fits, inputs, more=(), make=None, order="first", surrogate=(), marked="", float32=True):
    CASES.append({
        "name": name, "object": object, "kind": "module" if make else "function", "bug": bug, "fits": fits,
        "order": order, "inputs": inputs, "more": list(more), "surrogate": list(surrogate), "marked": marked,
        "float32": float32, **({"make": make} if make else {}),
    })


# ---- activations
pair("hswish", "HSwish", "above 3 the slope is still that of the middle piece", ["mask", "branch"],
     lambda: (rn(3, 4, k=3.0),), [lambda: (rn(5, s=1),), lambda: (leaf([-4.0, -2.9, 0.0, 2.9, 5.0]),)])
pair("swiglu_packed", "SwiGLUPacked", "the slope of silu has the sigmoid's where silu belongs", ["wrong tensor", "wrong formula"],
     lambda: (rn(3, 6),), [lambda: (rn(2, 2, 4, s=1),), lambda: (rn(2, s=2),)])
pair("softplus_thr", "SoftPlus", "the quotient overflows in the branch that is not taken, so that the second derivative is NaN", ["nan", "overflow"],
     lambda: (leaf([-3.0, 0.2, 1.5, 800.0]), 1.0), [lambda: (rn(2, 3), 0.5), lambda: (leaf([-800.0, 12.0, 30.0]), 2.0, 20.0)], order="second")
pair("temp_softmax", "TempSoftmax", "the inner sum runs over the last dim whatever dim is", ["axis", "option"],
     lambda: (rn(2, 3, 4), leaf(0.7), 1), [lambda: (rn(3, 4, s=1), leaf(2.0)), lambda: (fix(rn(3, 2, s=2)), leaf(1.5), 0)])
# ---- losses
pair("sigmoid_focal", "SigmoidFocalLoss", "the negatives are weighted like the positives; hidden at alpha = 0.5", ["option", "factor"],
     lambda: (rn(4, 3), const([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]], F64)),
     [lambda: (rn(5, s=1, k=3), const([1.0, 0, 0, 1, 0], F64), 0.6, 1.5), lambda: (rn(3, s=2), const([1.0, 0, 1], F64), 0.5, 0.0)])
# ---- layers
pair("equal_linear", "EqualLinear", "the bias' gradient lacks lr_mul; hidden at its default of 1", ["option", "missing factor"],
     lambda: (rn(3, 4),), [lambda: (rn(2, 3, 4, s=1),), lambda: (rn(4, s=2),)], make=lambda cls: filled(cls(4, 3, lr_mul=0.1)))
pair("causal_dwconv", "CausalDWConv", "the taps' gradients are in reversed order", ["wrong order"],
     lambda: (rn(2, 3, 6), rn(3, 4, s=1)), [lambda: (rn(1, 2, 3, s=2), rn(2, 1, s=3)), lambda: (rn(1, 1, 2, s=4), rn(1, 3, s=5))])
pair("maxpool_idx", "MaxPool", "a pixel that is the maximum of several windows gets the gradient of one", ["repeated index", "overlap"],
     lambda: (rn(1, 2, 5, 5), 3, 1), [lambda: (rn(2, 1, 4, 6, s=1), 2, 2), lambda: (rn(1, 1, 5, 4, s=2), 3, 2)])
pair("gem_pool", "GeM", "the exponent's gradient lacks the share of the root", ["missing term"],
     lambda: (un(2, 3, 2, 3, lo=0.1, hi=2.0),), [lambda: (rn(1, 2, 3, 3, s=1, add=1.0),), lambda: (un(1, 1, 1, 1, s=2, lo=0.2),)],
     make=lambda cls: cls(3.0, eps=1e-2).double())
pair("scatter_softmax", "ScatterSoftmax", "backward sums over all edges instead of those of one node; hidden with one node", ["reduction", "segment"],
     lambda: (rn(6, 2), const([0, 1, 0, 2, 1, 0]), 3), [lambda: (rn(3, 1, s=1), const([0, 0, 0]), 1), lambda: (rn(4, 2, s=2), const([3, 3, 1, 1]), 5)])
pair("l2norm_eps", "L2Normalize", "the norm is saved in forward, a constant to the second derivative", ["saved tensor", "double backward"],
     lambda: (leaf([[0.3, -0.2, 0.1], [1.2, 0.4, -0.7], [0.0, 0.05, 0.02]]), 0.5),
     [lambda: (rn(3, 2, s=1),), lambda: (leaf([[0.0, 0.0], [0.1, 2.0]]), 0.1)], order="second")
pair("weight_norm_dim", "WeightNorm", "the projection divides by the norm once instead of twice; hidden at unit norm", ["wrong formula", "missing factor"],
     lambda: (rn(3, 4), rn(3, 1, s=1)), [lambda: (rn(2, 3, 2, s=2), rn(1, 3, 1, s=3), 1), lambda: (rn(2, 3, s=4), fix(rn(1, 3, s=5)), 1)])
pair("rope_half", "RotaryHalf", "backward turns back from position 0 instead of start", ["option", "wrong tensor"],
     lambda: (rn(1, 3, 2, 4), 5), [lambda: (rn(2, 2, 1, 2, s=1),), lambda: (rn(1, 2, 1, 6, s=2), 3, 100.0)])
pair("binary_weight", "BinaryLinear", "the window of the straight-through estimate is applied to alpha's gradient too", ["mask"],
     lambda: (rn(3, 4),), [lambda: (rn(2, 2, 4, s=1),)], make=lambda cls: filled(cls(4, 2), k=1.2), surrogate=[1])
# ---- attention and mixtures
pair("masked_attention", "MaskedAttention", "the scores' gradient is scaled by the number of keys instead of the head's width; hidden where the two are the same", ["wrong size", "factor"],
     lambda: (rn(2, 1, 2, 3), rn(2, 1, 4, 3, s=1), rn(2, 1, 4, 3, s=2), const([[True, True, False, True], [True, False, False, True]])),
     [lambda: (rn(1, 2, 3, 2, s=3), rn(1, 2, 3, 2, s=4), fix(rn(1, 2, 3, 2, s=5)), const([[True, True, True]]))])
pair("rel_pos_bias", "RelativePositionBias", "the table's gradient takes the pairs transposed, j - i for i - j", ["transpose"],
     lambda: (rn(2, 2, 3, 3),), [lambda: (rn(1, 2, 4, 4, s=1),)], make=lambda cls: filled(cls(2, 2)))
pair("moe_combine", "TopKCombine", "the gate's gradient has the diagonal of the softmax's Jacobian only", ["missing term"],
     lambda: (rn(4, 3, 2), rn(3, 4, s=1), 2), [lambda: (rn(3, 2, 3, s=2), rn(2, 3, s=3), 3), lambda: (fix(rn(2, 2, 1, s=4)), rn(2, 2, s=5), 1)])
# ---- norms
pair("instance_norm", "InstanceNorm2d", "the count of pixels is the height squared; right for square images only", ["wrong size", "hard-coded"],
     lambda: (rn(2, 3, 2, 4),), [lambda: (rn(1, 3, 3, 2, s=1),)], make=lambda cls: filled(cls(3), add=1.0))
pair("batchnorm_seq", "BatchNorm", "backward averages over the batch only; hidden in two dimensions", ["reduction", "axis"],
     lambda: (rn(3, 2, 4),), [lambda: (rn(5, 2, s=1),), lambda: (rn(2, 2, 2, 3, s=2),)], make=lambda cls: filled(cls(2), add=1.0))
# ---- losses
pair("kd_loss", "DistillKL", "the inner derivative 1/T is missing; hidden at T = 1", ["missing factor", "option"],
     lambda: (rn(3, 4), fix(rn(3, 4, s=1)), 3.0), [lambda: (rn(2, 5, s=2), rn(2, 5, s=3), 2.0), lambda: (rn(1, 3, s=4), rn(1, 3, s=5), 1.0)])
pair("clip_loss", "ClipLoss", "the probabilities of the texts are not transposed back", ["transpose"],
     lambda: (rn(4, 3, k=0.6), rn(4, 3, s=1, k=0.6), leaf(2.0)), [lambda: (rn(2, 2, s=2), fix(rn(2, 2, s=3)), leaf(1.0)), lambda: (rn(3, 2, s=4), rn(3, 2, s=5), fix(leaf(5.0)))])
pair("pinball", "PinballLoss", "the target's gradient averages over the levels; hidden with one level or with a constant target", ["reduction"],
     lambda: (rn(4, 3), rn(4, s=1), const([0.1, 0.5, 0.9], F64)), [lambda: (rn(3, 1, s=2), fix(rn(3, s=3)), const([0.3], F64)), lambda: (rn(2, 2, s=4), rn(2, s=5), leaf([0.2, 0.8]))])
pair("cosine_sim", "CosineSim", "the second projection divides by the first norm; hidden for vectors of one length", ["wrong tensor"],
     lambda: (rn(3, 4), rn(3, 4, s=1)), [lambda: (rn(2, 2, 3, s=2), fix(rn(2, 2, 3, s=3))), lambda: (rn(2, s=4), rn(2, s=5))])
# ---- layers
pair("snake_op", "Snake", "the sine in alpha's gradient is not squared", ["wrong formula"],
     lambda: (rn(2, 3, 4),), [lambda: (rn(1, 3, 2, s=1),)], make=lambda cls: filled(cls(3), k=0.3, add=1.2))
pair("cumsum_opt", "Cumsum", "backward is never exclusive", ["option"],
     lambda: (rn(3, 4), 1, True, False), [lambda: (rn(2, 3, s=1), 0, True, True), lambda: (rn(5, s=2),), lambda: (rn(2, 2, 2, s=3), -2, False, True)])
pair("lora_linear", "LoRALinear", "A's gradient is scaled twice", ["factor"],
     lambda: (rn(3, 4),), [lambda: (rn(2, 2, 4, s=1),)], make=lambda cls: filled(cls(4, 3, r=2, lora_alpha=6)))
# ---- images
pair("bilinear_points", "SamplePoints", "the y coordinate is scaled by the width; hidden for square maps", ["wrong size", "factor"],
     lambda: (rn(2, 3, 5), un(4, 2, s=1, lo=-0.95, hi=0.95)), [lambda: (rn(1, 4, 4, s=2), un(3, 2, s=3, lo=-0.9, hi=0.9)), lambda: (fix(rn(3, 2, 6, s=4)), un(2, 2, s=5))])
pair("srgb_decode", "SRGBToLinear", "backward's threshold is that of the linear side", ["wrong constant", "branch"],
     lambda: (leaf([[0.001, 0.02, 0.03], [0.1, 0.5, 0.99]]),), [lambda: (un(2, 3, 2, s=1),)])
# ---- sound
pair("mulaw", "MuLawEncode", "there is no None for mu: an error when it is given, hidden at its default", ["arity", "option"],
     lambda: (rn(2, 5, k=0.4), 127), [lambda: (rn(4, s=1, k=0.3),)])
pair("iir_filter", "IIRFilter", "the recursive coefficients' gradient takes the output one sample too late", ["off by one"],
     lambda: (rn(2, 6), rn(3, s=1), rn(2, s=2, k=0.3)), [lambda: (rn(4, s=3), rn(1, s=4), leaf([0.5])), lambda: (rn(1, 2, 3, s=5), rn(2, s=6), rn(4, s=7, k=0.2))])
# ---- physics and chemistry
pair("morse_pbc", "MorsePBC", "the direction of the force ignores the minimum image; hidden away from the box's border", ["wrong tensor", "branch"],
     lambda: (leaf([[0.1, 0.3, 0.2], [3.8, 0.4, 0.5], [1.2, 3.7, 0.9]]), const([[0, 1], [1, 2], [0, 2]]), leaf([4.0, 4.0, 4.0]), 2.0, 1.1, 1.2),
     [lambda: (un(4, 3, s=1, hi=5.0), const([[0, 1], [2, 3], [3, 0]]), const([5.0, 6.0, 7.0], F64), 0.5, 0.8, 1.5)])
pair("angle_bend", "AngleBend", "the third atom's force divides by the first bond's length; hidden for equal bonds", ["wrong tensor"],
     lambda: (rn(5, 3), const([[0, 1, 2], [2, 3, 4], [1, 2, 4]]), un(3, s=1, lo=0.5, hi=2), un(3, s=2, lo=1.2, hi=2.0)),
     [lambda: (rn(3, 3, s=3), const([[2, 0, 1]]), fix(un(1, s=4)), leaf([1.9])), lambda: (fix(rn(3, 3, s=5)), const([[0, 1, 2]]), un(1, s=6), fix(leaf([1.0])))])
pair("implicit_heat", "HeatRod", "the conductivities' gradient takes the state before the step", ["saved tensor", "wrong tensor"],
     lambda: (rn(5),), [lambda: (rn(5, s=1),)], make=lambda cls: filled(cls(5, dt=0.4, steps=2)))
# ---- statistics
pair("vonmises_nll", "VonMisesNLL", "the Bessel functions overflow for a large concentration: NaN", ["nan", "overflow"],
     lambda: (rn(3), rn(3, s=1), leaf([0.5, 4.0, 900.0])), [lambda: (rn(2, 2, s=2), fix(rn(2, 2, s=3)), un(2, 2, s=4, lo=0.1, hi=20))])
pair("clayton_copula", "ClaytonLogDensity", "theta's share in the exponent 1/theta is missing", ["missing term"],
     lambda: (un(4, lo=0.1, hi=0.9), un(4, s=1, lo=0.1, hi=0.9), leaf(1.5)), [lambda: (un(2, 2, s=2, lo=0.2, hi=0.9), fix(un(2, 2, s=3, lo=0.2, hi=0.9)), leaf(0.6)), lambda: (un(3, s=4, lo=0.2, hi=0.9), un(3, s=5, lo=0.2, hi=0.9), fix(leaf(4.0)))])
# ---- optimisation
pair("sparsemax", "Sparsemax", "the mean is taken over all classes, not over the support", ["reduction", "mask"],
     lambda: (rn(3, 5),), [lambda: (rn(2, 4, s=1, k=0.1),), lambda: (rn(3, s=2, k=4.0),)], make=lambda cls: cls().double())
pair("deq_tanh", "DEQ", "the linear system is not transposed; hidden for a symmetric matrix", ["transpose"],
     lambda: (rn(2, 3), rn(3, 3, s=1, k=0.25)), [lambda: (rn(1, 2, s=2), fix(rn(2, 2, s=3, k=0.3))), lambda: (fix(rn(4, 2, s=4)), rn(2, 2, s=5, k=0.2))])
pair("soft_sort", "SoftSort", "what goes back through the sorted values is not put back in the scores' order", ["permutation", "inverse"],
     lambda: (rn(4), 0.8), [lambda: (rn(3, s=1), 2.0), lambda: (leaf([2.0, 1.0, -0.5]), 1.0)])
# ---- finance
pair("nelson_siegel", "NelsonSiegel", "the loading's derivative is NaN at maturity 0", ["nan", "boundary"],
     lambda: (leaf([0.0, 0.5, 2.0, 10.0]), leaf([0.04, -0.02, 0.01]), leaf(1.8)), [lambda: (un(3, s=1, lo=0.1, hi=9), rn(3, s=2), leaf(0.7)), lambda: (fix(un(2, s=3, hi=5)), rn(3, s=4), leaf(3.0))])
# ---- geometry
pair("quat_rotate", "QuatRotate", "the factors of a cross product are in the wrong order", ["sign", "wrong order"],
     lambda: (rn(3, 4), rn(3, 3, s=1)), [lambda: (rn(4, s=2), fix(rn(3, s=3))), lambda: (fix(rn(2, 2, 4, s=4)), rn(2, 2, 3, s=5))])
pair("so3_exp", "ExpSO3", "the square of the hat matrix is differentiated on one side twice", ["transpose", "wrong order"],
     lambda: (rn(2, 3),), [lambda: (leaf([[0.0, 0.0, 0.0], [1e-3, -2e-3, 1e-3]]),), lambda: (rn(3, s=1, k=2.0),)])
pair("poincare_exp0", "ExpMap0", "the curvature is missing in the radial part; hidden at c = 1", ["missing factor", "option"],
     lambda: (rn(3, 2), leaf(0.5)), [lambda: (leaf([[0.0, 0.0], [0.6, -1.0]]), leaf(2.0)), lambda: (rn(2, 2, 3, s=1, k=0.1), fix(leaf(1.0)))])
# ---- sparse and graphs
pair("csr_matvec", "CSRMatVec", "rows and columns change places in the values' gradient", ["transpose"],
     lambda: (const([0, 2, 3, 5]), const([0, 2, 2, 0, 1]), rn(5), rn(3, s=1)), [lambda: (const([0, 0, 2]), const([3, 1]), rn(2, s=2), rn(4, s=3)), lambda: (const([0, 1, 1, 3]), const([0, 0, 1]), fix(rn(3, s=4)), rn(2, s=5))])
pair("gcn_propagate", "GCNPropagate", "the degree's share in the self loop is missing", ["missing term"],
     lambda: (rn(4, 2), const([[0, 1, 2, 3, 0], [1, 0, 1, 2, 2]]), un(5, s=1, lo=0.2)), [lambda: (rn(3, 1, s=2), const([[0, 0, 2], [0, 1, 1]]), un(3, s=3)), lambda: (fix(rn(2, 3, s=4)), const([[0], [1]]), un(1, s=5))])
# ---- complex
pair("modrelu", "ModReLU", "the radial part of the gradient lacks a conjugate", ["complex", "conjugate"],
     lambda: (cn(3, 4),), [lambda: (cn(2, 4, s=1),), lambda: (cn(4, s=2),)], make=lambda cls: filled(cls(4), k=0.4))
pair("spectral_filter", "SpectralFilter", "the Nyquist bin is counted twice; hidden for odd lengths", ["factor", "boundary"],
     lambda: (rn(2, 6), cn(4, s=1)), [lambda: (rn(5, s=2), cn(3, s=3)), lambda: (rn(2, 2, 4, s=4), fix(cn(3, s=5)))])
# ---- recurrence and sequences
pair("peephole_lstm", "PeepholeLSTMCell", "the output gate's peephole sends nothing back to the cell", ["missing term"],
     lambda: (rn(2, 3), (rn(2, 2, s=1), rn(2, 2, s=2))), [lambda: (rn(1, 3, s=3), (fix(rn(1, 2, s=4)), rn(1, 2, s=5)))], make=lambda cls: filled(cls(3, 2)))
pair("fo_pool", "FoPool", "the initial state's gradient lacks the first forget gate", ["off by one", "missing factor"],
     lambda: (rn(3, 2, 2), un(3, 2, 2, s=1), rn(2, 2, s=2)), [lambda: (rn(1, 3, s=3), un(1, 3, s=4), fix(rn(3, s=5))), lambda: (fix(rn(4, 1, s=6)), un(4, 1, s=7), rn(1, s=8))])
pair("soft_dtw", "SoftDTW", "the step along the second axis reads the cost of the step along the first", ["off by one", "wrong tensor"],
     lambda: (un(3, 4, hi=2.0), 0.7), [lambda: (un(2, 2, s=1), 1.0), lambda: (un(1, 3, s=2), 0.1)])
pair("crf_logz", "CRF", "the padding's pairs are counted in the transitions' gradient; hidden for full lengths", ["mask", "padding"],
     lambda: (rn(2, 4, 3), const([4, 2])), [lambda: (rn(3, 2, 3, s=1), const([1, 2, 2])), lambda: (rn(1, 1, 3, s=2), const([1]))], make=lambda cls: filled(cls(3)))
# ---- rendering, chemistry, survival
pair("nerf_composite", "Composite", "a sample is counted among those behind it", ["off by one"],
     lambda: (un(2, 4, hi=2.0), un(2, 4, 3, s=1), un(2, 4, s=2, lo=0.1)), [lambda: (un(1, 2, s=3), fix(un(1, 2, 3, s=4)), fix(un(1, 2, s=5, lo=0.1))), lambda: (un(3, 1, s=6), un(3, 1, 3, s=7), un(3, 1, s=8, lo=0.2))])
pair("bessel_rbf", "BesselRBF", "the envelope's slope is not cut off beyond the cutoff", ["mask"],
     lambda: (leaf([0.4, 1.1, 1.9, 2.3, 2.7]),), [lambda: (un(4, s=1, lo=0.2, hi=1.9),)], make=lambda cls: cls(3, cutoff=2.0).double())
pair("cox_loss", "CoxPH", "backward divides by the samples, not by the events; hidden without censoring", ["reduction", "factor"],
     lambda: (rn(5), const([1.0, 0, 1, 1, 0], F64)), [lambda: (rn(3, s=1, k=3), const([0.0, 1, 0], F64)), lambda: (rn(4, s=2), const([1.0, 1, 1, 1], F64))])
# ---- quantisers
pair("fake_quant_ch", "FakeQuantPerChannel", "the scale gets nothing from clipped values", ["mask", "missing term"],
     lambda: (rn(2, 5, k=2.0), un(2, 1, s=1, lo=0.2, hi=0.4), const([[3], [8]]), 0, 15), [lambda: (rn(3, 4, s=2), un(3, 1, s=3, lo=0.1, hi=0.3), const([[0], [0], [0]]), -8, 7)], surrogate=[0])
pair("vq_ste", "VectorQuantizeSTE", "the indices are kept in eight bits; hidden up to 256 codes", ["dtype", "overflow"],
     lambda: (leaf([[1.02, 0.4], [270.1, 0.3], [299.0, 0.7]]), torch.stack([torch.arange(300.0, dtype=F64), torch.full((300,), 0.5, dtype=F64)], 1).requires_grad_()),
     [lambda: (rn(4, 2), rn(3, 2, s=1))], surrogate=[0])
# ---- common layers
pair("k_winners", "KWinners", "the mask is kept on the class: the last call's serves all", ["state"],
     lambda: (rn(3, 5),), [lambda: (rn(2, 4, s=1),)], make=lambda cls: cls(2), marked="interleaved")
pair("relu_n", "ReLUN", "the incoming gradient is changed in place", ["modified grad_output", "in-place"],
     lambda: (rn(3, 4, k=2.0), 1.5), [lambda: (rn(5, s=1, k=4),)])
pair("hadamard", "Hadamard", "backward takes the incoming gradient to be contiguous", ["contiguous", "strided"],
     lambda: (rn(2, 3, 4),), [lambda: (rn(3, 8, s=1),), lambda: (rn(2, s=2),)], marked="strided")
# ---- more layers
pair("fast_fusion", "WeightedFusion", "a feature's entry of needs_input_grad is read one place too early: None where the feature before it is frozen", ["needs_input_grad", "none", "off by one"],
     lambda: (fix(rn(2, 3)), rn(2, 3, s=1), rn(2, 3, s=2)), [lambda: (rn(1, 2, 2, s=3), rn(1, 2, 2, s=4), fix(rn(1, 2, 2, s=5)))],
     make=lambda cls: (lambda m: (m.w.data.copy_(const([0.7, 1.6, 0.4])), m)[1])(cls(3, 1e-2).double()))
pair("gelu_tanh", "GELUTanh", "the hyperbolic tangent is saved in forward, a constant to the second derivative", ["saved tensor", "double backward"],
     lambda: (rn(3, 4),), [lambda: (rn(5, s=1, k=3),)], order="second")
