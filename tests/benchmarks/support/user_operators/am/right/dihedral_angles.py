import torch


class DihedralAngle(torch.autograd.Function):
    # xyz (..., N, 3), quads (Q, 4) -> (..., Q) in (-pi, pi]
    @staticmethod
    def geometry(xyz, quads):
        p = xyz[..., quads, :]
        b1, b2, b3 = (p[..., 1:, :] - p[..., :-1, :]).unbind(-2)
        return b1, b2, b3, torch.linalg.cross(b1, b2), torch.linalg.cross(b2, b3)

    @staticmethod
    def forward(ctx, xyz, quads):
        ctx.save_for_backward(xyz, quads)
        b1, b2, _, m, n = DihedralAngle.geometry(xyz, quads)
        return torch.atan2(b2.norm(dim=-1) * (b1 * n).sum(-1), (m * n).sum(-1))

    @staticmethod
    def backward(ctx, grad):
        xyz, quads = ctx.saved_tensors
        b1, b2, b3, m, n = DihedralAngle.geometry(xyz, quads)
        dot = lambda x, y: (x * y).sum(-1, keepdim=True)
        bb = dot(b2, b2).clamp(min=1e-12)
        g = grad[..., None] * bb.sqrt()
        d0 = -g * m / dot(m, m).clamp(min=1e-12)
        d3 = g * n / dot(n, n).clamp(min=1e-12)
        s, t = dot(b1, b2) / bb, dot(b3, b2) / bb
        d1 = -(1 + s) * d0 + t * d3
        d2 = -(1 + t) * d3 + s * d0
        out = torch.zeros_like(xyz)
        for k, d in enumerate((d0, d1, d2, d3)):
            out = out.index_add(-2, quads[:, k], d)
        return out, None
