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
    name="mla_scores", object="MLAScores", kind="function",
    inputs=lambda: (r(2, 3, 2, 3), r(2, 3, 2, 2, seed=1), r(2, 4, 5, seed=2), r(2, 4, 2, seed=3), r(2, 3, 5, seed=4), 0.45),
    more=[lambda: (r(1, 1, 3, 2), r(1, 1, 3, 4, seed=1), r(1, 5, 3, seed=2), r(1, 5, 4, seed=3), r(3, 2, 3, seed=4), 1.0)],
    bug="the incoming gradient is scaled in place", fits=["modified"], order="first"))
CASES.append(dict(
    name="kto_loss", object="KTOLoss", kind="function",
    inputs=lambda: (r(6), r(6, seed=1), torch.tensor([True, False, False, True, False, True]), t(-0.8, grad=False), 0.7, 1.0, 1.5),
    more=[lambda: (r(4), r(4, seed=1), torch.tensor([True, False, False, True]), t(0.6, grad=False))],
    bug="backward uses the KL estimate without the clamp at zero", fits=["value"], order="first"))


def _cispo(logp, old, adv, mask, eps=0.28):
    w = torch.exp(logp - old).clamp(max=1 + eps)
    return lambda lp, *rest: -(w * adv * mask * lp).sum() / mask.sum()


CASES.append(dict(
    name="cispo_loss", object="CISPO", kind="function", surrogate=_cispo,
    inputs=lambda: (r(3, 5), r(3, 5, seed=1, grad=False), r(3, 5, seed=2, grad=False),
                    t([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], grad=False), 0.2),
    more=[lambda: (r(2, 3), r(2, 3, seed=1, grad=False), r(2, 1, seed=2, grad=False), torch.ones(2, 3, dtype=torch.float64))],
    bug="tokens whose weight is clipped lose their gradient as in PPO", fits=["value"], order="first"))
CASES.append(dict(
    name="newton_schulz", object="NewtonSchulz", kind="function",
    inputs=lambda: (r(3, 4), 3), more=[lambda: (r(2, 5, seed=1), 2), lambda: (r(3, 3, seed=2),)],
    bug="gradient of X X^T takes dA for symmetric", fits=["value"], order="first"))
CASES.append(dict(
    name="ssd_segsum", object="SegSumExp", kind="function",
    inputs=lambda: (r(2, 5, scale=0.6),), more=[lambda: (r(2, 2, 3, scale=0.5, seed=1),), lambda: (r(4, seed=2),)],
    bug="the reversed cumulative sum is exclusive instead of inclusive", fits=["value"], order="first"))
CASES.append(dict(
    name="mlstm_step", object="MLSTMStep", kind="function",
    inputs=lambda: (r(3, 2, 4), r(3, 4, seed=1, scale=2.0), r(3, 4, seed=2, scale=1.5), r(3, 4, seed=3), r(3, 2, seed=4),
                    u(3, lo=0.5, hi=2.0, seed=5), u(3, lo=0.3, hi=0.9, seed=6)),
    more=[lambda: (r(2, 3, 3), r(2, 3, seed=1, scale=0.1), r(2, 3, seed=2), r(2, 3, seed=3, scale=0.1), r(2, 3, seed=4),
                   u(2, lo=0.5, hi=1.0, seed=5), u(2, lo=0.3, hi=0.9, seed=6))],
    bug="the query's gradient through the normaliser is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="surfel_uv", object="SurfelUV", kind="function",
    inputs=lambda: (t([[[2.0, 0.3, 0.5], [0.1, 1.7, -0.4], [0.2, -0.1, 1.5]], [[1.2, -0.5, 0.3], [0.6, 1.9, 0.2], [-0.1, 0.2, 1.1]]]),
                    u(3, 2, lo=-0.5, hi=0.5)),
    more=[lambda: (t([[[2.0, 0.3, 0.5], [0.1, 1.7, -0.4], [0.2, -0.1, 1.5]]]), u(1, 2, lo=-0.5, hi=0.5, seed=3))],
    bug="the second factor of the cross product gets the wrong sign", fits=["value"], order="first"))
CASES.append(dict(
    name="scene_contract", object="SceneContract", kind="function",
    inputs=lambda: (r(5, 3, scale=1.4), 1.0),
    more=[lambda: (r(2, 2, 3, scale=2.0, seed=2), 1.5), lambda: (r(4, 3, scale=0.2, seed=3),)],
    bug="a factor 2 is missing in the derivative of the radial profile", fits=["value"], order="first"))
CASES.append(dict(
    name="cfg_zero_star", object="CFGZeroStar", kind="function",
    inputs=lambda: (r(2, 3, 2, 2), r(2, 3, 2, 2, seed=1), 4.0), more=[lambda: (r(3, 4), r(3, 4, seed=1), 1.5)],
    bug="derivative of the squared norm in the denominator lacks its 2", fits=["value"], order="first"))
CASES.append(dict(
    name="noaux_router", object="NoAuxRouter", kind="function",
    inputs=lambda: (r(4, 6), r(6, seed=1, grad=False, scale=0.3), 3, 2.5),
    more=[lambda: (r(2, 3, 4), r(4, seed=1, grad=False, scale=0.3), 2, 1.0, False)],
    bug="backward takes the biased scores", fits=["value"], order="first"))
CASES.append(dict(
    name="h1_relative_loss", object="H1Relative", kind="function",
    inputs=lambda: (r(2, 8), r(2, 8, seed=1), 2.5), more=[lambda: (r(3, 5), r(3, 5, seed=1))],
    bug="backward ignores the length of the interval", fits=["value"], order="first"))
CASES.append(dict(
    name="mpm_p2g", object="ParticleToGrid", kind="function",
    inputs=lambda: (u(5, lo=0.3, hi=1.1), u(5, lo=0.5, hi=1.5, seed=1), r(5, seed=2), 8, 0.2),
    more=[lambda: (u(3, lo=1.1, hi=3.9, seed=4), u(3, seed=1), r(3, seed=2), 6, 1.0)],
    bug="the weights' derivatives are kept on the class, a later call overwrites them", fits=["state"], order="first"))
CASES.append(dict(
    name="sph_density", object="SPHDensity", kind="function",
    inputs=lambda: (u(5, 3), u(5, lo=0.5, hi=1.5, seed=1), 0.9), more=[lambda: (u(4, 3, seed=2), u(4, seed=3), 1.3)],
    bug="the reaction of the neighbours' densities is taken equal to the own one", fits=["value"], order="first"))
CASES.append(dict(
    name="neus_alpha", object="NeuSAlpha", kind="function",
    inputs=lambda: (r(2, 5, scale=0.5), r(2, 5, seed=1, scale=0.5), t(3.0)),
    more=[lambda: (u(3, lo=0.2, hi=0.6), u(3, lo=-0.4, hi=0.1, seed=1), t([8.0]))],
    bug="the clamp's mask is not applied in backward", fits=["value"], order="first"))
CASES.append(dict(
    name="volsdf_density", object="LaplaceDensity", kind="function",
    inputs=lambda: (r(2, 4), t(0.7)), more=[lambda: (r(5, seed=2), t([0.3]))],
    bug="an intermediate is saved, second derivatives lose the paths through it", fits=["value"], order="second"))
CASES.append(dict(
    name="fape_loss", object="FAPE", kind="function",
    inputs=lambda: (r(2, 3, 3), r(2, 3, seed=1), r(4, 3, seed=2), r(2, 4, 3, seed=3),
                    t([[1, 1, 0, 1], [1, 1, 1, 0]], grad=False), 5.0, 2.0),
    more=[lambda: (r(1, 3, 3), r(1, 3, seed=1), r(3, 3, seed=2), r(1, 3, 3, seed=3)),
          lambda: (r(3, 3, 3), r(3, 3, seed=1), r(2, 3, seed=2), r(3, 2, 3, seed=3), None, 2.5)],
    bug="the rotation is applied transposed on the way back to the points", fits=["value"], order="first"))
CASES.append(dict(
    name="zbl_repulsion", object="ZBL", kind="function",
    inputs=lambda: (u(5, lo=0.8, hi=3.5), t([6, 1, 8, 14, 1], grad=False), t([1, 1, 6, 8, 8], grad=False),
                    t([0.18, 0.51, 0.28, 0.03]), t([1.6, 0.9, 0.4, 0.2]), 3.0),
    more=[lambda: (u(3, lo=0.8, hi=2.5), t([6, 1, 8], grad=False), t([1, 1, 6], grad=False), t([0.5, 0.5]), t([0.9, 0.3]))],
    bug="the switching function's derivative is missing in the radial one", fits=["value"], order="first"))
CASES.append(dict(
    name="reaction_field", object="ReactionField", kind="function",
    inputs=lambda: (t([[0.1, 0.2, 0.3], [1.8, 0.3, 0.5], [0.9, 1.1, 1.7], [0.4, 1.9, 0.1]]), r(4, seed=1, scale=0.3),
                    t([2.0, 2.1, 2.2], grad=False), torch.tensor([[0, 0, 1, 2, 0], [1, 2, 2, 3, 3]]), 0.95),
    more=[lambda: (t([[0.1, 0.2, 0.3], [0.6, 0.5, 0.1]]), r(2, seed=1, scale=0.3), t([3.0, 3.0, 3.0], grad=False),
                   torch.tensor([[0], [1]]), 1.2)],
    bug="backward forgets the minimum image", fits=["value"], order="first"))
CASES.append(dict(
    name="hstu_attention", object="HSTUAttention", kind="function",
    inputs=lambda: (r(2, 2, 4, 3), r(2, 2, 4, 3, seed=1), r(2, 2, 4, 2, seed=2), r(2, 4, 4, seed=3), torch.tensor([4, 3])),
    more=[lambda: (r(1, 3, 2, 2), r(1, 3, 2, 2, seed=1), r(1, 3, 2, 2, seed=2), r(3, 2, 2, seed=3), torch.tensor([2]))],
    bug="the mask is not applied to the gradient of the scores", fits=["value"], order="first"))
CASES.append(dict(
    name="snips_loss", object="SNIPS", kind="function",
    inputs=lambda: (r(6, scale=0.5), r(6, seed=1, scale=0.5), u(6, seed=2)),
    more=[lambda: (r(2, 3), r(2, 3, seed=1), u(2, 3, seed=2))],
    bug="the weights are saved, second derivatives with respect to the log-probabilities are lost", fits=["value"], order="second"))
CASES.append(dict(
    name="uniformity_loss", object="Uniformity", kind="function",
    inputs=lambda: (r(5, 3, scale=0.5), 1.5), more=[lambda: (r(3, 2, seed=2, scale=0.6),)],
    bug="each pair is counted once in backward, twice in forward", fits=["value"], order="first"))
CASES.append(dict(
    name="retrace_targets", object="Retrace", kind="function",
    inputs=lambda: (r(5, 2), r(5, 2, seed=1), r(5, 2, seed=2), u(5, 2, lo=0.8, hi=1.0, seed=3), r(5, 2, seed=4), 0.9),
    more=[lambda: (r(1, 3), r(1, 3, seed=1), r(1, 3, seed=2), u(1, 3, seed=3), r(1, 3, seed=4)),
          lambda: (r(3, 1), r(3, 1, seed=1), r(3, 1, seed=2), u(3, 1, seed=3), r(3, 1, seed=4), 1.0)],
    bug="the trace coefficient of the step before is used in the adjoint recursion", fits=["value"], order="first"))


def _klbal(post, prior, alpha=0.8):
    p0, q0 = post.log_softmax(-1), prior.log_softmax(-1)

    def f(a, b, *rest):
        p, q = a.log_softmax(-1), b.log_softmax(-1)
        kl = alpha * (p0.exp() * (p0 - q)).sum((1, 2)) + (1 - alpha) * (p.exp() * (p - q0)).sum((1, 2))
        return kl.mean()
    return f


CASES.append(dict(
    name="kl_balance", object="BalancedKL", kind="function", surrogate=_klbal,
    inputs=lambda: (r(2, 3, 4), r(2, 3, 4, seed=1), 0.8), more=[lambda: (r(3, 1, 5), r(3, 1, 5, seed=1), 0.5)],
    bug="alpha and 1 - alpha swapped", fits=["value"], order="first"))


def _fsq(z, levels):
    L = torch.tensor(levels, dtype=torch.float64)
    half = (L - 1) * (1 - 1e-3) / 2
    off = torch.where(L % 2 == 0, 0.5, 0.0).double()
    return lambda x, *rest: (torch.tanh(x + torch.atanh(off / half)) * half - off) / (L // 2)


CASES.append(dict(
    name="fsq_bound", object="FSQ", kind="function", surrogate=_fsq,
    inputs=lambda: (r(4, 3), (8, 5, 4)), more=[lambda: (r(2, 2, 2, seed=3), (3, 6))],
    bug="the tanh is taken without the shift", fits=["value"], order="first"))
CASES.append(dict(
    name="gromov_cost", object="GromovCost", kind="function",
    inputs=lambda: (u(4, 4), u(3, 3, seed=1), u(4, 3, seed=2, hi=0.3)), more=[lambda: (u(2, 2), u(5, 5, seed=1), u(2, 5, seed=2, hi=0.3))],
    bug="the plan's gradient takes the cost matrices for symmetric", fits=["value"], order="first"))


def spd(n, seed=0):
    a = r(n, n, seed=seed, grad=False)
    return (a @ a.T + 0.5 * torch.eye(n, dtype=torch.float64)).requires_grad_()


CASES.append(dict(
    name="bures_wasserstein", object="BuresWasserstein", kind="function",
    inputs=lambda: (r(3), spd(3, 1), r(3, seed=2), spd(3, 3)), more=[lambda: (r(2), spd(2, 4), r(2, seed=5), spd(2, 6))],
    bug="the transport maps of the two covariances are swapped", fits=["value"], order="first"))
CASES.append(dict(
    name="probit_predictive", object="ProbitPredictive", kind="function",
    inputs=lambda: (r(3, 4), u(3, 4, lo=0.2, hi=2.0, seed=1)), more=[lambda: (r(1, 2), u(1, 2, lo=0.2, hi=2.0, seed=1))],
    bug="kappa instead of its cube in the variance's gradient", fits=["value"], order="first"))
CASES.append(dict(
    name="brovey_fusion", object="BroveyFusion", kind="function",
    inputs=lambda: (u(2, 3, 2, 2, lo=0.2), u(2, 1, 2, 2, lo=0.2, seed=1), t([0.5, 0.3, 0.4])),
    more=[lambda: (u(1, 2, 3, 1, lo=0.2), u(1, 1, 3, 1, lo=0.2, seed=1), t([0.9, 0.3]), 0.01)],
    bug="the plain mean instead of the weights in the chain through the intensity", fits=["value"], order="first"))


def cspd(k, n, seed=0):
    a = c(k, n, n, seed=seed, grad=False)
    return (a @ a.mH + torch.eye(n, dtype=a.dtype)).requires_grad_()


CASES.append(dict(
    name="polsar_wishart", object="WishartDistance", kind="function",
    inputs=lambda: (cspd(4, 2), cspd(2, 2, seed=1)), more=[lambda: (cspd(1, 3, seed=2), cspd(2, 3, seed=3))],
    bug="transpose without the conjugate in the gradient of the sample covariances", fits=["value"], order="first"))
CASES.append(dict(
    name="impact_cost", object="ImpactCost", kind="function",
    inputs=lambda: (t([[0.5, -0.2], [0.0, 0.7], [-0.3, 0.4]]), t([0.02, 0.5]), t([1.5, 3.0]), t(0.8), t(0.3)),
    more=[lambda: (r(4, 3), u(3, lo=0.1, seed=1), u(3, lo=1.0, hi=2.0, seed=2), t([0.8]), t([0.3]), 0.5)],
    bug="the sign is computed as |v| / v and is nan for a slot without trade", fits=["nan"], order="first"))
CASES.append(dict(
    name="min_variance_weights", object="MinVarianceWeights", kind="function",
    inputs=lambda: (spd(4, 2), 0.1), more=[lambda: (torch.stack([spd(3, 1), spd(3, 2)]).detach().requires_grad_(),)],
    bug="the factors of the outer product are swapped", fits=["value"], order="first"))
CASES.append(dict(
    name="lightning_indexer", object="LightningIndexer", kind="function",
    inputs=lambda: (r(2, 3, 2, 4), r(2, 4, 4, seed=1), r(2, 3, 2, seed=2)),
    more=[lambda: (r(1, 2, 3, 2), r(1, 5, 2, seed=1), r(1, 2, 3, seed=2), 1.0)],
    bug="the head weights' gradient takes the logits before the ReLU", fits=["value"], order="first"))
CASES.append(dict(
    name="laser_attention", object="LaserAttention", kind="function",
    inputs=lambda: (r(1, 2, 3, 4), r(1, 2, 4, 4, seed=1), r(1, 2, 4, 3, seed=2), 0.5),
    more=[lambda: (r(2, 1, 2, 2), r(2, 1, 3, 2, seed=1), r(2, 1, 3, 2, seed=2), 1.0)],
    bug="delta of the softmax backward as in plain flash attention", fits=["value"], order="first"))
CASES.append(dict(
    name="integer_spike", object="IntegerSpike", kind="function",
    surrogate=lambda x, D=4: (lambda y, *rest: y.clamp(0, D) / D),
    inputs=lambda: (t([[-0.6, 0.3, 1.2, 2.7], [3.8, 4.4, 5.1, 0.8]]), 4), more=[lambda: (t([0.2, -0.7, 2.2, 1.4]), 2)],
    bug="the surrogate's window ends at one instead of D", fits=["value"], order="first"))
CASES.append(dict(
    name="loha_linear", object="LohaLinear", kind="module", make=lambda cls: fill(cls(4, 3, rank=2, alpha=1.5)),
    inputs=lambda: (r(2, 4),), more=[lambda: (r(2, 2, 4, seed=3),)],
    bug="the second pair of factors reuses the product meant for the first", fits=["value"], order="first"))
CASES.append(dict(
    name="loreft", object="LoReFT", kind="module", make=lambda cls: fill(cls(5, 2)),
    inputs=lambda: (r(2, 3, 5),), more=[lambda: (r(4, 5, seed=3),)],
    bug="the path of R through -R h is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="poly_norm", object="PolyNorm", kind="module", make=lambda cls: fill(cls()),
    inputs=lambda: (r(3, 4),), more=[lambda: (r(2, 2, 3, seed=3),)],
    bug="the inverse norms are saved, second derivatives lose the paths through them", fits=["value"], order="second"))
CASES.append(dict(
    name="outer_product_mean", object="OuterProductMean", kind="module", make=lambda cls: fill(cls(3, 2, 2)),
    inputs=lambda: (r(3, 2, 3), t([[1, 1], [1, 0], [0, 1]], grad=False)), more=[lambda: (r(2, 3, 3, seed=3),)],
    bug="the gradient of b is not masked", fits=["value"], order="first"))
CASES.append(dict(
    name="triangle_mult", object="TriangleMultiplication", kind="module", make=lambda cls: fill(cls(3, 2, mode="incoming")),
    inputs=lambda: (r(3, 3, 3), t([[1, 1, 1], [1, 1, 0], [1, 0, 1]], grad=False)),
    more=[lambda: (r(2, 2, 3, seed=4), torch.ones(2, 2, dtype=torch.float64))],
    bug="the edge is transposed in the gradient of the left factor for incoming edges", fits=["value"], order="first"))
CASES.append(dict(
    name="galerkin_attention", object="GalerkinAttention", kind="module", make=lambda cls: fill(cls(2, 3)),
    inputs=lambda: (r(2, 2, 4, 3), r(2, 2, 4, 3, seed=1), r(2, 2, 4, 3, seed=2)),
    more=[lambda: (r(1, 2, 2, 3), r(1, 2, 2, 3, seed=1), r(1, 2, 2, 3, seed=2))],
    bug="the mean is not subtracted in the backward of the normalisation", fits=["value"], order="first"))
CASES.append(dict(
    name="local_reparam", object="BayesLinear", kind="module", make=lambda cls: fill(cls(4, 3)),
    inputs=lambda: (r(3, 4), r(3, 3, seed=1, grad=False)), more=[lambda: (r(2, 4, seed=2), r(2, 3, seed=3))],
    bug="a factor 2 is missing in the variance's path to x", fits=["value"], order="first"))
CASES.append(dict(
    name="qmix", object="QMixer", kind="module", make=lambda cls: fill(cls(3, 4, embed_dim=2)),
    inputs=lambda: (r(3, 3), r(3, 4, seed=1)), more=[lambda: (r(1, 3, seed=2), r(1, 4, seed=3))],
    bug="the sign of the second layer's weights is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="pqmf_analysis", object="PQMFAnalysis", kind="module", make=lambda cls: fill(cls(2, taps=6)),
    inputs=lambda: (r(2, 11),), more=[lambda: (r(1, 8, seed=2),)],
    bug="the padding is cut off one sample early", fits=["value"], order="first"))
CASES.append(dict(
    name="transolver_slice", object="PhysicsSlice", kind="module", make=lambda cls: fill(cls(3, 2), keep=("temperature",)),
    inputs=lambda: (r(2, 4, 3),), more=[lambda: (r(1, 6, 3, seed=2),)],
    bug="the normaliser's path to the slice weights is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="deeponet_merge", object="DeepONetMerge", kind="module", make=lambda cls: fill(cls(2, 3)),
    inputs=lambda: (r(2, 6), r(5, 3, seed=1)), more=[lambda: (r(3, 6), r(2, 3, seed=1))],
    bug="the bias's gradient is summed over the outputs instead of the points", fits=["shape"], order="first"))
CASES.append(dict(
    name="dino_loss", object="DINOLoss", kind="module", make=lambda cls: fill(cls(4, teacher_temp=0.3), keep=("log_temp",)),
    inputs=lambda: (r(3, 4, scale=0.4), r(3, 4, seed=1, grad=False)), more=[lambda: (r(2, 4, scale=0.4), r(2, 4, seed=4, grad=False))],
    bug="the centre is kept by reference and has been updated when backward reads it", fits=["state", "value"], order="first"))
CASES.append(dict(
    name="psp_double_exp", object="PSPFilter", kind="module", make=lambda cls: fill(cls(2), keep=("log_tau_m", "log_tau_s")),
    inputs=lambda: (u(5, 2, 2),), more=[lambda: (u(1, 1, 2, seed=2),)],
    bug="the decay's gradient pairs the adjoint with the present state instead of the previous one", fits=["value"], order="first"))
CASES.append(dict(
    name="sg_mixture", object="SGMixture", kind="module", make=lambda cls: fill(cls(3)),
    inputs=lambda: (torch.nn.functional.normalize(r(4, 3, grad=False), dim=-1).requires_grad_(),),
    more=[lambda: (torch.nn.functional.normalize(r(2, 3, grad=False, seed=3), dim=-1).requires_grad_(),)],
    bug="None for the directions", fits=["None for"], order="first"))
CASES.append(dict(
    name="mod_router", object="MixtureOfDepths", kind="module", make=lambda cls: fill(cls(3, 2)),
    inputs=lambda: (r(2, 4, 3),), more=[lambda: (r(1, 5, 3, seed=3),)],
    bug="the router's path to the tokens is missing", fits=["value"], order="first"))
CASES.append(dict(
    name="feature_matching", object="feature_matching", kind="callable",
    inputs=lambda: ([r(2, 3), r(2, 4, seed=1, scale=3.0)], [r(2, 3, seed=2), r(2, 4, seed=3)]),
    more=[lambda: ([r(5)], [r(5, seed=2)]),
          lambda: ([r(2, 2), r(3, seed=1), r(1, 4, seed=2)], [r(2, 2, seed=3), r(3, seed=4), r(1, 4, seed=5)])],
    bug="every layer is divided by the level of the last one", fits=["value"], order="first"))
CASES.append(dict(
    name="hg_phase", object="hg_phase", kind="callable",
    inputs=lambda: (u(3, 4, lo=-0.9, hi=0.9), u(4, lo=-0.7, hi=0.7, seed=1)),
    more=[lambda: (u(5, lo=-0.9, hi=0.9), t(0.4)), lambda: (u(2, 2, lo=-0.9, hi=0.9), u(2, 2, lo=-0.5, hi=0.5, seed=2))],
    bug="the inner derivative of the power lacks its 2", fits=["value"], order="first"))
CASES.append(dict(
    name="zoh_discretize", object="zoh_discretize", kind="callable",
    inputs=lambda: (u(2, 3, 2, lo=0.1, hi=0.8), u(2, 3, lo=-2.0, hi=-0.5, seed=1), r(2, 3, 3, seed=2)),
    more=[lambda: (u(1, 2, 3, lo=0.1, hi=0.8), u(3, 1, lo=-2.0, hi=-0.5, seed=1), r(1, 2, 1, seed=2))],
    bug="the division by A is not differentiated", fits=["value"], order="first"))
CASES.append(dict(
    name="gspo_loss", object="gspo_loss", kind="callable",
    inputs=lambda: (r(4, 4), r(4, 4, seed=1, grad=False), t([1.0, -0.7, 0.4, -1.2], grad=False),
                    t([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]], grad=False),
                    SimpleNamespace(clip_low=0.2, clip_high=0.3)),
    more=[lambda: (r(2, 3, seed=5), r(2, 3, seed=6, grad=False), t([1.0, -0.7], grad=False), torch.ones(2, 3, dtype=torch.float64))],
    bug="divided by the padded length instead of the sequence's own", fits=["value"], order="first"))
CASES.append(dict(
    name="softpick", object="softpick", kind="callable",
    inputs=lambda: (r(3, 5),), more=[lambda: (r(2, 2, 3, seed=2, scale=3.0), 1e-3)],
    bug="the sign of the entries below zero is not kept in the denominator's derivative", fits=["value"], order="first"))
CASES.append(dict(
    name="mip_smoothing", object="mip_smoothing", kind="callable",
    inputs=lambda: (u(4, 3, lo=0.2, hi=1.0), u(4, 1, lo=0.1, hi=0.9, seed=1), u(4, 1, lo=0.1, hi=0.5, seed=2)),
    more=[lambda: (u(2, 3, lo=0.2, hi=1.0, seed=5), u(2, 1, seed=6), u(2, 1, lo=0.1, seed=7))],
    bug="1 / new scale instead of scale / variance in the compensation's derivative", fits=["value"], order="first"))
CASES.append(dict(
    name="cornish_fisher", object="cornish_fisher", kind="callable",
    inputs=lambda: (r(7, 2), -2.3263), more=[lambda: (r(5, 3, seed=4),)],
    bug="the kurtosis's derivative uses the excess", fits=["value"], order="first"))
CASES.append(dict(
    name="kfac_logdet", object="kfac_logdet", kind="callable",
    inputs=lambda: ([(spd(3, 1), spd(2, 2)), (spd(2, 3), spd(2, 4))], t(0.8), 5),
    more=[lambda: ([(spd(2, 5), spd(3, 6))], t(1.5))],
    bug="the prior's gradient is that of the last layer alone", fits=["value"], order="first"))
CASES.append(dict(
    name="model_soup", object="model_soup", kind="callable",
    inputs=lambda: ([r(2, 3), r(2, 3, seed=1), r(2, 3, seed=2)], r(3, seed=3)),
    more=[lambda: ([r(4), r(4, seed=1)], r(2, seed=3))],
    bug="the plain mean instead of the weighted one in the softmax's backward", fits=["value"], order="first"))
CASES.append(dict(
    name="xpbd_distance", object="xpbd_distance", kind="callable",
    inputs=lambda: (r(3, 3), r(3, 3, seed=1), u(3, lo=0.5, seed=2), u(3, lo=0.5, seed=3), u(3, lo=0.5, seed=4),
                    u(3, lo=0.05, hi=0.3, seed=5), 0.5),
    more=[lambda: (r(1, 3), r(1, 3, seed=1), u(1, lo=0.5, seed=2), u(1, lo=0.5, seed=3), u(1, lo=0.5, seed=4),
                   u(1, lo=1e-4, hi=1e-3, seed=5))],
    bug="the compliance's gradient is divided by dt once", fits=["value"], order="first"))
CASES.append(dict(
    name="block_compress", object="block_compress", kind="callable",
    inputs=lambda: (r(2, 7, 3), r(3, seed=1), 2), more=[lambda: (r(1, 4, 2), r(4, seed=1), 4), lambda: (r(2, 5, 2), r(1, seed=1), 2)],
    bug="the windows of a non-contiguous input are taken with the strides of a contiguous one", fits=["layout"], order="first"))
