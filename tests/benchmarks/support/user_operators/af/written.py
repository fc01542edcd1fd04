import math

import torch

# Operators with once_differentiable (and the custom ops, whose backward is wrapped by it) have no second order;
# those without it (decode_boxes, i0e, kepler, black_scholes, log_ndtr, wishart_lognorm) have.


def N(seed, *shape, grad=True, scale=1.0, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=g, dtype=torch.float64) * scale + shift).requires_grad_(grad)


def U(seed, *shape, lo=0.0, hi=1.0, grad=True):
    g = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=g, dtype=torch.float64) * (hi - lo) + lo).requires_grad_(grad)


def I(seed, hi, *shape):
    return torch.randint(hi, shape, generator=torch.Generator().manual_seed(seed))


def tensor(x, grad=True):
    return torch.tensor(x, dtype=torch.float64).requires_grad_(grad)


def boxes(seed, n, grad=True):
    a = U(seed, n, 2, lo=0, hi=2, grad=False)
    return torch.cat([a, a + U(seed + 50, n, 2, lo=1, hi=3, grad=False)], 1).requires_grad_(grad)


def spd(seed, n, grad=True):
    a = N(seed, n, n, grad=False)
    return (a @ a.T / n + torch.eye(n, dtype=torch.float64)).requires_grad_(grad)


def lower(seed, n, grad=True):
    a = N(seed, n, n, grad=False, scale=0.4)
    return (a.tril(-1) + torch.diag(a.diagonal().abs() + 1)).requires_grad_(grad)


def built(seed, *a, **k):
    def make(cls):
        torch.manual_seed(seed)
        return cls(*a, **k).double()
    return make


def borders(seed, r, s):
    return U(seed, r, s + 1, lo=0.1, hi=0.9, grad=False).cumsum(1)


CASES = [
    dict(name="three_interpolate", object="ThreeInterpolate", kind="function", order="first",
         bug="the gradient of the distances leaves out the derivative of the weights' normaliser", fits=["value", "missing"],
         inputs=lambda: (N(1, 2, 2, 5), I(2, 5, 2, 3, 3), U(3, 2, 3, 3, lo=0.2)),
         more=[lambda: (N(4, 1, 3, 4), I(5, 4, 1, 5, 3), U(6, 1, 5, 3, lo=0.2, grad=False), 0.1)]),
    dict(name="ball_group", object="query_and_group", kind="callable", order="first",
         bug="the centres' gradient lacks the division by the radius", fits=["value"],
         inputs=lambda: (N(1, 6, 3), N(2, 3, 3), N(3, 6, 2), 1.5, 3, True),
         more=[lambda: (N(4, 7, 3), N(5, 2, 3), None, 1.0, 2), lambda: (N(6, 5, 3, grad=False), N(7, 2, 3), N(8, 5, 1), 2.0, 4, True)]),
    dict(name="chamfer", object="chamfer_loss", kind="callable", order="first",
         bug="the second direction is divided by the first cloud's size", fits=["value"],
         inputs=lambda: (N(1, 2, 3, 3), N(2, 2, 5, 3)),
         more=[lambda: (N(3, 1, 4, 2), N(4, 1, 3, 2), True, "sum"), lambda: (N(5, 2, 2, 3), N(6, 2, 4, 3, grad=False), False, "none")]),
    dict(name="edge_conv", object="EdgeConv", kind="module", make=built(3, 3, 4, k=3), order="first",
         bug="the centre's share of x_j - x_i is missing in the gradient of x", fits=["value", "missing"],
         inputs=lambda: (N(1, 6, 3),), more=[lambda: (N(2, 5, 3, grad=False),), lambda: (N(3, 9, 3),)]),
    dict(name="roi_align", object="RoIAlign", kind="function", order="first",
         bug="backward recomputes the sample points without `aligned`", fits=["value"],
         inputs=lambda: (N(1, 1, 6, 6), tensor([[0.7, 1.1, 4.3, 5.2], [1.0, 0.2, 3.4, 2.5]], False), 2, 1.0, 2, True),
         more=[lambda: (N(2, 2, 4, 5), tensor([[0.7, 1.1, 6.3, 7.2]], False), 2, 0.5, 1),
               lambda: (N(3, 2, 4, 4), tensor([[0.0, 0.0, 9.0, 9.0], [-2.0, -3.0, 2.0, 1.0]], False), 2, 1.0, 2, False)]),
    dict(name="roi_max_pool", object="roi_max_pool", kind="callable", order="first",
         bug="backward zeroes the incoming gradient in place at empty bins", fits=["modified"],
         inputs=lambda: (N(1, 2, 4, 4), torch.tensor([[0, 0, 3, 3], [2, 2, 7, 7]])),
         more=[lambda: (N(2, 1, 5, 6), torch.tensor([[0, 1, 6, 5], [1, 1, 4, 4]]), 3)]),
    dict(name="giou_loss", object="giou_loss", kind="callable", order="first",
         bug="the intersection's effect on the union is missing", fits=["value", "missing"],
         inputs=lambda: (boxes(1, 4), boxes(2, 4, False)),
         more=[lambda: (boxes(3, 3), boxes(4, 3, False), U(5, 3), "none"), lambda: (boxes(6, 3), boxes(7, 3, False), U(8, 3, grad=False), "mean", 2.0)]),
    dict(name="decode_boxes", object="DecodeBoxes", kind="function", order="first",
         bug="log sizes above the clip still get a gradient", fits=["value"],
         inputs=lambda: (N(1, 4, 4), boxes(2, 4), (1.0, 1.0, 0.5, 0.5), 0.6),
         more=[lambda: (N(3, 3, 4), boxes(4, 3, False)), lambda: (N(5, 3, 4, grad=False), boxes(6, 3), (10.0, 10.0, 5.0, 5.0))]),
    dict(name="sigmoid_focal", object="SigmoidFocalLoss", kind="function", order="first",
         bug="in the negatives' derivative of p**gamma stands p where 1 - p belongs", fits=["value"],
         inputs=lambda: (N(1, 4, 3), torch.tensor([0, 3, 2, 1]), 2.0, 0.25, None, "sum"),
         more=[lambda: (N(2, 4, 3), torch.tensor([0, 3, 2, 1]), 1.5, 0.4, U(3, 4, 3, grad=False), "mean"), lambda: (N(4, 2, 2), torch.tensor([2, 0]), 2.0, 0.25, None, "none")]),
    dict(name="deform_sample", object="deform_sample", kind="callable", order="first",
         bug="the offsets' gradient lacks the modulation mask", fits=["value"],
         inputs=lambda: (N(1, 2, 4, 4), U(2, 5, 2, lo=0, hi=3, grad=False), N(3, 5, 2, scale=0.7), U(4, 5)),
         more=[lambda: (N(5, 1, 3, 5), U(6, 4, 2, lo=-1, hi=4), N(7, 4, 2)), lambda: (N(8, 2, 3, 3, grad=False), U(9, 4, 2, lo=0, hi=2), N(10, 4, 2, grad=False), U(11, 4, grad=False))]),
    dict(name="corr_volume", object="CorrelationVolume", kind="function", order="first",
         bug="the second map's gradient is shifted the other way", fits=["value"],
         inputs=lambda: (N(1, 2, 3, 4), N(2, 2, 3, 4)),
         more=[lambda: (N(3, 1, 4, 4), N(4, 1, 4, 4, grad=False), 1, 2), lambda: (N(5, 1, 3, 5), N(6, 1, 3, 5), 2)]),
    dict(name="bilinear_warp", object="BilinearWarp", kind="function", order="first",
         bug="the grid's gradient always uses the scale of align_corners=True", fits=["value"],
         inputs=lambda: (N(1, 2, 4, 5), U(2, 6, 2, lo=-1.2, hi=1.2)),
         more=[lambda: (N(3, 2, 3, 4), U(4, 6, 2, lo=-1.2, hi=1.2), True), lambda: (N(5, 1, 3, 4, grad=False), U(6, 3, 2, lo=-1, hi=1), False)]),
    dict(name="flow_warp", object="flow_warp", kind="callable", order="first",
         bug="the flow gets a gradient where the location was clamped to the border", fits=["value"],
         inputs=lambda: (N(1, 2, 4, 4), N(2, 2, 4, 4, scale=1.2)),
         more=[lambda: (N(3, 1, 3, 5), N(4, 2, 3, 5), 0.5), lambda: (N(5, 2, 3, 3, grad=False), N(6, 2, 3, 3))]),
    dict(name="alpha_composite", object="AlphaComposite", kind="function", order="first",
         bug="the sum over the samples behind includes the sample itself", fits=["value"],
         inputs=lambda: (U(1, 2, 4), U(2, 2, 4, 3), borders(3, 2, 4), U(4, 3)),
         more=[lambda: (U(5, 3, 3), U(6, 3, 3, 3, grad=False), borders(7, 3, 3)), lambda: (U(8, 1, 5, grad=False), U(9, 1, 5, 3), borders(10, 1, 5), U(11, 3, grad=False))]),
    dict(name="sh_eval", object="SHEval", kind="function", order="first",
         bug="sign of the y derivative of x^2 - y^2", fits=["value"],
         inputs=lambda: (N(1, 1, 3, 9), N(2, 1, 3)),
         more=[lambda: (N(3, 2, 3, 4), N(4, 2, 3), 1), lambda: (N(5, 4, 3, 1), N(6, 4, 3), 0), lambda: (N(7, 1, 3, 9, grad=False), N(8, 1, 3), 2)]),
    dict(name="gaussian2d", object="splat_weights", kind="callable", order="first",
         bug="the off-diagonal covariance's derivative of the determinant lacks its factor 2", fits=["value"],
         inputs=lambda: (N(1, 3, 2), tensor([[1.0, 0.3, 0.8], [0.7, -0.4, 1.2], [1.5, 0.5, 0.9]]), U(2, 3, lo=0.3), N(3, 4, 2, grad=False)),
         more=[lambda: (N(4, 2, 2), tensor([[1.0, 0.3, 0.8], [0.7, -0.4, 1.2]]), U(5, 2, grad=False), N(6, 3, 2), 0.0)]),
    dict(name="quat_to_rot", object="QuatToRot", kind="function", order="first",
         bug="the normalisation's projection is missing", fits=["value", "missing"],
         inputs=lambda: (N(1, 3, 4),), more=[lambda: (N(2, 1, 4),), lambda: (N(3, 5, 4, scale=3),)]),
    dict(name="gwc_volume", object="gwc_volume", kind="callable", order="first",
         bug="the gradient is tiled over the channels instead of repeated group by group", fits=["value"],
         inputs=lambda: (N(1, 4, 2, 4), N(2, 4, 2, 4), 3, 2),
         more=[lambda: (N(3, 3, 2, 5), N(4, 3, 2, 5, grad=False), 2, 1), lambda: (N(5, 6, 1, 3), N(6, 6, 1, 3), 3, 3)]),
    dict(name="alpha_blend", object="alpha_blend", kind="callable", order="first",
         bug="the background behind a splat is missing in the gradient of alpha", fits=["value", "missing"],
         inputs=lambda: (U(1, 3, 4, hi=0.9), U(2, 4, 3), U(3, 3)),
         more=[lambda: (U(4, 2, 3, hi=0.9), U(5, 3, 3, grad=False), U(6, 3, grad=False)), lambda: (U(7, 2, 3, hi=0.9, grad=False), U(8, 3, 3), U(9, 3))]),
    dict(name="avg_voxelize", object="avg_voxelize", kind="callable", order="first",
         bug="view of an incoming gradient that need not be contiguous", fits=["layout"],
         inputs=lambda: (N(1, 2, 6), I(2, 3, 6, 3), 2), more=[lambda: (N(3, 3, 8), I(4, 2, 8, 3), 2), lambda: (N(5, 1, 5), I(6, 3, 5, 3), 3)]),
]
CASES += [
    dict(name="edge_softmax", object="edge_softmax", kind="callable", order="first",
         bug="the mean of the incoming gradient stands for its mean under the softmax", fits=["value"],
         inputs=lambda: (N(1, 7, 2), torch.stack([I(2, 4, 7), torch.tensor([0, 0, 1, 1, 1, 3, 0])]), 4),
         more=[lambda: (N(3, 6, 1), I(4, 3, 2, 6), 3, "src")]),
    dict(name="spmm_coo", object="SpMMCoo", kind="function", order="first",
         bug="the dense matrix's gradient is made when needs_input_grad of the values is set", fits=["none"],
         inputs=lambda: (I(1, 3, 6), I(2, 4, 6), N(3, 6, grad=False), N(4, 4, 3), 3),
         more=[lambda: (I(5, 3, 6), I(6, 4, 6), N(7, 6), N(8, 4, 2), 4, "mean"), lambda: (I(9, 3, 5), I(10, 2, 5), N(11, 5), N(12, 2, 2, grad=False), 3, "mean")]),
    dict(name="csr_spmm", object="csr_spmm", kind="callable", order="first",
         bug="the buffer of x's gradient has the default dtype, whatever x has", fits=["dtype"],
         inputs=lambda: (torch.tensor([0, 2, 2, 5, 6]), torch.tensor([1, 3, 0, 2, 2, 1]), N(1, 6), N(2, 4, 3)),
         more=[lambda: (torch.tensor([0, 1, 4, 4]), torch.tensor([2, 0, 1, 0]), N(3, 4), N(4, 3)), lambda: (torch.tensor([0, 2, 3]), torch.tensor([1, 4, 0]), N(5, 3, grad=False), N(6, 5, 2))]),
    dict(name="gcn_norm_conv", object="GCNConv", kind="module", make=built(1, 3, 2), order="first",
         bug="the edge weights' gradient lacks the part through the source's degree", fits=["value", "missing"],
         inputs=lambda: (N(1, 4, 3), torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]]), U(2, 5, lo=0.3)),
         more=[lambda: (N(3, 5, 3), torch.tensor([[0, 1, 2, 0], [1, 1, 3, 4]])), lambda: (N(4, 3, 3, grad=False), torch.tensor([[0, 1, 1], [1, 2, 2]]), U(5, 3, lo=0.3))]),
    dict(name="message_max", object="message_max", kind="callable", order="first",
         bug="a node without messages sends its gradient to edge 0", fits=["value"],
         inputs=lambda: (N(1, 4, 2), torch.tensor([[0, 1, 2, 3, 0], [1, 1, 3, 0, 0]]), N(2, 5)),
         more=[lambda: (N(3, 3, 3), torch.tensor([[0, 1, 2, 1], [1, 2, 0, 0]]), N(4, 4, grad=False)), lambda: (N(5, 3, 2, grad=False), torch.tensor([[0, 1, 2], [1, 3, 3]]), N(6, 3), 5)]),
    dict(name="chol_solve", object="CholeskySolve", kind="function", order="first",
         bug="for an upper factor the product of the symmetric gradient is on the wrong side", fits=["value"],
         inputs=lambda: (N(1, 3, 2), lower(2, 3, False).T.contiguous().requires_grad_(), True),
         more=[lambda: (N(3, 4, 1), lower(4, 4)), lambda: (N(5, 2, 3, grad=False), lower(6, 2), False), lambda: (N(7, 2, 2), lower(8, 2, False))]),
    dict(name="sym_eig", object="SymEig", kind="function", order="first",
         bug="the eigenvectors' inner product is transposed", fits=["value"],
         inputs=lambda: (N(1, 4, 4),), more=[lambda: (N(2, 2, 3, 3),), lambda: (N(3, 2, 2),)]),
    dict(name="tri_solve", object="tri_solve", kind="callable", order="first",
         bug="the diagonal of a unit triangular matrix gets a gradient", fits=["value"],
         inputs=lambda: (lower(1, 3), N(2, 3, 2), False, False, True),
         more=[lambda: (lower(3, 4, False).T.contiguous().requires_grad_(), N(4, 4), True, True), lambda: (lower(5, 3), N(6, 3, 2, grad=False)),
               lambda: (lower(7, 3, False).T.contiguous().requires_grad_(), N(8, 3, 1), True, False, True)]),
    dict(name="discrete_lyapunov", object="solve_discrete_lyapunov", kind="callable", order="first",
         bug="the two terms of A's gradient are taken as equal (they are for a symmetric incoming gradient)", fits=["value"],
         inputs=lambda: (N(1, 3, 3, scale=0.3), spd(2, 3)), more=[lambda: (N(3, 2, 2, scale=0.3), N(4, 2, 2)), lambda: (N(5, 3, 3, scale=0.3), spd(6, 3, False))]),
    dict(name="matrix_exp", object="ScaledMatrixExp", kind="function", order="first",
         bug="the scale t is missing in the gradient of A", fits=["value"],
         inputs=lambda: (N(1, 3, 3), tensor(0.7)), more=[lambda: (N(2, 2, 2), tensor(1.0, False)), lambda: (N(3, 4, 4, grad=False, scale=0.5), tensor(-0.5))]),
    dict(name="mvn_logprob", object="mvn_log_prob", kind="callable", order="first",
         bug="the log-determinant's gradient counts the samples instead of summing their gradients", fits=["value"],
         inputs=lambda: (N(1, 4, 3), N(2, 3), lower(3, 3)), more=[lambda: (N(4, 1, 2), N(5, 2, grad=False), lower(6, 2)), lambda: (N(7, 3, 4, grad=False), N(8, 4), lower(9, 4, False))]),
    dict(name="thin_qr", object="ThinQR", kind="function", order="first",
         bug="the upper triangle is copied where the lower belongs", fits=["value"],
         inputs=lambda: (N(1, 4, 3),), more=[lambda: (N(2, 3, 3),), lambda: (N(3, 5, 2),)]),
    dict(name="woodbury_solve", object="low_rank_solve", kind="callable", order="first",
         bug="the two parts of U's gradient are taken as equal", fits=["value"],
         inputs=lambda: (U(1, 4, lo=0.5), N(2, 4, 2), N(13, 4, 2)), more=[lambda: (U(4, 3, lo=0.5), N(5, 3, 1), N(6, 3)), lambda: (U(7, 3, lo=0.5, grad=False), N(8, 3, 2), N(9, 3, 1, grad=False))]),
    dict(name="kron_linear", object="KroneckerLinear", kind="module", make=built(2, (2, 3), (2, 2)), order="first",
         bug="backward reshapes the input with the two factors' sizes swapped", fits=["value"],
         inputs=lambda: (N(1, 3, 6),), more=[lambda: (N(2, 1, 6),), lambda: (N(3, 4, 6, grad=False),)]),
    dict(name="cayley_linear", object="CayleyLinear", kind="module", make=built(3, 3, scale=True), order="first",
         bug="the derivative of the factor I - S is missing", fits=["value", "missing"],
         inputs=lambda: (N(1, 2, 3),), more=[lambda: (N(2, 4, 3, grad=False),), lambda: (N(3, 2, 2, 3),)]),
    dict(name="deq_layer", object="DEQLayer", kind="module", make=built(4, 2, 3), order="first",
         bug="backward takes the fixed point that the module keeps from its latest call", fits=["state"],
         inputs=lambda: (N(1, 3, 2),), more=[lambda: (N(2, 1, 2),), lambda: (N(3, 4, 2, grad=False),)]),
    dict(name="kepler", object="KeplerSolve", kind="function", order="first",
         bug="one gradient too few since tol was added", fits=["count"],
         inputs=lambda: (U(1, 4, lo=0.2, hi=3), U(2, 4, hi=0.8), 60, 1e-14), more=[lambda: (U(3, 2, 3, lo=-3, hi=3), U(4, 2, 3, hi=0.9, grad=False), 80), lambda: (U(5, 3, grad=False), U(6, 3, hi=0.5), 80, 1e-14)]),
    dict(name="eq_qp", object="solve_eq_qp", kind="callable", order="first",
         bug="A's gradient lacks the part of A^T in the KKT matrix", fits=["value", "missing"],
         inputs=lambda: (spd(1, 4), N(2, 4), N(13, 2, 4), N(4, 2)), more=[lambda: (spd(5, 3), N(6, 3), N(7, 1, 3), N(8, 1, grad=False), True), lambda: (spd(9, 3, False), N(10, 3), N(11, 2, 3, grad=False), N(12, 2))]),
    dict(name="rk4_linear", object="LinearODE", kind="module", make=built(5, 2), order="first",
         bug="the last stage's input depends on k3 with h, not with h / 2", fits=["value"],
         inputs=lambda: (N(1, 3, 2),), more=[lambda: (N(2, 1, 2),), lambda: (N(3, 4, 2, grad=False),)]),
    dict(name="soft_dtw", object="soft_dtw", kind="callable", order="first",
         bug="the weights use the cost of the cell itself and not of its successor", fits=["value"],
         inputs=lambda: (N(1, 4, 2), N(2, 3, 2)), more=[lambda: (N(3, 4, 1), N(4, 4, 1), 0.5, 1), lambda: (N(5, 1, 2), N(6, 3, 2, grad=False), 2.0)]),
    dict(name="crf", object="LinearChainCRF", kind="module", make=built(6, 3), order="first",
         bug="padded steps count in the transitions' gradient", fits=["value"],
         inputs=lambda: (N(1, 2, 4, 3), I(2, 3, 2, 4), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool()),
         more=[lambda: (N(3, 3, 3, 3), I(4, 3, 3, 3)), lambda: (N(5, 2, 1, 3), I(6, 3, 2, 1)), lambda: (N(7, 2, 3, 3, grad=False), I(8, 3, 2, 3), torch.tensor([[1, 0, 0], [1, 1, 1]]).bool())]),
]
CASES += [
    dict(name="slope_penalty", object="SLOPEPenalty", kind="module", make=built(1, 5), order="first",
         bug="the permutation is used for its inverse", fits=["value"],
         inputs=lambda: (tensor([[0.3, -1.2, 2.0, 0.7, -0.1], [1.1, 0.2, -0.9, 1.6, -2.2]]),), more=[lambda: (N(2, 5),), lambda: (N(3, 2, 2, 5, grad=False),)]),
    dict(name="simplex_projection", object="project_simplex", kind="callable", order="first",
         bug="entries off the support get the mean subtracted too", fits=["value"],
         inputs=lambda: (N(1, 3, 5),), more=[lambda: (N(2, 4, 3), 2.0, 0), lambda: (N(4, 2, 3, 4), 0.5, 1)]),
    dict(name="l2_ball", object="ProjectL2Ball", kind="function", order="first",
         bug="0 / 0 for the zero vector, whose gradient is that of the identity", fits=["nan"],
         inputs=lambda: (tensor([[0.0, 0.0, 0.0], [1.0, 2.0, -1.0], [0.1, 0.2, 0.3]]),), more=[lambda: (N(2, 3, 4), 2.0, 0), lambda: (N(4, 5), 0.5)]),
    dict(name="sinkhorn", object="sinkhorn", kind="callable", order="first",
         bug="every iteration's backward uses the last potential", fits=["value"],
         inputs=lambda: (U(1, 4, 3, hi=2), U(2, 4, lo=0.2), U(4, 3, lo=0.2), 0.1, 3, True),
         more=[lambda: (U(5, 2, 3), U(6, 2, lo=0.2), U(7, 3, lo=0.2, grad=False), 0.5, 5, True), lambda: (U(8, 3, 3, grad=False), U(9, 3, lo=0.2), U(10, 3, lo=0.2), 0.3, 1, True)]),
    dict(name="wasserstein1d", object="Wasserstein1D", kind="function", order="first",
         bug="y's gradient is gathered where it has to be scattered", fits=["value"],
         inputs=lambda: (N(1, 2, 5), tensor([[0.3, -1.2, 2.0, 0.7, -0.1], [1.1, 0.2, -0.9, 1.6, -2.2]])),
         more=[lambda: (N(2, 6), N(4, 6), 1.0), lambda: (N(5, 2, 4, grad=False), N(6, 2, 4), 3.0)]),
    dict(name="spectral_gain", object="SpectralGain", kind="module", make=built(2, 7), order="first",
         bug="the last bin counts once for an odd length too", fits=["value"],
         inputs=lambda: (N(1, 3, 7),), more=[lambda: (N(2, 7),), lambda: (N(4, 2, 2, 7, grad=False),)]),
    dict(name="stft_frames", object="stft_frames", kind="callable", order="first",
         bug="the left border is folded back as if the padding repeated the first sample", fits=["value"],
         inputs=lambda: (N(1, 2, 10), U(2, 4, lo=0.2)),
         more=[lambda: (N(4, 1, 11), U(5, 5, lo=0.2), 2, False), lambda: (N(6, 2, 9), U(7, 4, lo=0.2, grad=False), 3), lambda: (N(8, 2, 8, grad=False), U(9, 4), 4)]),
    dict(name="biquad", object="Biquad", kind="module", make=built(3), order="first",
         bug="the feedback coefficients' gradient uses the incoming gradient, not the adjoint signal", fits=["value"],
         inputs=lambda: (N(1, 2, 8),), more=[lambda: (N(2, 6),), lambda: (N(4, 3, 3, grad=False),)]),
    dict(name="lifting_wavelet", object="LiftingWavelet", kind="module", make=built(4, 2), order="first",
         bug="the prediction's adjoint rolls in the forward direction", fits=["value"],
         inputs=lambda: (N(1, 2, 12),), more=[lambda: (N(2, 8),), lambda: (N(4, 2, 2, 8, grad=False),)]),
    dict(name="kaiser_apply", object="kaiser_apply", kind="callable", order="first",
         bug="the derivative of the window's normalisation is missing", fits=["value", "missing"],
         inputs=lambda: (N(1, 3, 6), tensor(4.0)), more=[lambda: (N(2, 5), tensor(1.5)), lambda: (N(4, 2, 4, grad=False), tensor(8.0)), lambda: (N(5, 2, 7), tensor(2.0, False))]),
    dict(name="wishart_lognorm", object="wishart_lognorm", kind="callable", order="first",
         bug="the chain rule's 1/2 is missing at the digamma", fits=["value"],
         inputs=lambda: (U(1, 4, lo=4, hi=9), N(2, 4), 3), more=[lambda: (U(4, 2, 2, lo=2, hi=5), N(5, 2, 2, grad=False), 1), lambda: (U(6, 3, lo=4, hi=5, grad=False), N(7, 3), 2)]),
    dict(name="log_ndtr", object="lognormal_logcdf", kind="callable", order="first",
         bug="0 / 0 far in the lower tail", fits=["nan"],
         inputs=lambda: (tensor([-45.0, -2.0, 0.3, 4.0]), tensor(0.1), tensor(0.9)),
         more=[lambda: (N(1, 5), N(2, 5), U(4, 5, lo=0.5), True), lambda: (N(5, 3, grad=False), tensor(0.0, False), tensor(2.0))]),
    dict(name="i0e", object="BesselI0e", kind="function", order="second",
         bug="part of the derivative is computed from a detached input", fits=["missing"],
         inputs=lambda: (N(1, 6, scale=2),), more=[lambda: (N(2, 2, 3),), lambda: (U(4, 4, lo=1, hi=30),)]),
    dict(name="gmm_nll", object="GaussianMixture", kind="module", make=built(5, 3, 2), order="first",
         bug="the mixture weights' normaliser takes the mean of the incoming gradients instead of their sum", fits=["value"],
         inputs=lambda: (N(1, 4, 2),), more=[lambda: (N(2, 1, 2),), lambda: (N(4, 3, 2), U(5, 3)), lambda: (N(6, 3, 2, grad=False), U(7, 3, grad=False))]),
    dict(name="rbf_ard", object="RBFKernel", kind="module", make=built(6, 2, jitter=1e-4), order="first",
         bug="with x2 = None the second role of x1 is taken as equal to the first (true for a symmetric gradient)", fits=["value"],
         inputs=lambda: (N(1, 4, 2),), more=[lambda: (N(2, 3, 2), N(4, 2, 2)), lambda: (N(5, 3, 2, grad=False), N(6, 4, 2)), lambda: (N(7, 3, 2, grad=False),)]),
    dict(name="spring_energy", object="SpringEnergy", kind="function", order="first",
         bug="forces at nodes with several springs overwrite each other", fits=["value"],
         inputs=lambda: (N(1, 4, 3), torch.tensor([[0, 1], [0, 2], [3, 2], [1, 3]]), U(2, 4), U(4, 4)),
         more=[lambda: (N(5, 3, 2), torch.tensor([[0, 1], [1, 2], [2, 0]]), U(6, 3, hi=2), U(7, 3, grad=False), True), lambda: (N(8, 3, 2, grad=False), torch.tensor([[0, 1], [0, 2]]), U(9, 2), U(10, 2))]),
    dict(name="lj_energy", object="LennardJones", kind="module", make=lambda cls: cls(0.8, 1.1, 2.0, 4.0).double(), order="first",
         bug="sigma's gradient leaves out the shift at the cutoff", fits=["value", "missing"],
         inputs=lambda: (tensor([[0.1, 0.2, 0.1], [1.3, 0.1, 0.4], [0.2, 1.5, 3.6], [2.9, 2.2, 0.3]]),),
         more=[lambda: (tensor([[0.1, 0.2], [1.3, 0.4], [3.7, 1.9]]),), lambda: (tensor([[0.1, 0.2, 0.3], [1.1, 0.9, 0.4], [3.4, 1.0, 1.3]], False),)]),
    dict(name="upwind_flux", object="UpwindAdvection", kind="function", order="first",
         bug="the velocity's gradient takes the left cell as donor for negative velocities too", fits=["value"],
         inputs=lambda: (N(1, 2, 5), N(2, 5), 0.1, 0.25), more=[lambda: (N(4, 4), N(5, 4), 0.1, 0.5), lambda: (N(6, 3, 4, grad=False), N(7, 4), 0.2, 0.5)]),
    dict(name="black_scholes", object="black_scholes", kind="callable", order="first",
         bug="rho of a put has the call's sign", fits=["value"],
         inputs=lambda: (U(1, 4, lo=0.8, hi=1.2), tensor(1.0), U(2, 4, lo=0.3, hi=2), U(4, 4, lo=0.1, hi=0.4), tensor(0.04), False),
         more=[lambda: (U(5, 3, lo=0.8, hi=1.2), U(6, 2, 1, lo=0.8, hi=1.2), tensor(0.5), tensor(0.2)), lambda: (U(7, 3, lo=0.8, hi=1.2, grad=False), tensor(1.1, False), tensor(0.5), U(8, 3, lo=0.2, hi=0.5), tensor(0.01))]),
]
