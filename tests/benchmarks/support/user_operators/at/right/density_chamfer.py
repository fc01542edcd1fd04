import torch


class _DCD(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, alpha, n_lambda, reduce):
        d = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
        i1, i2 = d.argmin(2), d.argmin(1)
        c1 = torch.zeros(y.shape[:2], dtype=torch.long, device=x.device).scatter_add(1, i1, torch.ones_like(i1))
        c2 = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device).scatter_add(1, i2, torch.ones_like(i2))
        w1 = c1.gather(1, i1).to(x.dtype) ** -n_lambda
        w2 = c2.gather(1, i2).to(x.dtype) ** -n_lambda
        ctx.save_for_backward(x, y, i1, i2, w1, w2)
        ctx.alpha, ctx.reduce = alpha, reduce
        e1 = torch.exp(-alpha * (x - _take(y, i1)).pow(2).sum(-1))
        e2 = torch.exp(-alpha * (y - _take(x, i2)).pow(2).sum(-1))
        loss = (2 - (e1 * w1).mean(1) - (e2 * w2).mean(1)) / 2
        return loss.mean() if reduce else loss

    @staticmethod
    def backward(ctx, grad):
        x, y, i1, i2, w1, w2 = ctx.saved_tensors
        if ctx.reduce:
            grad = grad.expand(x.size(0)) / x.size(0)
        grad = grad.view(-1, 1, 1)
        gx, gy = torch.zeros_like(x), torch.zeros_like(y)
        for a, b, i, w, first in ((x, y, i1, w1, True), (y, x, i2, w2, False)):
            diff = a - _take(b, i)
            e = torch.exp(-ctx.alpha * diff.pow(2).sum(-1)) * w
            ga = grad * ctx.alpha * e[..., None] * diff / a.size(1)
            gb = torch.zeros_like(b).scatter_add(1, i[..., None].expand_as(ga), -ga)
            gx, gy = (gx + ga, gy + gb) if first else (gx + gb, gy + ga)
        return gx, gy, None, None, None


def _take(p, i):
    return p.gather(1, i[..., None].expand(-1, -1, p.size(-1)))


def calc_dcd(x, gt, alpha=40.0, n_lambda=1.0, reduce=False):
    """Density-aware Chamfer distance (Wu et al. 2021). x (B, n, 3), gt (B, m, 3) -> (B,) or their mean."""
    return _DCD.apply(x, gt, alpha, n_lambda, reduce)
