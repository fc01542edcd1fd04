"""Densities, divergences and reparametrised samples with gradients by hand."""

import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

_LOG_2PI = math.log(2.0 * math.pi)


class HeteroscedasticNLL(Function):
    """Elementwise Gaussian NLL of (N, D) samples, with one log-variance for each row."""

    @staticmethod
    def forward(ctx, x, mean, log_var):
        if x.shape != mean.shape or log_var.shape != x.shape[:1]:
            raise ValueError("want x, mean of (N, D) and log_var of (N,)")
        lv = log_var.unsqueeze(1)
        ctx.save_for_backward(x, mean, log_var)
        return 0.5 * ((x - mean) ** 2 * torch.exp(-lv) + lv + _LOG_2PI)

    @staticmethod
    def backward(ctx, grad_out):
        x, mean, log_var = ctx.saved_tensors
        prec = torch.exp(-log_var).unsqueeze(1)
        err = x - mean
        grad_x = grad_out * err * prec
        grad_lv = 0.5 * grad_out * (1.0 - err**2 * prec)
        return grad_x, -grad_x, grad_lv


class KLDiagGaussian(Function):
    """KL(q || p) between diagonal Gaussians given by mean and log-variance.

    Args:
        reduction: "none" (one value a row), "sum" or "batchmean".
    """

    @staticmethod
    def forward(ctx, mu_q, lv_q, mu_p, lv_p, reduction="batchmean"):
        ratio = torch.exp(lv_q - lv_p)
        maha = (mu_q - mu_p) ** 2 * torch.exp(-lv_p)
        kl = 0.5 * (lv_p - lv_q + ratio + maha - 1.0).sum(-1)
        ctx.save_for_backward(mu_q, lv_q, mu_p, lv_p)
        ctx.reduction = reduction
        if reduction == "none":
            return kl
        if reduction == "sum":
            return kl.sum()
        if reduction == "batchmean":
            return kl.sum() / kl.shape[0]
        raise ValueError(reduction)

    @staticmethod
    def backward(ctx, grad):
        mu_q, lv_q, mu_p, lv_p = ctx.saved_tensors
        if ctx.reduction == "none":
            grad = grad.unsqueeze(-1)
        elif ctx.reduction == "mean":
            grad = grad / mu_q.shape[0]
        inv_p = torch.exp(-lv_p)
        diff = (mu_q - mu_p) * inv_p
        ratio = torch.exp(lv_q - lv_p)
        g_mu = grad * diff
        g_lq = 0.5 * grad * (ratio - 1.0)
        g_lp = 0.5 * grad * (1.0 - ratio - diff * (mu_q - mu_p))
        return g_mu, g_lq, -g_mu, g_lp, None


class RelaxedCategorical(Function):
    """Gumbel-softmax sample for uniform noise u, which is data and gets no gradient."""

    @staticmethod
    def forward(ctx, logits, u, tau=1.0):
        if u.requires_grad:
            raise ValueError("u must not require a gradient")
        gumbel = -torch.log(-torch.log(u))
        y = torch.softmax((logits + gumbel) / tau, dim=-1)
        ctx.save_for_backward(y)
        ctx.tau = tau
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        centred = g.sub_((g * y).sum(-1, keepdim=True))
        return y * centred / ctx.tau, None, None


def gumbel_softmax(logits, u, tau=1.0):
    return RelaxedCategorical.apply(logits, u, tau)


class StudentTLogProb(Function):
    """Log density of the standard t distribution; x and df broadcast."""

    @staticmethod
    def forward(ctx, x, df):
        ctx.save_for_backward(x, df)
        half = 0.5 * (df + 1.0)
        norm = torch.lgamma(half) - torch.lgamma(0.5 * df)
        norm = norm - 0.5 * torch.log(df * math.pi)
        return norm - half * torch.log1p(x * x / df)

    @staticmethod
    def backward(ctx, grad):
        x, df = ctx.saved_tensors
        grad_x = grad_df = None
        sq = x * x
        if ctx.needs_input_grad[0]:
            grad_x = (-grad * (df + 1.0) * x / (df + sq)).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            d = torch.digamma(0.5 * (df + 1.0)) - torch.digamma(0.5 * df)
            d = d - 1.0 / df - torch.log1p(sq / df)
            d = d + 0.5 * (df + 1.0) * sq / (df * (df + sq))
            grad_df = (0.5 * grad * d).sum_to_size(df.shape)
        return grad_x, grad_df


class HmmLogLikelihood(Function):
    """log p(obs) of a discrete HMM: log_pi (K,), log_trans (K, K) from row to column,
    log_emit (K, V), obs: a long tensor of symbols."""

    @staticmethod
    def forward(ctx, log_pi, log_trans, log_emit, obs):
        alpha = [log_pi + log_emit[:, obs[0]]]
        for o in obs[1:].tolist():
            step = torch.logsumexp(alpha[-1].unsqueeze(1) + log_trans, dim=0)
            alpha.append(step + log_emit[:, o])
        alpha = torch.stack(alpha)
        loglik = torch.logsumexp(alpha[-1], dim=0)
        ctx.save_for_backward(log_trans, log_emit, obs, alpha, loglik)
        return loglik

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        log_trans, log_emit, obs, alpha, loglik = ctx.saved_tensors
        g_trans = torch.zeros_like(log_trans)
        g_emit = torch.zeros_like(log_emit)
        beta = torch.zeros_like(alpha[0])
        for t in range(len(obs) - 1, 0, -1):
            g_emit[:, obs[t]] += torch.exp(alpha[t] + beta - loglik)
            ahead = (log_emit[:, obs[t]] + beta).unsqueeze(0)
            joint = log_trans.t() + ahead
            g_trans += torch.exp(alpha[t - 1].unsqueeze(1) + joint - loglik)
            beta = torch.logsumexp(joint, dim=1)
        g_pi = torch.exp(alpha[0] + beta - loglik)
        g_emit[:, obs[0]] += g_pi
        return grad * g_pi, grad * g_trans, grad * g_emit, None


class GaussianCopulaLogDensity(Function):
    """log c(u; R) for u in (0, 1), (N, D), and a correlation matrix R."""

    @staticmethod
    def forward(ctx, u, corr):
        z = torch.special.ndtri(u)
        prec = torch.linalg.inv(corr)
        quad = ((z @ prec) * z).sum(1) - (z * z).sum(1)
        ctx.save_for_backward(u, corr)
        return -0.5 * (torch.logdet(corr) + quad)

    @staticmethod
    def backward(ctx, g):
        u, corr = ctx.saved_tensors
        z = torch.special.ndtri(u)
        prec = torch.linalg.inv(corr)
        phi = torch.exp(-0.5 * (z * z + _LOG_2PI))
        dz = z - 0.5 * (z @ prec + z @ prec.t())
        grad_u = g.unsqueeze(1) * dz * phi
        left, right = z @ prec, z @ prec.t()
        grad_corr = 0.5 * (left * g.unsqueeze(1)).t() @ right
        grad_corr = grad_corr - 0.5 * g.sum() * prec.t()
        return grad_u, grad_corr


class TruncNormRsample(Function):
    """Sample of N(loc, scale) cut to [low, high], by inversion of the uniform u.

    The gradient accounts for the bounds, which are fixed numbers, moving in units of scale.
    """

    @staticmethod
    def forward(ctx, u, loc, scale, low: float, high: float):
        a = torch.special.ndtr((low - loc) / scale)
        b = torch.special.ndtr((high - loc) / scale)
        ctx.save_for_backward(u, loc, scale)
        ctx.bounds = low, high
        return loc + scale * torch.special.ndtri(a + u * (b - a))

    @staticmethod
    def backward(ctx, grad):
        u, loc, scale = ctx.saved_tensors
        low, high = ctx.bounds
        a, b = (low - loc) / scale, (high - loc) / scale
        ca, cb = torch.special.ndtr(a), torch.special.ndtr(b)
        z = torch.special.ndtri(ca + u * (cb - ca))
        pa = (1.0 - u) * torch.exp(0.5 * (z * z - a * a))
        pb = u * torch.exp(0.5 * (z * z - b * b))
        grad_u = grad * scale * (cb - ca) * torch.exp(0.5 * (z * z + _LOG_2PI))
        grad_loc = grad * (1.0 - pa - pb)
        grad_scale = grad * z
        grad_loc = grad_loc.sum_to_size(loc.shape)
        grad_scale = grad_scale.sum_to_size(scale.shape)
        return grad_u.sum_to_size(u.shape), grad_loc, grad_scale, None, None


class DirichletLogNorm(Function):
    """log B(alpha): the log normaliser of a Dirichlet whose classes lie along ``dim``."""

    @staticmethod
    def forward(alpha, dim=-1):
        return torch.lgamma(alpha).sum(dim) - torch.lgamma(alpha.sum(dim))

    @staticmethod
    def setup_context(ctx, inputs, output):
        alpha, ctx.dim = inputs
        ctx.save_for_backward(alpha)

    @staticmethod
    def backward(ctx, g):
        (alpha,) = ctx.saved_tensors
        total = alpha.sum(-1, keepdim=True)
        slope = torch.digamma(alpha) - torch.digamma(total)
        return g.unsqueeze(ctx.dim) * slope, None


class ZeroInflatedPoissonNLL(Function):
    """-log p(counts), elementwise; sigmoid(logit) is the chance of a structural zero."""

    @staticmethod
    def forward(ctx, logit, log_rate, counts):
        rate = log_rate.exp()
        ls = torch.nn.functional.logsigmoid(logit)
        lf = ls - logit  # log sigmoid(-logit)
        at_zero = torch.logaddexp(ls, lf - rate)
        above = lf + counts * log_rate - rate - torch.lgamma(counts + 1.0)
        ctx.save_for_backward(logit, log_rate, counts)
        return -torch.where(counts == 0, at_zero, above)

    @staticmethod
    def backward(ctx, grad):
        logit, log_rate, counts = ctx.saved_tensors
        rate = log_rate.exp()
        p = torch.sigmoid(logit)
        resp = torch.sigmoid(logit + rate)
        zero = counts > 0
        d_logit = torch.where(zero, resp - p, -p)
        d_rate = torch.where(zero, (resp - 1.0) * rate, counts - rate)
        return -grad * d_logit, -grad * d_rate, None


class ComplexNormalLogProb(Function):
    """Circular complex Gaussian, (N, D) samples with a real scale for each column."""

    @staticmethod
    def forward(ctx, z, mean, scale):
        dev = z - mean
        ctx.save_for_backward(z, mean, scale)
        return -((dev.abs() / scale) ** 2) - torch.log(math.pi * scale * scale)

    @staticmethod
    def backward(ctx, g):
        z, mean, scale = ctx.saved_tensors
        dev = z - mean
        grad_z = -2.0 * g * dev.conj() / scale**2
        sq = dev.real**2 + dev.imag**2
        grad_scale = (2.0 * g * (sq / scale**3 - 1.0 / scale)).sum(0)
        grad_mean = -grad_z.sum_to_size(mean.shape)
        return grad_z, grad_mean, grad_scale
