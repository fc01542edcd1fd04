import torch

C0 = 0.28209479177387814
C1 = 0.4886025119029199


def _basis(d):
    x, y, z = d.unbind(-1)
    return torch.stack([torch.full_like(x, C0), -C1 * y, C1 * z, -C1 * x], -1)


class SHColor(torch.autograd.Function):
    """View-dependent colour of Gaussians, spherical harmonics of degree 1.

    means (N, 3), campos (3,), sh (N, 4, 3) -> rgb (N, 3) >= 0
    """

    @staticmethod
    def forward(ctx, means, campos, sh):
        v = means - campos
        d = v / v.norm(dim=-1, keepdim=True)
        raw = (_basis(d)[..., None] * sh).sum(1) + 0.5
        ctx.save_for_backward(means, campos, sh, raw < 0)
        return raw.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        means, campos, sh, clamped = ctx.saved_tensors
        v = means - campos
        r = v.norm(dim=-1, keepdim=True)
        d = v / r
        g = g.masked_fill(clamped, 0.0)
        g_sh = _basis(d)[..., None] * g[:, None, :]
        g_y = (sh * g[:, None, :]).sum(-1)
        g_d = C1 * torch.stack([-g_y[:, 3], -g_y[:, 1], g_y[:, 2]], -1)
        g_v = g_d / r
        return g_v, -g_v.sum(0), g_sh
