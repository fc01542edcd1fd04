import torch


class HarmonicAngle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c, k, cos0):
        u, v = a - b, c - b
        ctx.save_for_backward(a, b, c, k, cos0)
        cos = (u * v).sum(-1) / (u.norm(dim=-1) * v.norm(dim=-1))
        return 0.5 * k * (cos - cos0) ** 2

    @staticmethod
    def backward(ctx, g):
        a, b, c, k, cos0 = ctx.saved_tensors
        u, v = a - b, c - b
        nu, nv = u.norm(dim=-1, keepdim=True), v.norm(dim=-1, keepdim=True)
        uh, vh = u / nu, v / nv
        cos = (uh * vh).sum(-1, keepdim=True)
        dcos = (g * k).unsqueeze(-1) * (cos - cos0)
        ga = dcos * (vh - cos * uh) / nu
        gc = dcos * (uh - cos * vh) / nv
        gk = 0.5 * g * (cos.squeeze(-1) - cos0) ** 2
        gcos0 = -dcos.sum().view_as(cos0)
        return ga, -(ga + gc), gc, gk, gcos0
