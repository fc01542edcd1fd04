"""Distances, kernels, similarities and contrastive losses."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import Function, once_differentiable


class SelfDistance(Function):
    """Euclidean distances between all rows of x: (N, D) -> (N, N)."""

    @staticmethod
    def forward(ctx, x):
        d = (x.unsqueeze(1) - x.unsqueeze(0)).pow(2).sum(-1).sqrt()
        ctx.save_for_backward(x, d)
        return d

    @staticmethod
    def backward(ctx, g):
        x, d = ctx.saved_tensors
        w = g / d.masked_fill(d == 0, 1.0)
        w = w + w.t()
        return (w.unsqueeze(-1) * (x.unsqueeze(1) - x.unsqueeze(0))).sum(1)


class CosineSim(Function):
    @staticmethod
    def forward(a, b, dim=1, eps=1e-8):
        na = a.norm(dim=dim).clamp_min(eps)
        nb = b.norm(dim=dim).clamp_min(eps)
        return (a * b).sum(dim) / (na * nb)

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.dim, ctx.eps = inputs
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        dim = ctx.dim
        na = a.norm(dim=dim, keepdim=True).clamp_min(ctx.eps)
        nb = b.norm(dim=dim, keepdim=True).clamp_min(ctx.eps)
        ua = a.div(na)
        ub = b.div(nb)
        sim = (ua * ub).sum(dim, keepdim=True)
        g = g.unsqueeze(dim)
        return g * (ub - sim * ua) / na, g * (ua - sim * ub) / nb, None, None


class RBFKernel(Function):
    """K_ij = exp(-gamma |x_i - y_j|^2); gamma is a scalar tensor."""

    @staticmethod
    def forward(ctx, x, y, gamma):
        d2 = (x.unsqueeze(1) - y.unsqueeze(0)).pow(2).sum(-1)
        k = torch.exp(-gamma * d2)
        ctx.save_for_backward(x, y, gamma, k)
        return k

    @staticmethod
    def backward(ctx, grad_k):
        x, y, gamma, k = ctx.saved_tensors
        w = grad_k * k
        diff = x.unsqueeze(1) - y.unsqueeze(0)
        pull = -2 * gamma * w.unsqueeze(-1) * diff
        grad_gamma = -(w * diff.pow(2).sum(-1)).sum()
        return pull.sum(1), -pull.sum(0), grad_gamma


class InfoNCE(Function):
    """Contrastive loss of queries q (N, D) against keys k (N, D); the i-th key belongs to the i-th query."""

    @staticmethod
    def forward(ctx, q, k, tau=0.1):
        assert q.shape == k.shape
        logits = q @ k.t() / tau
        logp = F.log_softmax(logits, dim=1)
        ctx.save_for_backward(q, k, logp.exp())
        ctx.tau = tau
        return -logp.diagonal().mean()

    @staticmethod
    def backward(ctx, g):
        q, k, p = ctx.saved_tensors
        n = q.size(0)
        delta = p - torch.eye(n, dtype=p.dtype, device=p.device)
        delta = g * delta / (n * ctx.tau)
        return delta @ k, delta.t() @ q, None


class TripletHinge(Function):
    """max(|a - p|^2 - |a - n|^2 + margin, 0) for rows of anchor, pos, neg."""

    @staticmethod
    def forward(ctx, anchor, pos, neg, margin=1.0, reduction="mean"):
        d = (anchor - pos).pow(2).sum(-1) - (anchor - neg).pow(2).sum(-1)
        loss = (d + margin).clamp(min=0)
        ctx.save_for_backward(anchor, pos, neg, loss > 0)
        ctx.reduction = reduction
        if reduction == "mean":
            return loss.mean()
        elif reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    def backward(ctx, g):
        anchor, pos, neg, active = ctx.saved_tensors
        if ctx.reduction == "mean":
            g = g / active.numel()
        c = 2 * (g * active).unsqueeze(-1)
        g_anchor = c * (neg - pos)
        g_pos = c * (pos - anchor)
        g_neg = c * (anchor - neg)
        return g_anchor, g_pos, g_neg, None, None


class SupCon(Function):
    """Supervised contrastive loss; feats (N, D), labels (N,). Anchors without a partner are left out."""

    @staticmethod
    def forward(ctx, feats, labels, tau=0.5):
        n = feats.size(0)
        eye = torch.eye(n, dtype=torch.bool, device=feats.device)
        pos = ((labels[:, None] == labels[None, :]) & ~eye).to(feats.dtype)
        if pos.sum() == 0:
            raise ValueError("no two rows share a label")
        cnt = pos.sum(1)
        logits = (feats @ feats.t() / tau).masked_fill(eye, float("-inf"))
        logp = F.log_softmax(logits, dim=1).masked_fill(eye, 0.0)
        per_anchor = -(pos * logp).sum(1) / cnt.clamp(min=1)
        ctx.save_for_backward(feats, pos, eye)
        ctx.tau = tau
        return per_anchor.sum() / (cnt > 0).sum()

    @staticmethod
    def backward(ctx, grad):
        feats, pos, eye = ctx.saved_tensors
        cnt = pos.sum(1, keepdim=True)
        logits = (feats @ feats.t() / ctx.tau).masked_fill(eye, float("-inf"))
        p = torch.softmax(logits, dim=1)
        has = (cnt > 0).to(p.dtype)
        G = (p * has - pos / cnt.clamp(min=1)) / has.sum()
        return grad * (G + G.t()) @ feats / ctx.tau, None, None


class Mahalanobis(Function):
    """Squared Mahalanobis distance of rows x (N, D) from mu (D,), covariance = L L^T.

    L is lower triangular with a positive diagonal (the part above is not read).
    Differentiable in x, mu and L.
    """

    @staticmethod
    def forward(ctx, x, mu, L):
        z = torch.linalg.solve_triangular(L, (x - mu).t(), upper=False)
        ctx.save_for_backward(x, mu, L)
        return z.pow(2).sum(0)

    @staticmethod
    def backward(ctx, g):
        x, mu, L = ctx.saved_tensors
        L = L.tril()
        z = torch.linalg.solve_triangular(L, (x - mu).t(), upper=False)
        w = torch.linalg.solve_triangular(L.t(), z, upper=True)
        gx = (2 * g * w).t()
        return gx, -gx.sum(0), (-2 * (g * w) @ z.t()).tril()


class _ArcFn(Function):
    @staticmethod
    def forward(ctx, cos, labels, s, m):
        theta = torch.acos(cos.gather(1, labels[:, None]))
        ctx.save_for_backward(cos, labels)
        ctx.s, ctx.m = s, m
        return s * cos.scatter(1, labels[:, None], torch.cos(theta + m))

    @staticmethod
    def backward(ctx, g):
        cos, labels = ctx.saved_tensors
        theta = torch.acos(cos.gather(1, labels[:, None]))
        slope = torch.sin(theta + ctx.m) / torch.sin(theta)
        grad_cos = ctx.s * g * torch.ones_like(cos).scatter(1, labels[:, None], slope)
        return grad_cos, None, None, None


class ArcMargin(nn.Module):
    """ArcFace logits: s * cos(theta + m) for the labelled class, s * cos(theta) for the others."""

    def __init__(self, in_features, num_classes, s=30.0, m=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_classes, in_features))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.m = s, m

    def forward(self, x, labels):
        cos = F.linear(F.normalize(x), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        return _ArcFn.apply(cos, labels, self.s, self.m)


class SoftDTW(Function):
    """Soft dynamic time warping of a cost matrix D (N, M), on the CPU with numpy."""

    @staticmethod
    def forward(ctx, D, gamma=1.0):
        d = D.detach().cpu().numpy()
        n, m = d.shape
        R = np.full((n + 2, m + 2), np.inf)
        R[0, 0] = 0.0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                r = -np.array([R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]]) / gamma
                R[i, j] = d[i - 1, j - 1] - gamma * np.logaddexp.reduce(r)
        ctx.save_for_backward(D)
        ctx.R, ctx.gamma = R, gamma
        return D.new_tensor(R[n, m])

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (D,) = ctx.saved_tensors
        n, m = D.shape
        gamma, R = ctx.gamma, ctx.R.copy()
        d = np.zeros((n + 2, m + 2))
        d[1:n + 1, 1:m + 1] = D.detach().cpu().numpy()
        E = np.zeros((n + 2, m + 2))
        E[n + 1, m + 1] = 1.0
        R[:, m + 1] = R[n + 1, :] = -np.inf
        R[n + 1, m + 1] = R[n, m]
        for j in range(m, 0, -1):
            for i in range(n, 0, -1):
                a = np.exp((R[i + 1, j] - R[i, j] - d[i + 1, j]) / gamma)
                b = np.exp((R[i, j + 1] - R[i, j] - d[i, j + 1]) / gamma)
                c = np.exp((R[i + 1, j + 1] - R[i, j] - d[i + 1, j + 1]) / gamma)
                E[i, j] = E[i + 1, j] * a + E[i, j + 1] * b + E[i + 1, j + 1] * c
        return g * torch.from_numpy(E[1:n + 1, 1:m + 1]).to(D), None


class Wasserstein1d(Function):
    """Mean |u_(i) - v_(i)|^p of the sorted samples, u and v: (B, N)."""

    @staticmethod
    def forward(ctx, u, v, p=2):
        us, iu = u.sort(dim=-1)
        vs, iv = v.sort(dim=-1)
        ctx.save_for_backward(u, v, iu, iv)
        ctx.p = p
        return (us - vs).abs().pow(p).mean(-1)

    @staticmethod
    def backward(ctx, g):
        u, v, iu, iv = ctx.saved_tensors
        p = ctx.p
        d = u.gather(-1, iu) - v.gather(-1, iv)
        gd = g.unsqueeze(-1) * p * d.abs().pow(p - 1) * d.sign() / d.size(-1)
        gu = torch.zeros_like(u).scatter(-1, iu, gd)
        gv = torch.zeros_like(v).scatter(-1, iv, -gd)
        return gu, gv, None
