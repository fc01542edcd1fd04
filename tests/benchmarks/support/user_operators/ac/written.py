import torch

F64 = torch.float64


def N(seed, *shape, grad=True, scale=1.0, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    t = torch.randn(*shape, generator=g, dtype=F64) * scale + shift
    return t.requires_grad_(grad)


def U(seed, *shape, lo=0.0, hi=1.0, grad=True):
    g = torch.Generator().manual_seed(seed)
    t = torch.rand(*shape, generator=g, dtype=F64) * (hi - lo) + lo
    return t.requires_grad_(grad)


def V(*values, grad=True):
    return torch.tensor(values, dtype=F64).requires_grad_(grad)


def S(value, grad=True):
    return torch.tensor(float(value), dtype=F64).requires_grad_(grad)


def L(*values):
    return torch.tensor(values, dtype=torch.long)


def B(*values):
    return torch.tensor(values, dtype=torch.bool)


def dones(seed, T, Bn):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(T, Bn, generator=g) < 0.3


def spd(seed, n, grad=True):
    a = N(seed, n, n, grad=False)
    return (a @ a.t() + n * torch.eye(n, dtype=F64)).requires_grad_(grad)


def stable(seed, n, grad=True):
    a = N(seed, n, n, grad=False)
    return (0.7 * a / torch.linalg.matrix_norm(a, 2)).requires_grad_(grad)


def dist(seed, b, n, grad=True):
    return torch.softmax(N(seed, b, n, grad=False), 1).requires_grad_(grad)


def P3(seed, s, a, grad=True):
    return torch.softmax(N(seed, s, a, s, grad=False), 2).requires_grad_(grad)


def quats(seed, n):
    q = N(seed, n, 4, grad=False)
    return (q / q.norm(dim=1, keepdim=True)).requires_grad_()


def omegas(seed, n, zero=True):
    w = N(seed, n, 3, grad=False)
    if zero:
        w[1] = 0.0
    return w.requires_grad_()


def event_times(seed, b, l, T, grad=True):
    return (U(seed, b, l, grad=False).cumsum(1) / l * T).requires_grad_(grad)


def acp(T, grad=True):
    return torch.cumprod(1 - torch.linspace(0.02, 0.2, T, dtype=F64), 0).requires_grad_(grad)


def same_points(seed, n, d):
    x = N(seed, n, d, grad=False)
    return x.clone().requires_grad_(), x.clone().requires_grad_()


def sgrid(n, T=2.0):
    return torch.linspace(0, 1, n, dtype=F64).pow(1.5) * T


CASES = [
    # reinforcement learning and control
    {"name": "gae", "object": "GAEFunction", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "the backward scan cuts the episode at dones[t] instead of dones[t-1], one step off",
     "inputs": lambda: (N(1, 6, 3), N(2, 7, 3), dones(3, 6, 3), 0.97, 0.9),
     "more": [lambda: (N(4, 4, 2), N(5, 5, 2), torch.zeros(4, 2, dtype=torch.bool), 0.99, 1.0),
              lambda: (N(6, 1, 2), N(7, 2, 2), dones(8, 1, 2))]},
    {"name": "vtrace", "object": "VTrace", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "the gradient through the trace coefficients c is gated with the rho threshold when clip_c differs",
     "inputs": lambda: (N(1, 5, 2, scale=0.5), U(2, 5, 2, lo=0.5, hi=0.99), N(3, 5, 2), N(4, 5, 2), N(5, 2), 2.0, 1.0),
     "more": [lambda: (N(6, 4, 3, scale=0.5), U(7, 4, 3, lo=0.5, hi=0.99), N(8, 4, 3), N(9, 4, 3), N(10, 3), 1.0, 1.0)]},
    {"name": "squashed_gaussian", "object": "TanhGaussianSample", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "log_std receives gradient although it was clamped",
     "inputs": lambda: (N(1, 3, 2), V([0.1, 2.7], [-6.0, -0.4], [0.3, -1.0]), N(2, 3, 2), 2.0),
     "more": [lambda: (N(3, 4, 1), N(4, 4, 1, scale=0.3), N(5, 4, 1, grad=False))]},
    {"name": "c51_projection", "object": "CategoricalProjection", "kind": "function", "order": "first", "fits": ["value", "missing"],
     "bug": "when an atom lands exactly on the grid both backward weights are zero, its gradient is lost",
     "inputs": lambda: (dist(1, 3, 5), V(0.0, 9.0, 0.3, grad=False), B(True, False, False), 0.9, -2.0, 2.0),
     "more": [lambda: (dist(2, 2, 6), V(0.13, -0.37, grad=False), B(False, False), 0.95, -3.0, 3.0)]},
    {"name": "soft_value_iteration", "once_differentiable": True, "object": "SoftValueIteration", "kind": "function", "order": "first", "fits": ["missing"],
     "bug": "the transition gradient is assigned in every sweep instead of accumulated",
     "inputs": lambda: (N(1, 3, 2), P3(2, 3, 2), N(3, 3), 0.9, 0.5, 3),
     "more": [lambda: (N(4, 2, 3), P3(5, 2, 3), N(6, 2), 0.8, 1.0, 1)]},
    {"name": "quat_integrate", "object": "QuaternionIntegrate", "kind": "function", "order": "first", "fits": ["nan"],
     "bug": "backward divides by the norm of the angular velocity, NaN for a body at rest",
     "inputs": lambda: (quats(1, 3), omegas(2, 3), 0.1),
     "more": [lambda: (quats(3, 2), omegas(4, 2, zero=False), 0.5)]},
    {"name": "polyak", "object": "SoftUpdate_", "kind": "function", "order": "first", "fits": ["none", "missing"],
     "bug": "returns None for the previous target although the new one keeps (1 - tau) of it",
     "inputs": lambda: (N(1, 3, 4), N(2, 3, 4), B(True, False, True), 0.1),
     "more": [lambda: (N(3, 2, 5), N(4, 2, 5), B(True, True))]},
    {"name": "mppi_update", "object": "MPPIUpdate", "kind": "function", "order": "second", "fits": ["value", "missing"],
     "bug": "the weights are detached in backward: the first derivative is right, the second is not",
     "inputs": lambda: (N(1, 5), N(2, 5, 3, 2), S(0.7)),
     "more": [lambda: (N(3, 4), N(4, 4, 2, 1, grad=False), S(1.5, grad=False))]},
    {"name": "meta_discount", "object": "MetaDiscountedReturn", "kind": "function", "order": "first", "fits": ["state"],
     "bug": "the powers of gamma are cached by horizon only, a later call with another gamma uses the old ones",
     "inputs": lambda: (N(1, 3, 5), S(0.9)),
     "more": [lambda: (N(2, 2, 4), S(0.5)), lambda: (N(3, 2, 5), S(0.97))]},
    {"name": "lambda_return", "object": "LambdaReturn", "kind": "module", "order": "first", "fits": ["value", "missing"],
     "make": lambda c: c(lam=0.8, batch_first=True).double(),
     "bug": "the continuation gradient uses only the next return, not the mix with the next value",
     "inputs": lambda: (N(1, 3, 5), N(2, 3, 5), U(3, 3, 5, lo=0.3, hi=0.99), N(4, 3)),
     "more": [lambda: (N(5, 1, 4), N(6, 1, 4), U(7, 1, 4), N(8, 1))]},
    {"name": "pendulum", "object": "Pendulum", "kind": "module", "order": "first", "fits": ["value"],
     "make": lambda c: c(m=1.2, l=0.8).double(),
     "bug": "the derivative of 1/l^2 misses its factor two",
     "inputs": lambda: (N(1, 4), N(2, 4), V(0.5, -1.2, 3.0, 1.9)),
     "more": [lambda: (N(3, 2), N(4, 2, grad=False), V(0.4, -5.0))]},
    {"name": "ppo_clip", "object": "ppo_clip_loss", "kind": "callable", "order": "first", "fits": ["value", "missing"],
     "bug": "gradient is cut whenever the ratio is outside the interval, also on the side where the minimum keeps it",
     "inputs": lambda: (V([-1.0, -0.4, -2.0], [-0.2, -1.5, -0.9]), V([-0.5, -1.0, -2.05], [-1.2, -0.6, -0.95]),
                        V([1.0, -0.8, 0.5], [-1.2, -0.7, 0.9]), B([True, True, True], [True, True, False]), 0.2, 0.28),
     "more": [lambda: (V([-1.0, -0.4], [-0.7, -1.1]), V([-1.05, -0.5], [-0.6, -1.05], grad=False), N(1, 2, 2, grad=False))]},
    {"name": "quantile_huber", "object": "quantile_huber", "kind": "custom_op", "order": "first", "fits": ["value"],
     "bug": "the target gradient is averaged over the predicted quantiles instead of the target quantiles (N != M)",
     "inputs": lambda: (N(1, 2, 3), N(2, 2, 5, scale=2.0), U(3, 2, 3, lo=0.1, hi=0.9), 1.0),
     "more": [lambda: (N(4, 3, 4), N(5, 3, 4), U(6, 3, 4, lo=0.1, hi=0.9, grad=False), 0.5)]},
    # probabilistic and generative models
    {"name": "planar_flow", "object": "PlanarTransform", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "log|det| is differentiated as 1/|det|, the wrong sign where the determinant is negative",
     "inputs": lambda: (N(1, 4, 2, scale=0.3), V(-2.0, 1.0), V(1.5, 0.2), S(0.1)),
     "more": [lambda: (N(2, 3, 3), N(3, 3, scale=0.3), N(4, 3, scale=0.5), S(-0.2))]},
    {"name": "affine_coupling", "object": "MaskedAffineCoupling", "kind": "function", "order": "first", "fits": ["none", "missing"],
     "bug": "the gradient of scale is computed under the needs_input_grad of x, so it is None when x is data",
     "inputs": lambda: (N(1, 4, 3, grad=False), N(2, 4, 3), N(3, 4, 3), N(4, 3), V(1.0, 0.0, 0.0, grad=False)),
     "more": [lambda: (N(5, 2, 4), N(6, 2, 4), N(7, 2, 4, grad=False), N(8, 4), V(0.0, 1.0, 0.0, 1.0, grad=False))]},
    {"name": "pwl_cdf_flow", "object": "PiecewiseLinearCDF", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "the bins left of the hit one include the hit bin itself (inclusive instead of exclusive suffix sum)",
     "inputs": lambda: (V(0.05, 0.31, 0.37, 0.83, 0.97), N(1, 4)),
     "more": [lambda: (U(2, 7, lo=0.01, hi=0.99, grad=False), N(3, 6))]},
    {"name": "householder", "object": "HouseholderFlow", "kind": "function", "order": "first", "fits": ["missing"],
     "bug": "the derivative of 1/|v|^2 is left out",
     "inputs": lambda: (N(1, 3, 4), N(2, 2, 4)),
     "more": [lambda: (N(3, 2, 3, grad=False), N(4, 1, 3))]},
    {"name": "cont_bernoulli", "object": "ContBernoulliLogNorm", "kind": "function", "order": "first", "fits": ["nan"],
     "bug": "backward has no Taylor branch, NaN at lambda = 1/2",
     "inputs": lambda: (V(0.1, 0.5, 0.73, 0.502),),
     "more": [lambda: (V([0.02, 0.9], [0.3, 0.6]),)]},
    {"name": "tcvae_logqz", "object": "MinibatchLogQZ", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "the gradient of mu is summed over the wrong batch axis (same shape)",
     "inputs": lambda: (N(1, 4, 2), N(2, 4, 2), N(3, 4, 2, scale=0.3), 100),
     "more": [lambda: (N(4, 3, 3), N(5, 3, 3, grad=False), N(6, 3, 3, scale=0.3), 50)]},
    {"name": "renyi_bound", "object": "VRBound", "kind": "function", "order": "second", "fits": ["value", "missing"],
     "bug": "importance weights from forward are saved and reused, so the second derivative sees them as constants",
     "inputs": lambda: (N(1, 4, 3), 0.0),
     "more": [lambda: (N(2, 5, 2), 0.5), lambda: (N(3, 3, 2), 1.0)]},
    {"name": "q_sample", "object": "QSampleV", "kind": "function", "order": "first", "fits": ["none", "missing"],
     "bug": "if only one of the two outputs is used the other's gradient is None and nothing is returned at all",
     "inputs": lambda: (N(1, 3, 2, 4), N(2, 3, 2, 4), L(1, 4, 1), acp(6)),
     "more": [lambda: (N(3, 2, 1, 3), N(4, 2, 1, 3, grad=False), L(0, 3), acp(5, grad=False))]},
    {"name": "leapfrog", "object": "Leapfrog", "kind": "function", "order": "first", "fits": ["missing"],
     "bug": "the step size gradient of the first half kick is left out",
     "inputs": lambda: (N(1, 2, 3), N(2, 2, 3), spd(3, 3), U(4, 3, lo=0.5, hi=1.5), S(0.1), 3),
     "more": [lambda: (N(5, 3, 2), N(6, 3, 2), spd(7, 2, grad=False), U(8, 2, lo=0.5, hi=1.5, grad=False), S(0.2), 1)]},
    {"name": "svgd_phi", "object": "SVGDDirection", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "the kernel gradient is taken as symmetric (2 W instead of W + W^T)",
     "inputs": lambda: (N(1, 5, 2), N(2, 5, 2), 1.3),
     "more": [lambda: (N(3, 3, 3), N(4, 3, 3, grad=False), 2.0)]},
    {"name": "ecf", "object": "EmpiricalCF", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "the conjugate of the incoming gradient is missed",
     "inputs": lambda: (N(1, 4, 2), N(2, 3, 2), U(3, 4)),
     "more": [lambda: (N(4, 3, 1), N(5, 4, 1, grad=False), U(6, 3, grad=False))]},
    {"name": "glow_conv1x1", "object": "InvertibleConv1x1", "kind": "module", "order": "first", "fits": ["value"],
     "make": lambda c: c(3).double(),
     "bug": "the log-determinant's gradient uses the inverse, not its transpose",
     "inputs": lambda: (N(1, 2, 3, 2, 2),),
     "more": [lambda: (N(2, 1, 3, 3, 1), N(3, 1))]},
    {"name": "matern32", "object": "Matern32ARD", "kind": "module", "order": "first", "fits": ["nan"],
     "make": lambda c: c(2, lengthscale=0.8, variance=1.5).double(),
     "bug": "dk/dr is divided by r, NaN on the diagonal of k(x, x)",
     "inputs": lambda: same_points(1, 4, 2),
     "more": [lambda: (N(2, 3, 2), N(3, 5, 2)), lambda: (N(4, 2, 2), N(5, 3, 2, grad=False))]},
    {"name": "hawkes", "object": "Hawkes", "kind": "module", "order": "first", "fits": ["value"],
     "make": lambda c: c(4.0).double(),
     "bug": "the gradient of beta counts padded events in the compensator",
     "inputs": lambda: (event_times(1, 3, 5, 4.0), L(5, 3, 4)),
     "more": [lambda: (event_times(2, 2, 4, 4.0, grad=False), L(4, 4))]},
    {"name": "edm_precond", "object": "EDMPrecond", "kind": "module", "order": "first", "fits": ["value"],
     "make": lambda c: c(2, sigma_data=0.5).double(),
     "bug": "d c_out / d sigma treats the square root in the denominator as a constant",
     "inputs": lambda: (N(1, 2, 2, 4), V(0.3, 2.0)),
     "more": [lambda: (N(2, 1, 2, 3, grad=False), V(0.8))]},
    {"name": "hard_concrete", "object": "HardConcreteGate", "kind": "module", "order": "first", "fits": ["modified"],
     "make": lambda c: c(4).double(),
     "bug": "the incoming gradient is multiplied in place",
     "inputs": lambda: (U(1, 3, 4, lo=0.02, hi=0.98, grad=False),),
     "more": [lambda: (U(2, 1, 4, lo=0.02, hi=0.98, grad=False),)]},
    # optimal transport and differentiable optimisation
    {"name": "softsort", "object": "SoftSort", "kind": "function", "order": "first", "fits": ["missing"],
     "bug": "the gradient that reaches the scores through their sorted copy is left out",
     "inputs": lambda: (N(1, 2, 4), S(0.7), 2),
     "more": [lambda: (N(2, 1, 5), S(1.0), 1)]},
    {"name": "capped_simplex", "object": "CappedSimplexProjection", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "coordinates at the upper cap count as free",
     "inputs": lambda: (V([2.0, 0.3, 0.1, 0.4], [0.2, 0.9, 1.9, -1.0]), 2.0, 1.0),
     "more": [lambda: (N(1, 3, 5), 1.0, 0.6), lambda: (N(2, 4),)]},
    {"name": "eq_qp", "object": "EqualityQP", "kind": "function", "order": "first", "fits": ["missing"],
     "bug": "the gradient of A misses the term with the multipliers",
     "inputs": lambda: (spd(1, 3)[None].detach().requires_grad_(), N(2, 1, 3), N(3, 1, 2, 3), N(4, 1, 2)),
     "more": [lambda: (torch.stack([spd(5, 2, False), spd(6, 2, False)]).requires_grad_(), N(7, 2, 2), N(8, 2, 1, 2, grad=False), N(9, 2, 1))]},
    {"name": "sinkhorn_implicit", "once_differentiable": True, "object": "SinkhornPlan", "kind": "module", "order": "first", "fits": ["missing"],
     "make": lambda c: c(3, eps=0.5).double(),
     "bug": "the cost gradient leaves out the second dual's term",
     "inputs": lambda: (U(1, 3, 4),),
     "more": [lambda: (U(2, 3, 2),)]},
    {"name": "wasserstein1d", "object": "wasserstein_1d", "kind": "callable", "order": "first", "fits": ["value"],
     "bug": "the gradient is gathered with the sorting permutation instead of scattered (inverse permutation)",
     "inputs": lambda: (N(1, 2, 6), N(2, 2, 6), 2.0),
     "more": [lambda: (N(3, 3, 4), N(4, 3, 4, grad=False), 1.5, "none"), lambda: (N(5, 1, 5), N(6, 1, 5), 3.0, "sum")]},
    {"name": "sliced_w2", "object": "sliced_w2", "kind": "custom_op", "order": "first", "fits": ["value"],
     "bug": "y's gradient is scattered with x's sorting permutation",
     "inputs": lambda: (N(1, 5, 2), N(2, 5, 2), N(3, 3, 2)),
     "more": [lambda: (N(4, 4, 3), N(5, 4, 3), N(6, 2, 3, grad=False))]},
    {"name": "lyapunov", "object": "discrete_lyapunov", "kind": "callable", "order": "first", "fits": ["missing"],
     "bug": "only one of the two occurrences of A is differentiated",
     "inputs": lambda: (stable(1, 3), N(2, 3, 3)),
     "more": [lambda: (stable(3, 2), N(4, 2, 2), False), lambda: (stable(5, 2, grad=False), N(6, 2, 2))]},
    {"name": "mmd", "object": "mmd2", "kind": "callable", "order": "second", "fits": ["value", "missing"],
     "bug": "the kernel slopes are saved in forward and reused, constant for the second derivative",
     "inputs": lambda: (N(1, 4, 2), N(2, 3, 2)),
     "more": [lambda: (N(3, 3, 1), N(4, 4, 1, grad=False), (0.7,), True)]},
    {"name": "gp_mll", "object": "exact_mll", "kind": "callable", "order": "first", "fits": ["value"],
     "bug": "with several outputs the log-determinant counts once in backward instead of m times",
     "inputs": lambda: (N(1, 5, 2), N(2, 5, 3), V(0.1, -0.2), S(-1.0)),
     "more": [lambda: (N(3, 4, 1), N(4, 4, 1), V(0.3), S(-2.0))]},
    # compression
    {"name": "lsq", "object": "LSQQuantize", "kind": "function", "order": "first", "fits": ["value", "missing"], "surrogate": True,
     "bug": "the step size gradient inside the range misses the -x/s of the published rule",
     "inputs": lambda: (N(1, 3, 4), S(0.3), -4, 3, 0.5),
     "more": [lambda: (N(2, 6), S(0.1), 0, 15)]},
    {"name": "tt_embedding", "object": "TTEmbeddingLookup", "kind": "function", "order": "first", "fits": ["missing"],
     "bug": "rows of the first core hit by several indices are assigned, not accumulated",
     "inputs": lambda: (L(0, 4, 5, 1, 5), N(1, 3, 2, 2), N(2, 3, 2, 3)),
     "more": [lambda: (L(0, 3), N(3, 2, 1, 3), N(4, 2, 3, 2))]},
    {"name": "vq", "object": "VectorQuantizeST", "kind": "function", "order": "first", "fits": ["missing"], "surrogate": True,
     "bug": "codes chosen by several vectors get the gradient of one of them only",
     "inputs": lambda: (N(1, 6, 2), N(2, 3, 2), 0.25),
     "more": [lambda: (N(3, 2, 3), N(4, 5, 3), 1.0)]},
    {"name": "distill_kl", "object": "DistillKL", "kind": "function", "order": "first", "fits": ["dtype"],
     "bug": "backward computes the probabilities in float32, float64 gradients lose half of their digits",
     "inputs": lambda: (N(1, 2, 3, 5), N(2, 2, 3, 5, grad=False), B([True, True, False], [True, True, True]), 2.0),
     "more": [lambda: (N(3, 1, 2, 4), N(4, 1, 2, 4, grad=False), B([True, True]), 1.0)]},
    {"name": "channel_gate", "once_differentiable": True, "object": "ChannelGate_", "kind": "function", "order": "first", "fits": ["modified", "value"],
     "bug": "the activation is saved without a copy and then overwritten in place",
     "inputs": lambda: (N(1, 2, 3, 2, 2), N(2, 3)),
     "more": [lambda: (N(3, 1, 2, 1, 3), V(0.0, 1.0))]},
    {"name": "group_quant_linear", "object": "GroupQuantLinear", "kind": "module", "order": "first", "fits": ["value"],
     "make": lambda c: c(8, 3, group_size=4, bias=True).double(),
     "bug": "the scale gradient forgets to subtract the zero point",
     "inputs": lambda: (N(1, 3, 8),),
     "more": [lambda: (N(2, 2, 2, 8),), lambda: (N(3, 1, 8, grad=False),)]},
    {"name": "nm_sparse_linear", "object": "NMSparseLinear", "kind": "module", "order": "first", "fits": ["state"],
     "make": lambda c: c(8, 3).double(),
     "bug": "the mask of the first batch is kept for all later ones, whose activations would select another (inputs, then more[0] on the same module)",
     "inputs": lambda: (N(1, 4, 8),),
     "more": [lambda: (N(2, 3, 8),)]},
    {"name": "lora", "object": "LoRALinear", "kind": "module", "order": "first", "fits": ["layout"],
     "make": lambda c: c(4, 5, r=2).double(),
     "bug": "the incoming gradient is viewed, an error when it is not contiguous (e.g. output transposed before use)",
     "inputs": lambda: (N(1, 2, 3, 4),),
     "more": [lambda: (N(2, 3, 4),), lambda: (N(3, 2, 2, 4, grad=False),)]},
    # mixture of experts and parallel training
    {"name": "moe_combine", "object": "MoECombine", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "the gates of dropped tokens receive the gradient of slot 0",
     "inputs": lambda: (N(1, 5, 3), torch.tensor([[0, 3], [2, -1], [-1, 4], [1, -1]]), U(2, 4, 2)),
     "more": [lambda: (N(3, 4, 2), torch.tensor([[0], [3], [1]]), U(4, 3, 1))]},
    {"name": "vocab_parallel_nll", "object": "VocabParallelNLL", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "label smoothing is spread over the local shard's vocabulary in backward",
     "inputs": lambda: (L(0, 5, -100, 3), -100, 0.1, N(1, 4, 3), N(2, 4, 3)),
     "more": [lambda: (L(6, 2, 1), -1, 0.0, N(3, 3, 2), N(4, 3, 4), N(5, 3, 1)), lambda: (L(1, 0), -100, 0.2, N(6, 2, 3))]},
    {"name": "reduce_scatter", "object": "ReduceScatter", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "op='mean' is not divided by the world size in backward",
     "inputs": lambda: ("mean", 0, N(1, 4, 3), N(2, 4, 3)),
     "more": [lambda: ("sum", 1, N(3, 2, 3), N(4, 2, 3), N(5, 2, 3))]},
    {"name": "grouped_gemm", "object": "GroupedGEMM", "kind": "function", "order": "first", "fits": ["count"],
     "bug": "experts without tokens get no entry, too few gradients are returned",
     "inputs": lambda: (N(1, 5, 3), [2, 0, 3], N(2, 3, 2), N(3, 3, 2), N(4, 3, 2)),
     "more": [lambda: (N(5, 4, 2), [1, 3], N(6, 2, 3), N(7, 2, 3))]},
    {"name": "rev_coupling", "object": "ReversibleCoupling", "kind": "function", "order": "first", "fits": ["modified"],
     "bug": "the inverse is computed in place on the saved output, which is the caller's y2",
     "inputs": lambda: (N(1, 3, 2), N(2, 3, 2), N(3, 2, 2), N(4, 2, 2)),
     "more": [lambda: (N(5, 2, 3), N(6, 2, 2), N(7, 2, 3), N(8, 3, 2))]},
    {"name": "router_zloss", "object": "router_z_loss", "kind": "custom_op", "order": "first", "fits": ["value"],
     "bug": "backward divides by all tokens instead of the unmasked ones",
     "inputs": lambda: (N(1, 5, 4), V(1.0, 1.0, 0.0, 1.0, 0.0, grad=False), 0.001),
     "more": [lambda: (N(2, 3, 2), torch.ones(3, dtype=F64), 1.0)]},
    {"name": "chunked_policy_entropy", "object": "policy_entropy", "kind": "callable", "order": "first", "fits": ["missing"],
     "bug": "the weight gradient keeps the last chunk only",
     "inputs": lambda: (N(1, 2, 3, 3), N(2, 5, 3), 4),
     "more": [lambda: (N(3, 4, 2), N(4, 3, 2)), lambda: (N(5, 5, 2, ), N(6, 4, 2, grad=False), 2)]},
    # meta-learning, hypernetworks
    {"name": "hyper_linear", "object": "HyperLinear", "kind": "module", "order": "first", "fits": ["value"],
     "make": lambda c: c(3, 2, 2).double(),
     "bug": "the generated weight's gradient is flattened transposed (in, out) instead of (out, in)",
     "inputs": lambda: (N(1, 2, 3, 3), N(2, 2, 2)),
     "more": [lambda: (N(3, 1, 2, 3, grad=False), N(4, 1, 2))]},
    {"name": "ridge_head", "object": "RidgeHead", "kind": "function", "order": "first", "fits": ["none", "missing"],
     "bug": "returns None for the learnable regularisation strength",
     "inputs": lambda: (N(1, 5, 3), N(2, 5, 2), N(3, 4, 3), S(0.5)),
     "more": [lambda: (N(4, 3, 2), N(5, 3, 1, grad=False), N(6, 2, 2), S(1.0))]},
    {"name": "meta_sgd", "object": "MetaSGDStep", "kind": "function", "order": "first", "fits": ["missing"],
     "bug": "the parameter gradient leaves out the weight decay term",
     "inputs": lambda: (0.1, N(1, 2, 3), N(2, 4), N(3, 2, 3), N(4, 4), U(5, 2, 3), S(0.3)),
     "more": [lambda: (0.0, N(6, 3), N(7, 3), S(0.1))]},
    {"name": "protonet", "object": "PrototypeLogits", "kind": "function", "order": "first", "fits": ["value"],
     "bug": "support gradients assume the same number of shots in every class",
     "inputs": lambda: (N(1, 6, 2), L(0, 1, 1, 2, 1, 0), N(2, 3, 2), 3, 0.5),
     "more": [lambda: (N(3, 4, 3), L(0, 1, 1, 0), N(4, 2, 3, grad=False), 2)]},
    # point processes, samplers, codecs
    {"name": "poisson_trapz", "object": "poisson_loglik", "kind": "custom_op", "order": "first", "fits": ["value"],
     "bug": "the two end points of the trapezoid rule get full weight",
     "inputs": lambda: (N(1, 2, 4), V([1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], grad=False), N(2, 2, 5), sgrid(5)),
     "more": [lambda: (N(3, 1, 2), torch.ones(1, 2, dtype=F64), N(4, 1, 3), sgrid(3, 1.0))]},
    {"name": "ddim_step", "object": "ddim_step", "kind": "custom_op", "order": "first", "fits": ["value"],
     "bug": "the gradient of alpha_s uses the unclipped x0",
     "inputs": lambda: (N(1, 2, 3, 2, scale=1.5), N(2, 2, 3, 2), V(0.5, 0.3), V(0.7, 0.6), 1.0),
     "more": [lambda: (N(3, 3, 4), N(4, 3, 4), V(0.5, 0.3, 0.8), V(0.7, 0.6, 0.9, grad=False), 0.0)]},
    {"name": "gaussian_conditional", "object": "gaussian_likelihood", "kind": "custom_op", "order": "first", "fits": ["value"],
     "bug": "the sign of y - mean is missed, wrong for symbols below the mean",
     "inputs": lambda: (N(1, 2, 4, scale=2.0), U(2, 2, 4, lo=0.05, hi=2.0), N(3, 2, 4), 0.11),
     "more": [lambda: (N(4, 5), U(5, 5, lo=0.5, hi=1.5), N(6, 5, grad=False), 0.3)]},
]
