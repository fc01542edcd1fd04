import torch


def r(*shape, seed=0, scale=1.0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*shape, generator=g, dtype=torch.float64)).requires_grad_(grad)


def u(*shape, lo=0.0, hi=1.0, seed=0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return (lo + (hi - lo) * torch.rand(*shape, generator=g, dtype=torch.float64)).requires_grad_(grad)


def n(*shape, hi, lo=0, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(lo, hi, shape, generator=g)


def t(values, grad=False):
    return torch.tensor(values, dtype=torch.float64).requires_grad_(grad)


def idx(*values):
    return torch.tensor(values, dtype=torch.long)


def spd(size, seed=0, batch=()):
    a = r(*batch, size, size, seed=seed, grad=False)
    return (a @ a.mT / size + torch.eye(size, dtype=torch.float64)).requires_grad_()


def fill(module, seed=0, scale=0.5):
    g = torch.Generator().manual_seed(seed)
    module = module.double()
    with torch.no_grad():
        for p in module.parameters():
            p.add_(scale * torch.randn(p.shape, generator=g, dtype=torch.float64))
    return module


def seeded(cls, *args, **kwargs):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return cls(*args, **kwargs)


def warm(module):
    module.eval()
    with torch.no_grad():
        module.running_mean.copy_(torch.linspace(-0.5, 0.4, module.running_mean.numel()))
        module.running_var.copy_(torch.linspace(0.6, 1.7, module.running_var.numel()))
    return module


def signs(module):
    with torch.no_grad():
        module.low_hz_.copy_(t([0.4, -0.9, 1.3]))
        module.band_hz_.copy_(t([0.5, 0.8, -0.6]))
    return module


def _lsq(x, step, qmin=-8, qmax=7, grad_scale=1.0):
    shape = (-1,) + (1,) * (x.dim() - 1)
    v = (x / step.view(shape)).detach()
    inside = ((v >= qmin) & (v <= qmax)).to(x.dtype)
    slope = inside * (v.round() - v) + (v < qmin) * float(qmin) + (v > qmax) * float(qmax)
    return lambda x, step, *rest: x * inside + grad_scale * slope * step.view(shape)


CASES = [
    dict(
        name="roi_align",
        object="RoIAlignFunction", kind="function",
        inputs=lambda: (r(2, 3, 7, 8), t([[0, 1.2, 0.7, 9.3, 8.1], [1, 3.1, 2.2, 12.4, 11.3]]), (2, 3), 0.5, 2, True),
        more=[lambda: (r(1, 2, 6, 6, seed=3), t([[0, 0.3, 1.1, 4.2, 5.6]]), 2, 1.0, 0, True), lambda: (r(1, 2, 6, 6, seed=3), t([[0, 0.3, 1.1, 4.2, 5.6]]), 2, 1.0, 0, False)],
        bug="the half pixel shift of aligned=True is not applied to the sample points in backward",
        fits=["values"],
        order="first",
    ),
    dict(
        name="modulated_deform_conv",
        object="ModulatedDeformConv2dFunction", kind="function",
        inputs=lambda: (r(1, 2, 4, 5), r(1, 18, 4, 5, seed=1, scale=0.4), u(1, 9, 4, 5, seed=2), r(3, 2, 3, 3, seed=3), r(3, seed=4), 1, 1, 1),
        more=[lambda: (r(2, 1, 6, 6, seed=5), r(2, 8, 3, 3, seed=6, scale=0.4), u(2, 4, 3, 3, seed=7), r(2, 1, 2, 2, seed=8), None, 2, 0, 1)],
        bug="the gradient of the offsets is not multiplied with the modulation mask",
        fits=["values"],
        order="first",
    ),
    dict(
        name="segment_csr",
        object="SegmentCSR", kind="function",
        inputs=lambda: (r(7, 3), idx(0, 2, 2, 5, 7), "mean"),
        more=[lambda: (r(6, 2, 2), idx(0, 1, 6), "max"), lambda: (r(6, seed=2), idx(0, 4, 4, 6), "sum")],
        bug="mean divides by the average segment length rather than each segment's own",
        fits=["values"],
        order="first",
    ),
    dict(
        name="edge_softmax",
        object="edge_softmax", kind="callable",
        inputs=lambda: ((idx(0, 1, 1, 2, 3, 3, 0), idx(1, 0, 2, 2, 0, 1, 2)), r(7, 2, 1), 4, "src"),
        more=[lambda: ((idx(0, 1, 1, 2, 3, 3, 0), idx(1, 0, 2, 2, 0, 1, 2)), r(7, seed=1))],
        bug="norm_by='src' is ignored in backward, which sums over the destinations",
        fits=["values"],
        order="first",
    ),
    dict(
        name="gspmm",
        object="u_op_e_sum", kind="callable",
        inputs=lambda: ((idx(0, 1, 1, 2, 0), idx(1, 0, 2, 2, 2), 3), "mul", r(3, 2, 4), r(5, 2, 1, seed=1)),
        more=[lambda: ((idx(0, 1, 1, 2, 0), idx(1, 0, 2, 2, 2), 4), "div", r(3, 3), u(5, 1, seed=1, lo=0.5, hi=2)), lambda: ((idx(0, 1, 1, 2, 0), idx(1, 0, 2, 2, 2), 3), "sub", r(3), r(5, 2, seed=1))],
        bug="gradients of a source node with several edges are overwritten rather than accumulated",
        fits=["values"],
        order="first",
    ),
    dict(
        name="flash_attn",
        object="FlashAttnFunc", kind="function",
        inputs=lambda: (r(2, 3, 4, 3), r(2, 4, 2, 3, seed=1), r(2, 4, 2, 3, seed=2), None, True, 2),
        more=[lambda: (r(1, 4, 2, 2), r(1, 3, 2, 2, seed=1), r(1, 3, 2, 2, seed=2), 0.4, False, 3)],
        bug="the key gradient of grouped heads sums over the wrong axis of the head groups",
        fits=["values"],
        order="first",
    ),
    dict(
        name="selective_scan",
        object="selective_scan_fn", kind="callable",
        inputs=lambda: (r(2, 2, 4), r(2, 2, 4, seed=1), u(2, 3, lo=-1.5, hi=-0.2, seed=2), r(2, 3, 4, seed=3), r(2, 3, 4, seed=4), r(2, seed=5), r(2, 2, 4, seed=6), r(2, seed=7), True),
        more=[lambda: (r(1, 2, 3), u(1, 2, 3, seed=1), u(2, 2, lo=-1.5, hi=-0.2, seed=2), r(1, 2, 3, seed=3), r(1, 2, 3, seed=4))],
        bug="the derivative of softplus is taken at the softplus' value rather than its argument",
        fits=["values"],
        order="first",
    ),
    dict(
        name="fused_recurrent_gla",
        object="fused_recurrent_gla", kind="callable",
        inputs=lambda: (r(1, 2, 4, 2), r(1, 2, 4, 2, seed=1), r(1, 2, 4, 3, seed=2), u(1, 2, 4, 2, lo=-1, hi=-0.1, seed=3), None, r(1, 2, 2, 3, seed=4), True),
        more=[lambda: (r(1, 1, 3, 2), r(1, 1, 3, 2, seed=1), r(1, 1, 3, 2, seed=2), u(1, 1, 3, 2, lo=-1, hi=-0.1, seed=3), 0.3, None, True, True), lambda: (r(1, 1, 3, 2), r(1, 1, 3, 2, seed=1), r(1, 1, 3, 2, seed=2), u(1, 1, 3, 2, lo=-1, hi=-0.1, seed=3))],
        bug="the gradient that arrives at the final state is dropped",
        fits=["values"],
        order="first",
    ),
    dict(
        name="sym_toeplitz",
        object="sym_toeplitz_matmul", kind="callable",
        inputs=lambda: (r(5, grad=False), r(5, 2, seed=1)),
        more=[lambda: (r(4), r(4, seed=1)), lambda: (r(4), r(3, 4, 2, seed=1))],
        bug="the gradient of rhs is guarded by needs_input_grad of the column, so it is None when only rhs requires grad",
        fits=["none"],
        order="first",
    ),
    dict(
        name="lfilter",
        object="lfilter", kind="callable",
        inputs=lambda: (r(2, 6), t([1.2, -0.4, 0.3], True), t([0.5, 0.2, -0.3], True)),
        more=[lambda: (r(1, 2, 5, scale=0.3), t([1.0, 0.3], True), t([0.5, -0.2], True), True)],
        bug="the gradient of the denominator's coefficients has the wrong sign",
        fits=["values"],
        order="first",
    ),
    dict(
        name="rnnt_loss",
        object="rnnt_loss", kind="callable",
        inputs=lambda: (r(2, 3, 3, 4), idx([0, 2], [1, 1]), idx(3, 2), idx(2, 1), -1, -1.0, "mean"),
        more=[lambda: (r(1, 2, 2, 3, seed=4), idx([1]), idx(2), idx(1), 0, -1.0, "none", False)],
        bug="the incoming gradient is ignored, so mean and weighted losses get the gradient of the sum",
        fits=["values"],
        order="first",
    ),
    dict(
        name="matern_covariance",
        object="MaternCovariance", kind="function",
        inputs=lambda: (r(4, 2, grad=False), r(3, 2, seed=1, grad=False), t([[0.8]], True), 2.5, torch.cdist),
        more=[lambda: (r(4, 2, grad=False), r(3, 2, seed=1, grad=False), t([[0.8]], True), 1.5, torch.cdist), lambda: (r(3, 1, grad=False), r(3, 1, seed=1, grad=False), t([[1.3]], True), 0.5, torch.cdist)],
        bug="nu=2.5 misses the factor (1 + scaled distance)",
        fits=["values"],
        order="first",
    ),
    dict(
        name="knn_points",
        object="knn_points", kind="callable",
        inputs=lambda: (r(2, 4, 3), r(2, 5, 3, seed=1), idx(4, 2), idx(5, 1), 2, 2),
        more=[lambda: (r(1, 3, 2), r(1, 4, 2, seed=1), None, None, 1, 1)],
        bug="padded neighbours and points of shorter clouds pass their gradient on to the first point",
        fits=["values"],
        order="first",
    ),
    dict(
        name="interpolate_face_attributes",
        object="interpolate_face_attributes", kind="callable",
        inputs=lambda: (n(1, 2, 3, 2, lo=-1, hi=3), u(1, 2, 3, 2, 3), r(3, 3, 2, seed=1)),
        bug="the incoming gradient is masked in place",
        fits=["modified"],
        more=[],
        order="first",
    ),
    dict(
        name="alpha_composite",
        object="_CompositeAlphaPoints", kind="function",
        inputs=lambda: (r(3, 5), u(1, 3, 2, 2), n(1, 3, 2, 2, lo=-1, hi=5)),
        more=[lambda: (r(2, 3), u(2, 1, 1, 2), n(2, 1, 1, 2, lo=-1, hi=3, seed=1))],
        bug="the light behind a point is updated before the point's own alpha gradient is taken (off by one)",
        fits=["values"],
        order="first",
    ),
    dict(
        name="so3_exponential_map",
        object="SO3ExponentialMap", kind="function",
        inputs=lambda: (t([[0.0, 0.0, 0.0], [0.5, -0.3, 1.1], [0.02, 0.01, -0.03]], True),),
        more=[lambda: (r(3, 3),)],
        bug="the slopes of the factors divide zero by zero at the identity, NaN",
        fits=["NaN"],
        order="first",
    ),
    dict(
        name="softmax_focal_loss",
        object="SoftmaxFocalLoss", kind="module",
        make=lambda cls: cls(2.0, 0.4, t([0.5, 2.0, 1.3]), "mean").double(),
        inputs=lambda: (r(4, 3), idx(0, 2, 1, 1)),
        more=[lambda: (r(2, 3, seed=2), idx(2, 0))],
        bug="the class weights are only applied in backward when there is no reduction",
        fits=["values"],
        order="first",
    ),
    dict(
        name="fused_cross_entropy",
        object="cross_entropy_loss", kind="callable",
        inputs=lambda: (r(4, 5), idx(1, -100, 4, 0), 0.1, 0.7, 0.3),
        more=[lambda: (r(3, 4), idx(1, 3, 2))],
        bug="the gradient of the squared log normaliser misses the factor two",
        fits=["values"],
        order="first",
    ),
    dict(
        name="apply_rotary_emb",
        object="ApplyRotaryEmb", kind="function",
        inputs=lambda: (r(2, 3, 2, 5), r(4, 2, grad=False, seed=1).cos(), r(4, 2, grad=False, seed=1).sin(), True, True),
        more=[lambda: (r(1, 3, 1, 4), r(3, 2, grad=False, seed=1).cos(), r(3, 2, grad=False, seed=1).sin())],
        bug="backward always conjugates, which is only right for the default conjugate=False",
        fits=["values"],
        order="first",
    ),
    dict(
        name="upfirdn2d",
        object="upfirdn2d", kind="callable",
        inputs=lambda: (r(1, 2, 4, 5), r(3, 2, seed=1, grad=False), 2, 1, (1, 2)),
        more=[lambda: (r(2, 1, 6, 5), r(3, 3, seed=1, grad=False), 1, 2, (1, 1)), lambda: (r(1, 1, 4, 4), r(2, 3, seed=1, grad=False))],
        bug="the filter is not flipped in backward",
        fits=["values"],
        order="first",
    ),
    dict(
        name="local_correlation",
        object="LocalCorrelation", kind="function",
        inputs=lambda: (r(1, 2, 3, 4), r(1, 2, 3, 4, seed=1), 1, 1, True),
        more=[lambda: (r(2, 2, 4, 4), r(2, 2, 4, 4, seed=1), 1, 2, False)],
        bug="the gradient of the second map is shifted in the direction of the displacement rather than against it",
        fits=["values"],
        order="first",
    ),
    dict(
        name="carafe",
        object="CARAFEFunction", kind="function",
        inputs=lambda: (r(1, 4, 2, 3), r(1, 18, 4, 6, seed=1), 3, 2, 2),
        more=[lambda: (r(2, 2, 2, 2), r(2, 1, 2, 2, seed=1), 1, 1, 1)],
        bug="the upsampled gradient is averaged rather than summed over the pixels of a source pixel",
        fits=["values"],
        order="first",
    ),
    dict(
        name="moe_unpermute",
        object="moe_dispatch_combine", kind="callable",
        inputs=lambda: (r(4, 3), u(4, 2, seed=1), idx([2, 0], [1, 2], [0, 1], [2, 1]), r(3, 3, 3, seed=2)),
        more=[lambda: (r(3, 2), u(3, 1, seed=1), idx([2], [0], [1]), r(3, 2, 2, seed=2))],
        bug="the gradient of the permuted rows is gathered with the inverse permutation",
        fits=["values"],
        order="first",
    ),
    dict(
        name="soft_dtw",
        object="SoftDTW", kind="module",
        make=lambda cls: cls(0.4, True, 2),
        inputs=lambda: (r(2, 3, 2), r(2, 4, 2, seed=1)),
        more=[lambda: (r(1, 4, 1), r(1, 4, 1, seed=1))],
        bug="gamma is left out of backward, which is only right at gamma=1",
        fits=["values"],
        order="first",
    ),
    dict(
        name="inv_quad_logdet",
        object="InvQuadLogdet", kind="function",
        inputs=lambda: (spd(3), r(3, 2, seed=1), True, True, False),
        more=[lambda: (spd(3, batch=(2,)), r(2, 3, 2, seed=1), True, True, True), lambda: (spd(2), r(2, 1, seed=1), False, True, True)],
        bug="the incoming gradient enters the matrix gradient of the quadratic term twice, so it is not linear in it",
        fits=["values"],
        order="first",
    ),
    dict(
        name="fused_recurrent_delta_rule",
        object="FusedRecurrentFunction", kind="function",
        inputs=lambda: (r(1, 2, 3, 2), r(1, 2, 3, 2, seed=1), r(1, 2, 3, 3, seed=2), u(1, 2, 3, seed=3), None, r(1, 2, 2, 3, seed=4), True),
        more=[lambda: (r(2, 1, 3, 2), r(2, 1, 3, 2, seed=1), r(2, 1, 3, 2, seed=2), u(2, 1, 3, 2, seed=3), 0.7, None, False)],
        bug="the keys' gradient through the prediction that the value is compared with is missing",
        fits=["values"],
        order="first",
    ),
    dict(
        name="causal_conv1d",
        object="CausalConv1dFn", kind="function",
        inputs=lambda: (r(2, 2, 4), r(2, 3, seed=1), r(2, seed=2), r(2, 2, 2, seed=3), "silu"),
        more=[lambda: (r(1, 3, 4), r(3, 2, seed=1), None, None, None), lambda: (r(1, 1, 2), r(1, 4, seed=1), r(1, seed=3), None, "swish")],
        bug="the weight gradient is taken with zeros where the initial states belong",
        fits=["values"],
        order="first",
    ),
    dict(
        name="spherical_harmonics",
        object="SphericalHarmonicsFn", kind="function",
        inputs=lambda: (r(4, 3), True, "component"),
        more=[lambda: (r(2, 2, 3), False, "integral"), lambda: (r(3, seed=2), True, "norm")],
        bug="the gradient through the normalisation is not projected on the sphere's tangent",
        fits=["values"],
        order="first",
    ),
    dict(
        name="log_normal_cdf",
        object="LogNormalCDF", kind="function",
        inputs=lambda: (t([-45.0, -6.0, -1.3, 0.0, 0.4, 3.0], True),),
        more=[lambda: (r(2, 3),)],
        bug="density and distribution function both vanish in the far lower tail, 0 / 0",
        fits=["NaN"],
        order="first",
    ),
    dict(
        name="roi_pool",
        object="RoIPoolFunction", kind="function",
        inputs=lambda: (r(2, 2, 5, 6), t([[0, 0, 1, 7, 8], [1, 2, 2, 11, 9], [1, 4, 0, 9, 5]]), (2, 2), 0.5),
        more=[lambda: (r(1, 3, 4, 4, seed=1), t([[0, 1, 1, 2, 9]]), (3, 2))],
        bug="view of the incoming gradient fails if that is not contiguous",
        fits=["layout"],
        order="first",
    ),
    dict(
        name="matrix_sqrt",
        object="SymmetricMatrixRoot", kind="function",
        inputs=lambda: (spd(3), False),
        more=[lambda: (spd(2, batch=(2,)), True)],
        bug="the gradient is not symmetrised though forward only looks at the symmetric part",
        fits=["values"],
        order="first",
    ),
    dict(
        name="face_areas_normals",
        object="_FaceAreasNormals", kind="function",
        inputs=lambda: (r(4, 3), idx([0, 1, 2], [0, 2, 3], [3, 1, 2])),
        more=[lambda: (r(3, 3, seed=5), idx([2, 0, 1]))],
        bug="the cross product of the third vertex has its factors in the wrong order",
        fits=["values"],
        order="first",
    ),
    dict(
        name="point_edge_distance",
        object="PointEdgeDistance", kind="function",
        inputs=lambda: (r(5, 3), r(3, 2, 3, seed=1)),
        more=[lambda: (r(2, 3, scale=2.0), r(1, 2, 3, seed=2))],
        bug="the shares of a segment's two ends are swapped",
        fits=["values"],
        order="first",
    ),
    dict(
        name="rwkv_wkv",
        object="WKV", kind="function",
        inputs=lambda: (r(2, scale=0.5), r(2, seed=1), r(2, 4, 2, seed=2), r(2, 4, 2, seed=3)),
        more=[lambda: (r(3, scale=0.5), r(3, seed=1), r(1, 2, 3, seed=2), r(1, 2, 3, seed=3))],
        bug="the decay's inner derivative, that of the exponential, is forgotten",
        fits=["values"],
        order="first",
    ),
    dict(
        name="dropout_add_ln",
        object="DropoutAddLayerNormFn", kind="function",
        inputs=lambda: (r(2, 3, 4), r(2, 3, 4, seed=1), r(4, seed=2), r(4, seed=3), u(2, 3, lo=0.5, hi=2, grad=False), r(4, seed=4), u(2, 3, 4, grad=False, seed=5) > 0.3, 0.7, 1e-5, True),
        more=[lambda: (r(3, 5), None, r(5, seed=2), None), lambda: (r(3, 5), r(3, 5, seed=1), r(5, seed=2), None, None, r(5, seed=6), None, 1.0, 1e-3, False)],
        bug="the gradient of colscale leaves out dropout and rowscale",
        fits=["values"],
        order="first",
    ),
    dict(
        name="swiglu_packed",
        object="swiglu_packed", kind="callable",
        inputs=lambda: (r(2, 2, 3), r(2, 4, 3, seed=1), None, r(2, 4, seed=2), r(2, seed=3)),
        more=[lambda: (r(4, 3), r(2, 2, 3, seed=1), r(2, 2, seed=4), r(2, 2, seed=2), r(2, seed=3))],
        bug="gradients that are None are dropped, so too few are returned if a bias is missing",
        fits=["number of gradients"],
        order="first",
    ),
    dict(
        name="si_sdr",
        object="ScaleInvariantSDR", kind="function",
        inputs=lambda: (r(2, 6), r(2, 6, seed=1), True),
        more=[lambda: (r(5), r(5, seed=1), False)],
        bug="no gradient is returned for the target",
        fits=["none"],
        order="first",
    ),
    dict(
        name="log_expected_improvement",
        object="LogExpectedImprovement", kind="function",
        inputs=lambda: (t([0.3, -2.0, 1.2, -9.0], True), t([0.5, 0.4, 1.1, 0.3], True), t(0.2, True), False),
        more=[lambda: (t([[0.3, -2.0], [1.2, -9.0]], True), t([[0.5, 0.4], [1.1, 0.3]], True), r(2, 2, seed=3))],
        bug="the sign of the minimisation is left out in backward",
        fits=["values"],
        order="first",
    ),
    dict(
        name="kronecker_matmul",
        object="KroneckerMatmul", kind="function",
        inputs=lambda: (r(2, 3), r(2, 2, seed=1), r(6, 2, seed=2)),
        more=[lambda: (r(2, 2), r(3, 3, seed=1), r(6, seed=2))],
        bug="the second factor is not transposed in the gradient of X",
        fits=["values"],
        order="first",
    ),
    dict(
        name="dct",
        object="DCT", kind="function",
        inputs=lambda: (r(2, 5), None, False),
        more=[lambda: (r(4), "ortho", False), lambda: (r(2, 1, 3), None, True)],
        bug="backward applies the inverse transform rather than the transposed one, the same only for norm='ortho'",
        fits=["values"],
        order="first",
    ),
    dict(
        name="crf_log_partition",
        object="CRFLogPartition", kind="function",
        inputs=lambda: (r(2, 4, 3), torch.tensor([[True, True, True, True], [True, True, False, False]]), r(3, 3, seed=1), r(3, seed=2), r(3, seed=3)),
        more=[lambda: (r(1, 2, 2), torch.ones(1, 2, dtype=torch.bool), r(2, 2, seed=1), r(2, seed=2), r(2, seed=3))],
        bug="the saved forward variables are a scratch buffer which the next call of that shape overwrites",
        fits=["state"],
        order="first",
    ),
    dict(
        name="lsq_quantize",
        object="LSQQuantize", kind="function",
        inputs=lambda: (r(2, 6, scale=2.0), t([0.5, 0.3], True), -2, 1, 0.4),
        more=[lambda: (r(3, 2, 2, seed=4), t([0.21, 0.34, 0.4], True))],
        surrogate=lambda *args: _lsq(*args),
        bug="the gradient of x also passes where x was clipped",
        fits=["values"],
        order="first",
    ),
    dict(
        name="generalized_box_iou_loss",
        object="generalized_box_iou_loss", kind="callable",
        inputs=lambda: (t([[0.1, 0.2, 1.3, 1.5], [0.3, 0.1, 0.8, 0.9]], True), t([[0.4, 0.6, 1.9, 1.2], [1.5, 1.2, 2.2, 2.1]], True)),
        more=[lambda: (t([[0.1, 0.2, 1.3, 1.5], [0.3, 0.1, 0.8, 0.9]], True), t([[0.4, 0.05, 1.9, 1.2], [0.2, 0.2, 2.2, 0.7]], True), "mean")],
        bug="the lower corner of the enclosing box goes to the wrong one of the two boxes",
        fits=["values"],
        order="first",
    ),
    dict(
        name="grouped_gemm",
        object="grouped_gemm", kind="callable",
        inputs=lambda: (r(5, 3), r(3, 3, 3, seed=1), idx(2, 0, 3), True),
        more=[lambda: (r(4, 2), r(2, 2, 3, seed=1), idx(1, 3)),],
        bug="the gradient of a always multiplies with the transposed b, which is wrong if b was given transposed",
        fits=["values"],
        order="first",
    ),
    dict(
        name="overlap_add",
        object="overlap_add", kind="callable",
        inputs=lambda: (r(2, 3, 4), u(4, lo=0.3, hi=1, grad=False), 2, True, True),
        more=[lambda: (r(1, 2, 5), u(5, lo=0.3, hi=1, grad=False), 3), lambda: (r(1, 3, 4), u(4, lo=0.3, hi=1, grad=False), 1, True, False)],
        bug="the division by the envelope is left out of backward if the ends are cut off",
        fits=["values"],
        order="first",
    ),
    dict(
        name="segment_logsumexp",
        object="segment_logsumexp", kind="callable",
        inputs=lambda: (r(6, 2), idx(2, 1, 3), 0.5),
        more=[lambda: (r(3, seed=1), idx(1, 2)), lambda: (r(4, 1, 2, seed=1), idx(4), 2.0)],
        bug="the first row of a segment is taken to belong to the segment before (off by one)",
        fits=["values"],
        order="first",
    ),
    dict(
        name="sinkhorn_divergence",
        object="sinkhorn_cost", kind="callable",
        inputs=lambda: (u(3, 4), u(3, lo=0.2, seed=1), u(4, lo=0.2, seed=2), 0.5, 3),
        more=[lambda: (u(2, 2, 3), None, None, 0.3, 2)],
        bug="the adjoint of the overwritten potential is carried over into earlier iterations",
        fits=["values"],
        order="first",
    ),
    dict(
        name="bessel_basis",
        object="bessel_basis", kind="callable",
        inputs=lambda: (t([0.7, 1.9, 2.8, 3.4], True), t([3.1, 6.3, 9.4], True), 3.0),
        more=[lambda: (u(2, 3, lo=0.2, hi=0.9), t([3.1, 6.3], True), 1.0, 4)],
        bug="the frequencies' gradient misses the division by the cutoff, right only for cutoff 1",
        fits=["values"],
        order="first",
    ),
    dict(
        name="linear4bit",
        object="Linear4bit", kind="module",
        make=lambda cls: fill(seeded(cls, 4, 6), 1),
        inputs=lambda: (r(2, 3, 4),),
        more=[lambda: (r(3, 4, seed=2),)],
        bug="backward multiplies in half precision (bfloat16) whatever the dtype of the input",
        fits=["values"],
        order="first",
    ),
    dict(
        name="rms_norm_gated",
        object="RMSNormGated", kind="module",
        make=lambda cls: fill(cls(6, group_size=3, norm_before_gate=False), 1),
        inputs=lambda: (r(2, 2, 6), r(2, 2, 6, seed=2)),
        more=[lambda: (r(3, 6, seed=3),)],
        bug="the groups are ignored in backward, where the mean runs over the whole hidden axis",
        fits=["values"],
        order="first",
    ),
    dict(
        name="gradient_reversal",
        object="GradientReversal", kind="module",
        make=lambda cls: cls(0.7),
        inputs=lambda: (r(3, 4),),
        more=[lambda: (r(2, 2, 2, seed=1),)],
        surrogate=lambda module, *args: (lambda x: -0.7 * x),
        bug="the incoming gradient is negated in place",
        fits=["modified"],
        order="first",
    ),
    dict(
        name="vector_tensor_product",
        object="VectorTensorProduct", kind="module",
        make=lambda cls: fill(seeded(cls, 2, 2, 3), 1),
        inputs=lambda: (r(3, 2, 3), r(3, 3, seed=1)),
        more=[lambda: (r(2, 2, 2, 3), r(2, 2, 3, seed=1))],
        bug="the normalisation of the vector path is missing in backward",
        fits=["values"],
        order="first",
    ),
    dict(
        name="fused_linear_cross_entropy",
        object="FusedLinearCrossEntropyLoss", kind="module",
        make=lambda cls: fill(seeded(cls, 3, 4, label_smoothing=0.1), 1),
        inputs=lambda: (r(5, 3), idx(1, -100, 0, 3, 2)),
        more=[lambda: (r(1, 3, 3, seed=4), idx([0, 2, 2]))],
        bug="the stored gradients are scaled in place, so a second backward through the same graph scales them again",
        fits=["state"],
        order="first",
    ),
    dict(
        name="activated_batch_norm",
        object="ABN", kind="module",
        make=lambda cls: fill(warm(cls(3, activation_param=0.2)), 1),
        inputs=lambda: (r(4, 3, 2),),
        more=[lambda: (r(2, 3, 2, 2, seed=1),)],
        bug="in evaluation mode backward still uses the formula of batch statistics",
        fits=["values"],
        order="first",
    ),
    dict(
        name="sinc_filterbank",
        object="SincConv", kind="module",
        make=lambda cls: signs(cls(3, 5, sample_rate=8.0, min_low_hz=0.1, min_band_hz=0.2).double()),
        inputs=lambda: (r(2, 1, 8),),
        more=[lambda: (r(1, 1, 6, seed=3),)],
        bug="the sign of the band widths under their absolute value is forgotten",
        fits=["values"],
        order="first",
    ),
    dict(
        name="softmax_aggregation",
        object="SoftmaxAggregation", kind="module",
        make=lambda cls: fill(cls(3, 0.8), 1),
        inputs=lambda: (r(5, 3), idx(0, 2, 2, 0, 2), 4),
        more=[lambda: (r(4, 3, seed=1), idx(0, 1, 1, 0))],
        bug="the gradient of the temperatures is summed over the channels, too, and has no axes",
        fits=["shape"],
        order="first",
    ),
    dict(
        name="pcen",
        object="PCENLayer", kind="module",
        make=lambda cls: fill(cls(2, s=0.3, alpha=0.8), 1, 0.1),
        inputs=lambda: (u(2, 2, 4, lo=0.1, hi=2.0),),
        more=[lambda: (u(2, 3, lo=0.1, hi=2.0, seed=1),)],
        bug="the first frame, which starts the smoother at full weight, gets its gradient times s",
        fits=["values"],
        order="first",
    ),
    dict(
        name="group_norm_silu",
        object="GroupNormSiLU", kind="module",
        make=lambda cls: fill(cls(2, 4), 1),
        inputs=lambda: (r(2, 4, 2, 3),),
        more=[lambda: (r(3, 4, 2, seed=1),)],
        bug="the strides of the incoming gradient are taken for contiguous ones",
        fits=["layout"],
        order="first",
    ),
    dict(
        name="weighted_embedding_bag",
        object="WeightedEmbeddingBag", kind="module",
        make=lambda cls: fill(seeded(cls, 5, 3, mode="mean", padding_idx=-1), 1),
        inputs=lambda: (idx([0, 4, 2], [1, 1, 3], [4, 4, 4]), r(3, 3, seed=2)),
        more=[lambda: (idx([3, 4], [1, 0]),)],
        bug="the mean's backward divides by the bag's length with padding counted",
        fits=["values"],
        order="first",
    ),
    dict(
        name="ard_rbf_kernel",
        object="ScaledARDKernel", kind="module",
        make=lambda cls: fill(cls(2), 1),
        inputs=lambda: (r(3, 2), r(4, 2, seed=1)),
        more=[lambda: (r(2, 3, 2), r(2, 2, 2, seed=1)), lambda: (r(3, 2, seed=4),)],
        bug="the covariance is detached in backward, so second derivatives are wrong",
        fits=["second derivative"],
        order="second",
    ),
]
