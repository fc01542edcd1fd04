"""Log-densities, divergences and reparameterised samplers with analytic gradients."""
import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function

LOG_2PI = math.log(2 * math.pi)


class VonMisesLogProb(Function):
    """Log-density of the von Mises distribution; the arguments broadcast."""

    @staticmethod
    def forward(ctx, x: Tensor, mu: Tensor, kappa: Tensor) -> Tensor:
        if (kappa <= 0).any():
            raise ValueError("kappa must be positive")
        ctx.save_for_backward(x, mu, kappa)
        log_i0 = torch.log(torch.special.i0e(kappa)) + kappa
        return kappa * torch.cos(x - mu) - LOG_2PI - log_i0

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, mu, kappa = ctx.saved_tensors
        d = x.sub_(mu)
        gx = -grad * kappa * torch.sin(d)
        ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        gk = grad * (torch.cos(d) - ratio)
        return gx.sum_to_size(x.shape), -gx.sum_to_size(mu.shape), gk.sum_to_size(kappa.shape)


class KLDiagNormal(Function):
    """KL(q || p) of diagonal normals given by mean and log-variance, (..., D) each."""

    @staticmethod
    def forward(ctx, mu_q: Tensor, logvar_q: Tensor, mu_p: Tensor, logvar_p: Tensor,
                reduction: str = "mean") -> Tensor:
        if reduction not in ("none", "sum", "mean"):
            raise ValueError(f"unknown reduction {reduction!r}")
        if not mu_q.shape == logvar_q.shape == mu_p.shape == logvar_p.shape:
            raise ValueError("all four need the same shape")
        ctx.save_for_backward(mu_q, logvar_q, mu_p, logvar_p)
        ctx.reduction = reduction
        d = mu_q - mu_p
        kl = 0.5 * (logvar_p - logvar_q + (logvar_q.exp() + d * d) * (-logvar_p).exp() - 1).sum(-1)
        ctx.count = kl.numel()
        if reduction == "none":
            return kl
        return kl.sum() if reduction == "sum" else kl.mean()

    @staticmethod
    def backward(ctx, grad: Tensor):
        mu_q, logvar_q, mu_p, logvar_p = ctx.saved_tensors
        if ctx.reduction == "none":
            grad = grad.unsqueeze(-1)
        elif ctx.reduction == "mean":
            grad = grad / ctx.count
        d = mu_q - mu_p
        inv = (-logvar_p).exp()
        g_mu = grad * d * inv
        g_lq = grad * 0.5 * (logvar_q.exp() * inv - 1)
        g_lp = grad * 0.5 * (1 - (logvar_q.exp() + d * d) * inv)
        return g_mu, g_lq, None, g_lp, None


class KLDirichlet(Function):
    @staticmethod
    def forward(ctx, alpha, beta):
        assert alpha.shape == beta.shape
        if (alpha <= 0).any() or (beta <= 0).any():
            raise ValueError("concentrations must be positive")
        ctx.save_for_backward(alpha, beta)
        a0, b0 = alpha.sum(-1), beta.sum(-1)
        kl = torch.lgamma(a0) - torch.lgamma(alpha).sum(-1)
        kl += torch.lgamma(beta).sum(-1) - torch.lgamma(b0)
        kl += ((alpha - beta) * (torch.digamma(alpha) - torch.digamma(a0).unsqueeze(-1))).sum(-1)
        return kl

    @staticmethod
    def backward(ctx, g):
        alpha, beta = ctx.saved_tensors
        g = g.unsqueeze(-1)
        a0 = alpha.sum(-1, keepdim=True)
        b0 = beta.sum(-1, keepdim=True)
        gap = alpha - beta
        ga = gap * torch.polygamma(1, alpha)
        gb = torch.digamma(beta) - torch.digamma(b0) - torch.digamma(alpha) + torch.digamma(a0)
        return g * ga, g * gb


class _MixtureLogLik(Function):
    @staticmethod
    def forward(ctx, x, logits, mu, log_sigma):
        assert x.dim() == 1
        z = (x.unsqueeze(-1) - mu) * torch.exp(-log_sigma)
        log_pi = F.log_softmax(logits, dim=-1)
        joint = log_pi - 0.5 * z * z - log_sigma - 0.5 * LOG_2PI
        out = torch.logsumexp(joint, dim=-1)
        resp = torch.exp(joint - out.unsqueeze(-1))
        ctx.save_for_backward(z, resp, log_pi, log_sigma)
        return out

    @staticmethod
    def backward(ctx, g):
        z, resp, log_pi, log_sigma = ctx.saved_tensors
        w = g.unsqueeze(-1) * resp
        pull = w * z * torch.exp(-log_sigma)
        g_logits = w.sum(0)
        return -pull.sum(-1), g_logits, pull.sum(0), (w * (z * z - 1)).sum(0)


class MixtureDensity(nn.Module):
    """Log-likelihood of 1-d samples (N,) under a trained mixture of normals."""

    def __init__(self, components: int = 3):
        super().__init__()
        self.logits = nn.Parameter(torch.linspace(-0.5, 0.5, components))
        self.mu = nn.Parameter(torch.linspace(-1.0, 1.0, components))
        self.log_sigma = nn.Parameter(torch.zeros(components))

    def forward(self, x: Tensor) -> Tensor:
        return _MixtureLogLik.apply(x, self.logits, self.mu, self.log_sigma)


class _InverseMills(Function):
    """pdf(x) / cdf(x) of the standard normal."""

    @staticmethod
    def forward(ctx, x):
        r = math.sqrt(2 / math.pi) / torch.special.erfcx(-x / math.sqrt(2))
        ctx.save_for_backward(x, r)
        return r

    @staticmethod
    def backward(ctx, g):
        x, r = ctx.saved_tensors
        return -g * r * x


class LogNdtr(Function):
    """log of the standard normal cdf, accurate in the lower tail."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        tail = torch.log(0.5 * torch.special.erfcx(-x.clamp(max=0) / math.sqrt(2))) - 0.5 * x * x
        body = torch.log1p(-0.5 * torch.erfc(x.clamp(min=-1) / math.sqrt(2)))
        return torch.where(x < 0, tail, body)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * _InverseMills.apply(x)


class GumbelRelax(Function):
    """Relaxed one-hot sample: softmax((logits + noise) / tau) along dim."""

    @staticmethod
    def forward(logits: Tensor, noise: Tensor, tau: float = 1.0, dim: int = -1) -> Tensor:
        if logits.shape != noise.shape:
            raise ValueError("one noise value per logit")
        if tau <= 0:
            raise ValueError("tau must be positive")
        return torch.softmax((logits + noise) / tau, dim=dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, _, ctx.tau, ctx.dim = inputs
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        gl = y * (g - (g * y).sum(ctx.dim, keepdim=True))
        return gl, gl, None, None


def gumbel_relax(logits: Tensor, noise: Optional[Tensor] = None, tau: float = 1.0, dim: int = -1):
    if noise is None:
        noise = -torch.empty_like(logits).exponential_().log()
    return GumbelRelax.apply(logits, noise, tau, dim)


class BetaBinomialLogProb(Function):
    """log p(k successes in n trials), p ~ Beta(a, b). k and n are counts, k <= n."""

    @staticmethod
    def forward(ctx, k, n, a, b):
        if k.is_floating_point() or n.is_floating_point():
            raise TypeError("k and n are integer counts")
        if (k < 0).any() or (k > n).any():
            raise ValueError("counts must satisfy 0 <= k <= n")
        k, n = k.to(a.dtype), n.to(a.dtype)
        ctx.save_for_backward(k, n, a, b)
        choose = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
        post = torch.lgamma(k + a) + torch.lgamma(n - k + b) - torch.lgamma(n + a + b)
        prior = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
        return choose + post - prior

    @staticmethod
    def backward(ctx, g):
        k, n, a, b = ctx.saved_tensors
        both = torch.digamma(a + b) - torch.digamma(n + a + b)
        da = torch.digamma(k + a) - torch.digamma(a) + both
        db = torch.digamma(n - k + b) - torch.digamma(b) + both
        return None, None, (g * db).sum_to_size(a.shape), (g * da).sum_to_size(b.shape)


class KumaraswamySample(Function):
    """Inverse-cdf sample x = (1 - (1 - u)^(1/b))^(1/a) from uniform u in (0, 1)."""

    @staticmethod
    def forward(ctx, u, a, b):
        assert u.min() > 0 and u.max() < 1
        ctx.save_for_backward(u, a, b)
        return (1 - (1 - u) ** (1 / b)) ** (1 / a)

    @staticmethod
    def backward(ctx, grad):
        u, a, b = ctx.saved_tensors
        s = (1 - u) ** (1 / b)
        w = 1 - s
        x = w ** (1 / a)
        gs = -grad * x / (a * w)
        gu = -gs * s / (b * (1 - u))
        ga = -grad * x * torch.log(w) / a ** 2
        gb = -gs * s * torch.log1p(-u) / b
        return gu, ga.sum_to_size(a.shape), gb.sum_to_size(b.shape)


class MVNPrecisionChol(Function):
    """Log-density of N(mu, (L L^T)^-1) for rows of x; only tril(L) is read."""

    @staticmethod
    def forward(ctx, x, mu, L):
        dim = x.shape[-1]
        assert x.dim() == 2 and L.shape == (dim, dim)
        if (L.diagonal() <= 0).any():
            raise ValueError("diagonal of L must be positive")
        ctx.save_for_backward(x, mu, L)
        z = (x - mu) @ L.tril()
        return L.diagonal().log().sum() - 0.5 * (z * z).sum(-1) - 0.5 * dim * LOG_2PI

    @staticmethod
    def backward(ctx, g):
        x, mu, L = ctx.saved_tensors
        low = L.tril()
        d = x - mu
        z = d @ low
        gz = -g.unsqueeze(-1) * z
        gd = gz @ low.t()
        gL = torch.tril(gz.t() @ d) + torch.diag(g.sum() / L.diagonal())
        return gd, -gd.sum_to_size(mu.shape), gL


class FocalLoss(Function):
    """Multi-class focal loss, mean over the targets that are not ignored."""

    @staticmethod
    def forward(ctx, logits: Tensor, target: Tensor, gamma: float = 2.0, ignore_index: int = -100):
        assert logits.dim() == 2 and target.shape == logits.shape[:1]
        keep = target != ignore_index
        idx = torch.where(keep, target, torch.zeros_like(target)).unsqueeze(1)
        ctx.save_for_backward(logits, idx, keep)
        ctx.gamma = gamma
        logpt = F.log_softmax(logits, dim=1).gather(1, idx).squeeze(1)
        loss = -(1 - logpt.exp()) ** gamma * logpt
        return (loss * keep).sum() / keep.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g):
        logits, idx, keep = ctx.saved_tensors
        gamma = ctx.gamma
        logp = F.log_softmax(logits, dim=1)
        logpt = logp.gather(1, idx)
        pt = logpt.exp()
        d = gamma * (1 - pt) ** (gamma - 1) * pt * logpt - (1 - pt) ** gamma
        d = d * keep.unsqueeze(1) / logits.size(0)
        onehot = torch.zeros_like(logits).scatter(1, idx, 1.0)
        return g * d * (onehot - logp.exp()), None, None, None
