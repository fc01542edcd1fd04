"""Cases of everyday deep-learning operators: right gradients and wrong twins."""

# The five operators of torch.library stand in two namespaces, ..._v1 and ..._v2, one for each side in no
# fixed order: with one name for both, loading the second file frees the first's operator, and calling
# the first afterwards crashed the process now and then. Apart from that line the twins differ in the fault alone.

import math

import torch


def gen(seed):
    return torch.Generator().manual_seed(seed)


def rn(seed, *shape, scale=1.0):
    """normal values, differentiable"""
    return (torch.randn(shape, generator=gen(seed), dtype=torch.float64) * scale).requires_grad_()


def fx(seed, *shape, scale=1.0):
    """normal values, fixed"""
    return torch.randn(shape, generator=gen(seed), dtype=torch.float64) * scale


def ru(seed, *shape, low=0.0, high=1.0):
    """uniform values, differentiable"""
    return (torch.rand(shape, generator=gen(seed), dtype=torch.float64) * (high - low) + low).requires_grad_()


def fu(seed, *shape, low=0.0, high=1.0):
    return ru(seed, *shape, low=low, high=high).detach()


def ri(seed, high, *shape):
    return torch.randint(0, high, shape, generator=gen(seed))


def lt(*values):
    return torch.tensor(values)


def cn(seed, *shape, grad=True):
    return torch.randn(shape, generator=gen(seed), dtype=torch.complex128).requires_grad_(grad)


def keep(seed, *shape, p=0.6):
    return torch.rand(shape, generator=gen(seed)) < p


def fill(module, seed=0, scale=0.5):
    module = module.double()
    g = gen(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * scale)
    return module


def boxes(seed, n):
    low = fu(seed, n, 2)
    return torch.cat([low, low + fu(seed + 1000, n, 2, low=0.2, high=1.5)], 1).requires_grad_()


def reversal_surrogate(x, strength=1.0, detach_mask=None):
    """the declared gradient of the reversal layer as that of a true function"""
    tail = (-1,) + (1,) * (x.dim() - 1)
    s = strength.view(tail) if isinstance(strength, torch.Tensor) else strength
    y = -s * x
    return y if detach_mask is None else y.masked_fill(detach_mask.view(tail), 0)


def lsq_surrogate(x0, step0, bits=8, signed=True):
    """straight-through: the rounding error is a constant, the step's gradient is scaled"""
    qn, qp = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
    scale = (x0.numel() * qp) ** -0.5
    v0 = (x0 / step0).clamp(qn, qp)
    error = v0.round() - v0

    def f(x, step, bits=8, signed=True):
        s = step0 + scale * (step - step0)
        return ((x / s).clamp(qn, qp) + error) * s

    return f


def dead_channel(seed, *shape):
    """activations whose channel 1 is zero everywhere"""
    x = fx(seed, *shape)
    x[..., 1] = 0
    return x.requires_grad_()


def shifted(seed, offset, *shape):
    return (fx(seed, *shape) + offset).requires_grad_()


CASES = [
    dict(
        name='clamped_swiglu',
        object="ClampedSwiGLU", kind="function", order="first",
        bug="the gate's gradient is cut below -limit too, though forward clamps the gate from above only",
        fits=["value", "missing"],
        inputs=lambda: (rn(1, 3, 8, scale=2.0), 1.702, 1.0),
        more=[lambda: (rn(2, 2, 2, 6), 1.0, 7.0), lambda: (rn(3, 10, scale=3.0), 1.702, 2.5)],
    ),
    dict(
        name='geglu',
        object="geglu", kind="callable", order="first",
        bug="the derivative of the cubic inside tanh lacks its factor 3",
        fits=["value"],
        inputs=lambda: (rn(4, 3, 8, scale=2.0),),
        more=[lambda: (rn(5, 4, 3), 0), lambda: (rn(6, 2, 4, 2), 1)],
    ),
    dict(
        name='gemma_rms_norm',
        object="gemma_rms_norm", kind="callable", order="first",
        bug="the projection term of the input gradient uses the unweighted incoming gradient",
        fits=["value"],
        inputs=lambda: (rn(7, 3, 5), rn(8, 5, scale=0.5)),
        more=[lambda: (rn(9, 2, 2, 4), None, 1e-5), lambda: (fx(10, 4, 3), rn(11, 3), 1e-6, 0.0), lambda: (rn(12, 6), rn(13, 6), 0.1)],
    ),
    dict(
        name='layer_norm_affine',
        object="LayerNormAffine", kind="function", order="first",
        bug="the bias's gradient is returned only if the weight needs one (index of needs_input_grad off by one)",
        fits=["none", "missing", "value"],
        inputs=lambda: (rn(14, 3, 4), fx(15, 4), rn(16, 4), 1e-5),
        more=[lambda: (rn(17, 2, 3, 3), rn(18, 3), rn(19, 3)), lambda: (rn(20, 5), None, rn(21, 5)), lambda: (rn(22, 4, 5),), lambda: (rn(23, 6), rn(24, 6), None, 0.2)],
    ),
    dict(
        name='group_norm_module',
        object="GroupNorm", kind="module", order="first",
        make=lambda cls: fill(cls(2, 4), 25),
        bug="the second mean of the input gradient is taken for each channel instead of for each group",
        fits=["value"],
        inputs=lambda: (rn(26, 2, 4, 3),),
        more=[lambda: (rn(27, 1, 4, 2, 2),), lambda: (fx(28, 2, 4, 5),)],
    ),
    dict(
        name='batch_norm_stats',
        object="BatchNormFunction", kind="function", order="first",
        bug="the number of averaged values is the batch size alone, wrong for inputs with further axes",
        fits=["value"],
        inputs=lambda: (rn(29, 3, 2, 4), rn(30, 2), rn(31, 2), fx(32, 2), fu(33, 2, low=0.5, high=2.0), True, 1e-5),
        more=[lambda: (rn(34, 5, 3), rn(35, 3), rn(36, 3), fx(37, 3), fu(38, 3, low=0.5)),
              lambda: (rn(39, 2, 2, 2, 3), rn(40, 2), rn(41, 2), fx(42, 2), fu(43, 2, low=0.5), False, 1e-3),
              lambda: (fx(44, 4, 2, 2), rn(45, 2), rn(46, 2), fx(47, 2), fu(48, 2, low=0.5), True, 1e-2)],
    ),
    dict(
        name='masked_instance_norm',
        object="masked_instance_norm", kind="callable", order="first",
        bug="padded frames receive the mean term, as the final product with the mask is missing",
        fits=["value"],
        inputs=lambda: (rn(49, 2, 3, 5), lt(5, 3)),
        more=[lambda: (rn(50, 2, 2, 4), lt(4, 4), 0.1), lambda: (rn(51, 3, 1, 4), lt(2, 4, 3))],
    ),
    dict(
        name='weight_norm_dim',
        object="weight_norm", kind="callable", order="first",
        bug="the projection term of v's gradient lacks the factor g / norm",
        fits=["value"],
        inputs=lambda: (rn(52, 4, 3), rn(53, 1, 3), -1),
        more=[lambda: (rn(54, 3, 2, 3), rn(55, 3, 1, 1)), lambda: (rn(56, 3, 4), rn(57), None), lambda: (rn(58, 2, 3, 2), fx(59, 1, 3, 1), 1)],
    ),
    dict(
        name='spectral_linear',
        object="LipschitzLinear", kind="module", order="first",
        make=lambda cls: fill(cls(4, 3, coeff=0.5), 60, 1.0).update(),
        bug="the gradient through sigma lacks the division by coeff",
        fits=["value"],
        inputs=lambda: (rn(61, 3, 4),),
        more=[lambda: (fx(62, 2, 2, 4),), lambda: (rn(63, 4),)],
    ),
    dict(
        name='sdpa',
        object="ScaledDotProductAttention", kind="function", order="first",
        bug="the mask's gradient is multiplied by the scale, though the mask is added behind the scaling",
        fits=["value"],
        inputs=lambda: (rn(64, 2, 3, 4), rn(65, 2, 3, 4), rn(66, 2, 3, 2), rn(67, 3, 3)),
        more=[lambda: (rn(68, 3, 2), rn(69, 4, 2), rn(70, 4, 3), None, False, 0.7),
              lambda: (rn(71, 2, 3, 2), rn(72, 2, 3, 2), fx(73, 2, 3, 2), rn(74, 2, 1, 3), True),
              lambda: (fx(75, 3, 2), rn(76, 3, 2), rn(77, 3, 2), fx(78, 3, 3), True, 1.0)],
    ),
    dict(
        name='gqa_attention',
        object="gqa_attention", kind="callable", order="first",
        bug="the repeated heads are folded as if the kv heads were tiled instead of interleaved",
        fits=["value"],
        inputs=lambda: (rn(79, 1, 4, 3, 2), rn(80, 1, 2, 3, 2), rn(81, 1, 2, 3, 2)),
        more=[lambda: (rn(82, 2, 2, 4, 2), rn(83, 2, 2, 4, 2), rn(84, 2, 2, 4, 2), 2), lambda: (rn(85, 1, 3, 3, 2), fx(86, 1, 1, 3, 2), rn(87, 1, 1, 3, 2), 1)],
    ),
    dict(
        name='partial_rotary',
        object="apply_partial_rotary", kind="callable", order="first",
        bug="backward's positions start at zero and ignore the offset",
        fits=["value"],
        inputs=lambda: (rn(88, 2, 3, 6), 4, 2),
        more=[lambda: (rn(89, 4, 4),), lambda: (rn(90, 1, 2, 3, 4), 2, 5, 100.0)],
    ),
    dict(
        name='t5_relative_bias',
        object="RelativePositionBias", kind="function", order="first",
        bug="queries and keys are swapped in the table's gradient",
        fits=["value"],
        inputs=lambda: (rn(91, 2, 2, 3, 3), rn(92, 8, 2), 16),
        more=[lambda: (rn(93, 1, 1, 2, 6), rn(94, 8, 1)), lambda: (fx(95, 1, 2, 4, 4), rn(96, 8, 2), 8)],
    ),
    dict(
        name='embedding_bag_mean',
        object="MeanEmbeddingBag", kind="function", order="first",
        bug="the per-sample weights' gradient divides by the bag's full length and reaches padding",
        fits=["value"],
        inputs=lambda: (rn(97, 5, 3), torch.tensor([[1, 2, 2, 0], [4, 0, 0, 0], [3, 1, 3, 3]]), 0, rn(98, 3, 4)),
        more=[lambda: (rn(99, 4, 2), ri(100, 4, 3, 3)), lambda: (rn(101, 4, 2), torch.tensor([[0, 0], [1, 0]]), 0), lambda: (fx(102, 4, 2), ri(103, 4, 2, 3), None, rn(104, 2, 3))],
    ),
    dict(
        name='lora_linear',
        object="LoRALinear", kind="module", order="first",
        make=lambda cls: fill(cls(4, 3, r=2, alpha=5.0, train_bias=True), 105),
        bug="the adapter's scaling is applied twice in the input's gradient",
        fits=["value"],
        inputs=lambda: (rn(106, 3, 4),),
        more=[lambda: (fx(107, 2, 2, 4),), lambda: (rn(108, 2, 3, 4),)],
    ),
    dict(
        name='causal_depthwise_conv1d',
        object="CausalDepthwiseConv1d", kind="function", order="first",
        bug="the taps are not reversed in the input's gradient",
        fits=["value"],
        inputs=lambda: (rn(110, 2, 2, 5), rn(111, 2, 3), rn(112, 2), "silu"),
        more=[lambda: (rn(113, 1, 3, 4), rn(114, 3, 4)), lambda: (fx(115, 2, 1, 6), rn(116, 1, 2), rn(117, 1)), lambda: (rn(118, 1, 2, 2), rn(119, 2, 3), None, "silu")],
    ),
    dict(
        name='ws_conv2d',
        object="WSConv2d", kind="module", order="first",
        make=lambda cls: fill(cls(2, 2, 2, stride=1, padding=1, groups=1), 120, 1.0),
        bug="the mean of the gradient is not subtracted for the standardised weights",
        fits=["value", "missing"],
        inputs=lambda: (rn(121, 1, 2, 3, 3) ,),
        more=[lambda: (fx(122, 2, 2, 2, 2),), lambda: (rn(123, 2, 2, 2, 4),)],
    ),
    dict(
        name='pixel_shuffle',
        object="depth_to_space", kind="callable", order="first",
        bug="row and column inside a block are swapped on the way back",
        fits=["value"],
        inputs=lambda: (rn(124, 2, 4, 2, 2),),
        more=[lambda: (rn(125, 1, 9, 1, 2), 3), lambda: (rn(126, 1, 8, 2, 1), 2)],
    ),
    dict(
        name='avg_pool1d_nopad',
        object="AvgPool1dExcludePad", kind="function", order="first",
        bug="the gradient is divided by the kernel size, also where forward counted fewer values",
        fits=["value"],
        inputs=lambda: (rn(127, 2, 2, 6), 3, 2, 1),
        more=[lambda: (rn(128, 1, 2, 6), 2), lambda: (rn(129, 2, 1, 5), 3, 1, 1)],
    ),
    dict(
        name='lp_pool1d',
        object="LPPool1d", kind="function", order="first",
        bug="a window of zeros gives 0 / 0, so NaN instead of no gradient",
        fits=["nan"],
        inputs=lambda: (torch.tensor([[0.5, -1.2, 0.0, 0.0, 0.7, 0.3], [1.5, 0.2, -0.4, 2.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True), 2.0, 2, 2),
        more=[lambda: (rn(130, 2, 7), 3.0, 3, 2), lambda: (rn(131, 2, 2, 5), 2.5, 2, 1)],
    ),
    dict(
        name='gem_pool',
        object="gem", kind="callable", order="first",
        bug="the exponent's gradient lacks the term of the outer power 1/p",
        fits=["value", "missing"],
        inputs=lambda: (rn(132, 2, 2, 3, 2), torch.tensor([3.0], dtype=torch.float64, requires_grad=True), 0.1),
        more=[lambda: (ru(133, 1, 3, 4, low=0.1, high=2.0), torch.tensor(2.2, dtype=torch.float64)),
              lambda: (fu(134, 2, 1, 2, 2, low=0.1, high=2.0), torch.tensor([1.7], dtype=torch.float64, requires_grad=True))],
    ),
    dict(
        name='weighted_smooth_ce',
        object="SmoothedCrossEntropy", kind="function", order="first",
        bug="the total weight of a kept row is taken as one, which class weights make untrue",
        fits=["value"],
        inputs=lambda: (rn(135, 5, 4), lt(0, 2, -100, 3, 1), fu(136, 4, low=0.3, high=2.0), 0.1),
        more=[lambda: (rn(137, 3, 5), lt(4, 0, 2)), lambda: (rn(138, 4, 3), lt(0, 1, 9, 2), fu(139, 3, low=0.2), 0.2, 9, "sum"), lambda: (rn(140, 3, 3), lt(1, 1, 0), None, 0.3)],
    ),
    dict(
        name='sigmoid_focal_loss',
        object="sigmoid_focal_loss", kind="callable", order="first",
        bug="the derivative of p_t holds for hard targets only, though forward takes soft ones",
        fits=["value"],
        inputs=lambda: (rn(141, 3, 4), fu(142, 3, 4)),
        more=[lambda: (rn(143, 6), keep(144, 6).double(), -1.0, 1.5, "mean"), lambda: (rn(145, 2, 5), keep(146, 2, 5).double(), 0.6, 3.0, "sum")],
    ),
    dict(
        name='soft_dice_loss',
        object="soft_dice_loss", kind="callable", order="first",
        bug="the squared denominator's derivative is taken as p instead of 2 p",
        fits=["value"],
        inputs=lambda: (ru(147, 2, 2, 3), keep(148, 2, 2, 3).double(), ~keep(149, 2, 3)),
        more=[lambda: (ru(150, 1, 3, 2, 2), keep(151, 1, 3, 2, 2).double(), None, 0.1, "none"), lambda: (ru(152, 2, 1, 5), fu(153, 2, 1, 5))],
    ),
    dict(
        name='lovasz_hinge',
        object="LovaszHingeLoss", kind="module", order="first",
        make=lambda cls: cls().double(),
        bug="the sorting is not undone: the permutation is applied again instead of its inverse",
        fits=["value"],
        inputs=lambda: (rn(154, 2, 2, 3), keep(155, 2, 2, 3)),
        more=[lambda: (rn(156, 3, 5), keep(157, 3, 5)), lambda: (rn(158, 1, 6), keep(159, 1, 6).long())],
    ),
    dict(
        name='clip_contrastive',
        object="ClipLoss", kind="module", order="first",
        make=lambda cls: cls(0.5).double(),
        bug="the matrix of logit gradients is not transposed for the second modality",
        fits=["value"],
        inputs=lambda: (rn(160, 4, 3), rn(161, 4, 3)),
        more=[lambda: (rn(162, 3, 5), fx(163, 3, 5)), lambda: (fx(164, 2, 4), rn(165, 2, 4))],
    ),
    dict(
        name='triplet_swap_loss',
        object="triplet_margin_loss", kind="callable", order="first",
        bug="with swap the positive lacks the gradient of its distance to the negative",
        fits=["value", "missing"],
        inputs=lambda: (rn(166, 5, 3), rn(167, 5, 3), rn(168, 5, 3), 2.0, True),
        more=[lambda: (rn(169, 4, 2), rn(170, 4, 2), fx(171, 4, 2)), lambda: (rn(172, 3, 4), fx(173, 3, 4), rn(174, 3, 4), 0.5, True, 1e-6, "none")],
    ),
    dict(
        name='quantile_huber',
        object="QuantileHuberLoss", kind="function", order="first",
        bug="the clamp's bound is kappa on the already divided error, so only kappa = 1 is right",
        fits=["value"],
        inputs=lambda: (rn(175, 3, 4), fx(176, 3, 3), fu(177, 4), fu(178, 3), 0.5),
        more=[lambda: (rn(179, 2, 3), rn(180, 2, 5, scale=2.0), fu(181, 2, 3)), lambda: (fx(182, 2, 3), rn(183, 2, 2), fu(184, 3), None, 2.0)],
    ),
    dict(
        name='pairwise_rank_loss',
        object="ranknet_loss", kind="callable", order="first",
        bug="only the better document of each pair gets a gradient, the worse one's share (the column sum) is missing",
        fits=["value", "missing"],
        inputs=lambda: (rn(185, 2, 5), ri(186, 4, 2, 5)),
        more=[lambda: (rn(187, 3, 4), ri(188, 3, 3, 4), keep(189, 3, 4, p=0.8), 2.0), lambda: (rn(190, 1, 6), ri(191, 4, 1, 6), None, 0.5, True)],
    ),
    dict(
        name='l2_normalize',
        object="L2Normalize", kind="function", order="first",
        bug="vectors shorter than eps lose their radial component, though forward divides them by a constant",
        fits=["value"],
        inputs=lambda: (torch.tensor([[0.3, -0.4, 1.2], [0.02, 0.03, -0.01], [-1.0, 0.1, 0.4]], dtype=torch.float64, requires_grad=True), -1, 0.1),
        more=[lambda: (rn(192, 3, 4), 0), lambda: (rn(193, 2, 3, 2), 1, 1.5)],
    ),
    dict(
        name='linear_scan',
        object="LinearScan", kind="function", order="first",
        bug="the first gate's gradient takes the initial state for zero even if one is given",
        fits=["value", "missing"],
        inputs=lambda: (ru(200, 2, 4, 3), rn(201, 2, 4, 3), rn(202, 2, 3)),
        more=[lambda: (ru(203, 1, 5, 2), rn(204, 1, 5, 2)), lambda: (ru(205, 2, 3, 2), fx(206, 2, 3, 2), fx(207, 2, 2))],
    ),
    dict(
        name='selective_scan',
        object="SelectiveScan", kind="function", order="first",
        bug="the step's gradient misses the path through the discretised input delta * B * u",
        fits=["value", "missing"],
        inputs=lambda: (rn(208, 1, 2, 4), rn(209, 1, 2, 4), rn(210, 2, 3, scale=0.5), rn(211, 1, 3, 4), rn(212, 1, 3, 4), rn(213, 2), True),
        more=[lambda: (rn(214, 2, 2, 3), ru(215, 2, 2, 3), rn(216, 2, 2), rn(217, 2, 2, 3), rn(218, 2, 2, 3)),
              lambda: (fx(219, 1, 2, 3), rn(220, 1, 2, 3), fx(221, 2, 2), rn(222, 1, 2, 3), fx(223, 1, 2, 3), None, True)],
    ),
    dict(
        name='segment_softmax',
        object="SegmentSoftmax", kind="function", order="first",
        bug="the inner product is summed over all segments instead of over the own one",
        fits=["value"],
        inputs=lambda: (rn(224, 6, 2), lt(0, 1, 0, 2, 1, 0)),
        more=[lambda: (rn(225, 5), lt(3, 3, 1, 0, 1), 5), lambda: (rn(226, 4, 2, 2), lt(0, 0, 0, 0))],
    ),
    dict(
        name='domain_reversal',
        object="DomainGradientReversal", kind="function", order="first",
        bug="the strength is forgotten where a mask is given",
        fits=["value"],
        surrogate=lambda *args: reversal_surrogate,
        inputs=lambda: (rn(227, 3, 4), 0.3, torch.tensor([False, True, False])),
        more=[lambda: (rn(228, 2, 3), 0.7), lambda: (rn(229, 3, 2, 2), fu(230, 3)), lambda: (rn(231, 3), fu(232, 3), torch.tensor([True, False, False]))],
    ),
    dict(
        name='checkpointed_ffn',
        object="CheckpointedFFN", kind="function", order="first",
        bug="the hidden layer is computed again without its bias",
        fits=["value"],
        inputs=lambda: (rn(233, 3, 3), rn(234, 5, 3), rn(235, 5), rn(236, 2, 5), rn(237, 2)),
        more=[lambda: (rn(238, 2, 2, 2), rn(239, 4, 2), rn(240, 4), rn(241, 2, 4), rn(242, 2), "relu2"),
              lambda: (fx(243, 3), rn(244, 4, 3), fx(245, 4), rn(246, 3, 4), rn(247, 3))],
    ),
    dict(
        name='sparsemax',
        object="Sparsemax", kind="function", order="first",
        bug="the subtracted mean also counts the gradients of outputs outside the support",
        fits=["value"],
        inputs=lambda: (rn(248, 3, 5),),
        more=[lambda: (rn(249, 4, 3), 0), lambda: (rn(250, 2, 3, 2, scale=0.2), 1)],
    ),
    dict(
        name='snake_activation',
        object="SnakeBeta", kind="function", order="first",
        bug="with logscale the magnitude's gradient lacks the factor exp(beta)",
        fits=["value"],
        inputs=lambda: (rn(251, 2, 3, 4), rn(252, 3), rn(253, 3)),
        more=[lambda: (rn(254, 1, 2, 5), ru(255, 2, low=0.5, high=2.0), ru(256, 2, low=0.5, high=2.0), False), lambda: (fx(257, 2, 2, 3), rn(258, 2), fx(259, 2), True)],
    ),
    dict(
        name='s4d_kernel',
        object="S4DKernel", kind="function", order="first",
        bug="the gradient of the complex A is not conjugated",
        fits=["value"],
        inputs=lambda: (rn(260, 2, scale=0.3), cn(261, 2, 3), cn(262, 2, 3), 4),
        more=[lambda: (fx(263, 1, scale=0.5), cn(264, 1, 4), cn(265, 1, 4, grad=False), 5), lambda: (rn(266, 3), cn(267, 3, 2, grad=False), cn(268, 3, 2), 2)],
    ),
    dict(
        name='layerscale_droppath',
        object="residual_layerscale", kind="callable", order="first",
        bug="backward returns one gradient too few",
        fits=["count"],
        inputs=lambda: (rn(269, 3, 2, 4), rn(270, 3, 2, 4), rn(271, 4), torch.tensor([True, False, True]), 0.25),
        more=[lambda: (rn(272, 2, 3), rn(273, 2, 3), rn(274, 3)), lambda: (fx(275, 2, 2, 2, 2), rn(276, 2, 2, 2, 2), rn(277, 2), torch.tensor([False, True]), 0.5)],
    ),
    dict(
        name='blur_downsample',
        object="blur_downsample", kind="callable", order="first",
        bug="the left border is folded back without mirroring it, which shows for borders of two and more",
        fits=["value"],
        inputs=lambda: (rn(278, 1, 2, 7), 5, 2),
        more=[lambda: (rn(279, 2, 1, 6),), lambda: (rn(280, 1, 2, 6), 4, 1), lambda: (rn(281, 2, 2, 5), 2, 2)],
    ),
    dict(
        name='lsq_quantize',
        object="lsq_quantize", kind="callable", order="first",
        bug="values below the range add qp instead of qn to the step's gradient",
        fits=["value"],
        surrogate=lambda *args: lsq_surrogate(*args),
        inputs=lambda: (rn(282, 3, 5), torch.tensor([0.3], dtype=torch.float64, requires_grad=True), 3, True),
        more=[lambda: (rn(283, 8), torch.tensor(0.1, dtype=torch.float64, requires_grad=True), 4, False), lambda: (rn(284, 2, 3), torch.tensor([0.05], dtype=torch.float64))],
    ),
    dict(
        name='fused_linear_cross_entropy',
        object="fused_linear_cross_entropy", kind="callable", order="first",
        bug="the weight's gradient keeps only the last chunk's share",
        fits=["value", "missing"],
        inputs=lambda: (rn(285, 5, 3), rn(286, 4, 3), lt(0, 3, -100, 1, 2), -100, None, 2),
        more=[lambda: (rn(287, 4, 2), rn(288, 3, 2), lt(2, 0, 1, 1)), lambda: (rn(289, 4, 3), fx(290, 5, 3), lt(4, 9, 0, 2), 9, 2.0, 3), lambda: (rn(291, 3, 2), rn(292, 3, 2), lt(0, 1, 2), -1, 1.5, 3)],
    ),
    dict(
        name='scatter_max',
        object="scatter_max", kind="callable", order="first",
        bug="the gradient of empty segments runs into the last row of the source",
        fits=["value"],
        inputs=lambda: (rn(293, 5, 3), lt(0, 3, 0, 3, 1), 5),
        more=[lambda: (rn(294, 6), lt(0, 1, 2, 0, 1, 2)), lambda: (rn(295, 4, 2, 2), lt(1, 1, 0, 1), 2, -1.0)],
    ),
    dict(
        name='topk_router',
        object="topk_router", kind="callable", order="first",
        bug="the renormalisation's second term lacks one division by the kept probability",
        fits=["value"],
        inputs=lambda: (rn(296, 4, 5), 2, True, 2.5),
        more=[lambda: (rn(297, 3, 4), 3, False), lambda: (rn(298, 2, 2, 4), 1, False, 1.5), lambda: (rn(299, 3, 3),)],
    ),
    dict(
        name='linear_interp1d',
        object="resample_linear", kind="callable", order="first",
        bug="right neighbours that several outputs share receive only one of their gradients",
        fits=["value", "missing"],
        inputs=lambda: (rn(300, 2, 4), 9),
        more=[lambda: (rn(301, 2, 2, 5), 3), lambda: (rn(302, 6), 4, True), lambda: (rn(303, 2, 3), 7, True)],
    ),
    dict(
        name='giou_loss',
        object="giou_loss", kind="callable", order="first",
        bug="the union's dependence on the intersection is left out",
        fits=["value", "missing"],
        inputs=lambda: (torch.tensor([[0.1, 0.2, 1.4, 1.7], [2.0, 2.0, 3.1, 2.8], [0.0, 0.5, 2.0, 0.9]], dtype=torch.float64, requires_grad=True), torch.tensor([[0.4, 0.0, 1.9, 1.2], [0.0, 0.1, 1.0, 1.2], [0.5, 0.6, 1.5, 0.8]], dtype=torch.float64)),
        more=[lambda: (boxes(304, 5), boxes(305, 5).detach(), "none"), lambda: (boxes(306, 3), boxes(307, 3).detach(), "sum")],
    ),
    dict(
        name='gru_cell',
        object="GRUCell", kind="module", order="first",
        make=lambda cls: fill(cls(2, 3), 310),
        bug="the hidden projection of the candidate lacks the reset gate's factor",
        fits=["value"],
        inputs=lambda: (rn(311, 2, 2), rn(312, 2, 3)),
        more=[lambda: (rn(313, 3, 2),), lambda: (fx(314, 1, 2), rn(315, 1, 3))],
    ),
    dict(
        name='clipped_lstm_cell',
        object="ClippedLSTMCell", kind="module", order="first",
        make=lambda cls: fill(cls(2, 2, cell_clip=0.5), 316),
        bug="the clipped cell is saved, so that the clip's mask is always true in backward",
        fits=["value"],
        inputs=lambda: (rn(317, 3, 2), rn(318, 3, 2), rn(319, 3, 2, scale=1.5)),
        more=[lambda: (rn(320, 2, 2), fx(321, 2, 2), rn(322, 2, 2, scale=0.1)), lambda: (fx(323, 2, 2), rn(324, 2, 2), fx(325, 2, 2))],
    ),
    dict(
        name='grouped_linear_shuffle',
        object="GroupedLinear", kind="module", order="first",
        make=lambda cls: fill(cls(4, 6, 2), 326),
        bug="backward repeats the shuffle instead of undoing it, the same only for as many groups as outputs of a group",
        fits=["value"],
        inputs=lambda: (rn(327, 3, 4),),
        more=[lambda: (fx(328, 2, 2, 4),), lambda: (rn(329, 4),)],
    ),
    dict(
        name='kronecker_linear',
        object="KroneckerLinear", kind="module", order="first",
        make=lambda cls: fill(cls((2, 3), (3, 2), rank=2), 330),
        bug="the input's gradient is laid out with the two factors' axes exchanged (transposed)",
        fits=["value"],
        inputs=lambda: (rn(331, 2, 6),),
        more=[lambda: (fx(332, 3, 6),), lambda: (rn(333, 2, 2, 6),)],
    ),
    dict(
        name='global_response_norm',
        object="GRN", kind="module", order="first",
        make=lambda cls: fill(cls(3), 334),
        bug="a channel of zeros gives NaN, though no gradient through its norm exists to add",
        fits=["nan"],
        inputs=lambda: (dead_channel(335, 2, 2, 2, 3),),
        more=[lambda: (rn(336, 1, 2, 3, 3),), lambda: (fx(337, 2, 1, 2, 3),)],
    ),
    dict(
        name='cosine_attention',
        object="CosineAttention", kind="module", order="first",
        make=lambda cls: fill(cls(2, 3, max_scale=2.0), 341, 1.0),
        bug="a temperature above its clamp still receives a gradient",
        fits=["value"],
        inputs=lambda: (rn(341, 2, 2, 3, 2), rn(342, 2, 2, 3, 2), rn(343, 2, 2, 3, 2)),
        more=[lambda: (rn(344, 1, 2, 3, 3), rn(345, 1, 2, 3, 3), fx(346, 1, 2, 3, 2)), lambda: (fx(347, 1, 2, 3, 2), rn(348, 1, 2, 3, 2), rn(349, 1, 2, 3, 1))],
    ),
    dict(
        name='maxout',
        object="Maxout", kind="module", order="first",
        make=lambda cls: fill(cls(3, 2, 3), 350),
        bug="the incoming gradient is viewed, which fails if it is not contiguous",
        fits=["layout"],
        inputs=lambda: (rn(351, 2, 3, 3),),
        more=[lambda: (rn(352, 4, 3),), lambda: (fx(353, 2, 3),)],
    ),
    dict(
        name='beta_softplus',
        object="SDFSoftplus", kind="module", order="second",
        make=lambda cls: fill(cls(3, 2, beta=3.0, centred=True), 354),
        bug="the slope is computed in forward and saved as a constant, so second derivatives lack its derivative",
        fits=["value", "missing"],
        inputs=lambda: (rn(355, 3, 3),),
        more=[lambda: (rn(356, 2, 2, 3),), lambda: (fx(357, 2, 3),)],
    ),
    dict(
        name='gated_residual',
        object="GatedResidual", kind="module", order="first",
        make=lambda cls: fill(cls(3), 358),
        bug="the gate is kept on the class, so that a second call before backward overwrites it",
        fits=["state"],
        inputs=lambda: (rn(359, 2, 3, scale=3.0), rn(360, 2, 3, scale=3.0)),
        more=[lambda: (rn(361, 2, 2, 3), fx(362, 2, 2, 3)), lambda: (fx(363, 3), rn(364, 3))],
    ),
    dict(
        name='bias_quick_gelu',
        object="bias_quick_gelu", kind="callable", order="first",
        bug="the input is saved in bfloat16 to spare memory, whatever its own precision",
        fits=["dtype", "value"],
        inputs=lambda: (shifted(370, 18.0, 3, 4), shifted(371, -18.0, 4)),
        more=[lambda: (rn(372, 2, 2, 3), fx(373, 3)), lambda: (fx(374, 5), rn(375, 5))],
    ),
    dict(
        name='fused_add_rms_norm',
        object="fused_add_rms_norm", kind="callable", order="first",
        bug="the gradient of the passed-on sum goes to the residual only, not to x",
        fits=["value", "missing"],
        inputs=lambda: (rn(376, 2, 4), rn(377, 2, 4), rn(378, 4)),
        more=[lambda: (rn(379, 2, 2, 3), fx(380, 2, 2, 3), rn(381, 3), 0.1), lambda: (fx(382, 5), rn(383, 5), fx(384, 5))],
    ),
    dict(
        name='coo_spmm',
        object="coo_spmm", kind="callable", order="first",
        bug="nodes that several edges read receive only one edge's gradient",
        fits=["value", "missing"],
        inputs=lambda: (lt(0, 1, 1, 2, 0), lt(1, 0, 1, 3, 3), rn(385, 5), rn(386, 4, 3), 3),
        more=[lambda: (lt(0, 0, 1), lt(2, 0, 1), rn(387, 3), fx(388, 3, 2), 4), lambda: (lt(1, 1, 0, 1), lt(0, 0, 1, 1), fx(389, 4), rn(390, 2, 2), 2)],
    ),
    dict(
        name='softcap_scores',
        object="softcap_scores", kind="callable", order="first",
        bug="the cap's derivative is taken at the unscaled scores",
        fits=["value"],
        inputs=lambda: (rn(391, 2, 3, 3, scale=2.0), torch.ones(3, 3, dtype=torch.bool).tril(), 2.0, 0.5),
        more=[lambda: (rn(392, 3, 4, scale=4.0), keep(393, 3, 4), 3.0), lambda: (rn(394, 2, 2, 2, scale=9.0), keep(395, 2, 1, 2))],
    ),
    dict(
        name='scaled_masked_softmax',
        object="scaled_masked_softmax", kind="callable", order="first",
        bug="the incoming gradient is multiplied in place",
        fits=["modified"],
        inputs=lambda: (rn(396, 1, 2, 3, 4), keep(397, 1, 1, 3, 4, p=0.3), 0.5),
        more=[lambda: (rn(398, 2, 1, 2, 3), torch.tensor([[[[True, True, True], [False, True, False]]]]), 2.0), lambda: (rn(399, 1, 1, 2, 5), torch.zeros(1, 1, 1, 5, dtype=torch.bool), 1.0)],
    ),
]
