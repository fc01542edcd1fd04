import torch


class _DPDForce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, pairs, a, gamma, rc):
        ctx.save_for_backward(x, v, pairs)
        ctx.a, ctx.gamma, ctx.rc = a, gamma, rc
        i, j = pairs
        d = x[i] - x[j]
        r = d.norm(dim=-1, keepdim=True)
        n = d / r
        w = (1 - r / rc).clamp(min=0)
        u = (n * (v[i] - v[j])).sum(-1, keepdim=True)
        f = (a * w - gamma * w * w * u) * n
        return torch.zeros_like(x).index_add(0, i, f).index_add(0, j, -f)

    @staticmethod
    def backward(ctx, gF):
        x, v, pairs = ctx.saved_tensors
        a, gamma, rc = ctx.a, ctx.gamma, ctx.rc
        i, j = pairs
        d = x[i] - x[j]
        r = d.norm(dim=-1, keepdim=True)
        n = d / r
        w = (1 - r / rc).clamp(min=0)
        dw = -(r < rc).to(x.dtype) / rc
        vij = v[i] - v[j]
        u = (n * vij).sum(-1, keepdim=True)
        s = a * w - gamma * w * w * u
        s_r = (a - 2 * gamma * w * u) * dw
        s_u = -gamma * w * w
        g = gF[i] - gF[j]
        gn = (g * n).sum(-1, keepdim=True)
        gd = gn * (s_r * n + s_u * (vij - u * n) / r) + s * (g - gn * n) / r
        gv = gn * s_u * n
        gx = torch.zeros_like(x).index_add(0, i, gd).index_add(0, j, -gd)
        gv = torch.zeros_like(v).index_add(0, i, gv).index_add(0, j, -gv)
        return gx, gv, None, None, None, None


def dpd_force(x, v, pairs, a=25.0, gamma=4.5, rc=1.0):
    """Conservative and dissipative DPD forces; x, v (N, D), pairs (2, P), each pair once."""
    return _DPDForce.apply(x, v, pairs, a, gamma, rc)
