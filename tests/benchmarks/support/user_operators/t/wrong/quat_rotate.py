import torch


class QuatRotate(torch.autograd.Function):
    @staticmethod
    def forward(q, v):
        w, a = q[..., :1], q[..., 1:]
        uv = torch.cross(a, v, dim=-1)
        return v + 2 * (w * uv + torch.cross(a, uv, dim=-1))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        w, a = q[..., :1], q[..., 1:]
        dot = lambda x, y: (x * y).sum(-1, keepdim=True)
        cross = lambda x, y: torch.cross(x, y, dim=-1)
        gw = 2 * dot(g, cross(a, v))
        ga = 2 * (w * cross(v, g) + g * dot(a, v) + v * dot(a, g) - 2 * a * dot(g, v))
        ag = cross(a, g)
        return torch.cat([gw, ga], -1), g + 2 * (cross(a, ag) + w * ag)
