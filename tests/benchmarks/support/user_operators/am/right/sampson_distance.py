import torch


class SampsonDistance(torch.autograd.Function):
    # F (3, 3), p and q (N, 2) matched points; returns (N,) squared first-order distances

    @staticmethod
    def parts(F, p, q):
        one = torch.ones_like(p[:, :1])
        hp, hq = torch.cat([p, one], 1), torch.cat([q, one], 1)
        lq = hp @ F.t()
        lp = hq @ F
        e = (hq * lq).sum(1, keepdim=True)
        keep = torch.tensor([1, 1, 0], dtype=p.dtype, device=p.device)
        den = ((lq ** 2 + lp ** 2) * keep).sum(1, keepdim=True)
        return hp, hq, lp, lq, e, den, keep

    @staticmethod
    def forward(ctx, F, p, q, eps=1e-12):
        ctx.save_for_backward(F, p, q)
        ctx.eps = eps
        *_, e, den, _ = SampsonDistance.parts(F, p, q)
        return (e * e / (den + eps)).squeeze(1)

    @staticmethod
    def backward(ctx, g):
        F, p, q = ctx.saved_tensors
        hp, hq, lp, lq, e, den, keep = SampsonDistance.parts(F, p, q)
        den = den + ctx.eps
        ge = 2 * g[:, None] * e / den
        gden = -g[:, None] * (e / den) ** 2
        glq = ge * hq + 2 * gden * lq * keep
        glp = 2 * gden * lp * keep
        gF = glq.t() @ hp + hq.t() @ glp
        ghp = glq @ F
        ghq = ge * lq + glp @ F.t()
        return gF, ghp[:, :2], ghq[:, :2], None
