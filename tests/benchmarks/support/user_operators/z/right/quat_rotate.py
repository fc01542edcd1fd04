import torch


def _split(q):
    norm = q.norm(dim=-1, keepdim=True)
    u = q / norm
    return norm, u, u[:, None, :1], u[:, None, 1:]


class QuatRotate(torch.autograd.Function):
    """q (B, 4) as w, x, y, z of any length; p (B, N, 3)."""

    @staticmethod
    def forward(ctx, q, p):
        ctx.save_for_backward(q, p)
        _, _, w, v = _split(q)
        v = v.expand_as(p)
        c = torch.linalg.cross(v, p)
        return p + 2 * w * c + 2 * torch.linalg.cross(v, c)

    @staticmethod
    def backward(ctx, g):
        q, p = ctx.saved_tensors
        norm, u, w, v = _split(q)
        v = v.expand_as(p)
        gp = gq = None
        if ctx.needs_input_grad[1]:
            c = torch.linalg.cross(v, g)
            gp = g - 2 * w * c + 2 * torch.linalg.cross(v, c)
        if ctx.needs_input_grad[0]:
            vp, gv, gdp = (v * p).sum(-1, True), (g * v).sum(-1, True), (g * p).sum(-1, True)
            dw = 2 * (g * torch.linalg.cross(v, p)).sum(-1, True)
            dv = 2 * w * torch.linalg.cross(p, g) + 2 * (g * vp + p * gv - 2 * v * gdp)
            gu = torch.cat([dw, dv], -1).sum(1)
            gq = (gu - u * (u * gu).sum(-1, True)) / norm
        return gq, gp
