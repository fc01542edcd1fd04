import torch
from torch.autograd import Function


class BlinnPhong(Function):
    """kd * max(n.l, 0) + ks * max(n.h, 0)^shininess, h = (l + v) / |l + v|

    normals, lights, views: unit vectors (P, 3); kd, ks: (P,)
    """

    @staticmethod
    def forward(ctx, normals, lights, views, kd, ks, shininess=32):
        ctx.shininess = shininess
        ctx.save_for_backward(normals, lights, views, kd, ks)
        half = torch.nn.functional.normalize(lights + views, dim=-1)
        diff = (normals * lights).sum(-1).clamp(min=0)
        spec = (normals * half).sum(-1).clamp(min=0) ** shininess
        return kd * diff + ks * spec

    @staticmethod
    def backward(ctx, grad):
        n, l, v, kd, ks = ctx.saved_tensors
        k = ctx.shininess
        m = l + v
        length = m.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        h = m / length
        nl, nh = (n * l).sum(-1), (n * h).sum(-1)
        g_nl = (grad * kd * (nl > 0)).unsqueeze(-1)
        g_nh = (grad * ks * k * nh.clamp(min=0) ** (k - 1) * (nh > 0)).unsqueeze(-1)
        gh = g_nh * n
        gm = gh / length
        gn = g_nl * l + g_nh * h
        gl = g_nl * n + gm
        return gn, gl, gm, grad * nl.clamp(min=0), grad * nh.clamp(min=0) ** k, None
