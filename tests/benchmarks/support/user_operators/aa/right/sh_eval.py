import torch
from torch import Tensor

C0 = 0.28209479177387814
C1 = 0.4886025119029199
C2 = (1.0925484305920792, -1.0925484305920792, 0.31539156525252005, -1.0925484305920792, 0.5462742152960396)


def _basis(d: Tensor, deg: int) -> Tensor:
    x, y, z = d.unbind(-1)
    b = [torch.full_like(x, C0)]
    if deg > 0:
        b += [-C1 * y, C1 * z, -C1 * x]
    if deg > 1:
        b += [C2[0] * x * y, C2[1] * y * z, C2[2] * (2 * z * z - x * x - y * y), C2[3] * x * z, C2[4] * (x * x - y * y)]
    return torch.stack(b, -1)


def _basis_vjp(d: Tensor, gb: Tensor, deg: int) -> Tensor:
    x, y, z = d.unbind(-1)
    gx = gy = gz = torch.zeros_like(x)
    if deg > 0:
        gy = gy - C1 * gb[..., 1]
        gz = gz + C1 * gb[..., 2]
        gx = gx - C1 * gb[..., 3]
    if deg > 1:
        gx = gx + C2[0] * y * gb[..., 4] - 2 * C2[2] * x * gb[..., 6] + C2[3] * z * gb[..., 7] + 2 * C2[4] * x * gb[..., 8]
        gy = gy + C2[0] * x * gb[..., 4] + C2[1] * z * gb[..., 5] - 2 * C2[2] * y * gb[..., 6] - 2 * C2[4] * y * gb[..., 8]
        gz = gz + C2[1] * y * gb[..., 5] + 4 * C2[2] * z * gb[..., 6] + C2[3] * x * gb[..., 7]
    return torch.stack([gx, gy, gz], -1)


class EvalSH(torch.autograd.Function):
    """View-dependent colour max(0, SH(dir) + 0.5).

    sh: (N, 3, K), K >= (deg+1)^2; dirs: (N, 3), taken as they are (normalise before); deg 0..2
    """

    @staticmethod
    def forward(ctx, sh, dirs, deg: int):
        assert 0 <= deg <= 2 and sh.shape[-1] >= (deg + 1) ** 2
        n = (deg + 1) ** 2
        raw = torch.einsum("nck,nk->nc", sh[..., :n], _basis(dirs, deg)) + 0.5
        clamped = raw < 0
        ctx.save_for_backward(sh, dirs, clamped)
        ctx.deg = deg
        return raw.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        sh, dirs, clamped = ctx.saved_tensors
        deg = ctx.deg
        n = (deg + 1) ** 2
        g = g.masked_fill(clamped, 0)
        g_sh = g[..., None] * _basis(dirs, deg)[:, None]
        g_sh = torch.nn.functional.pad(g_sh, (0, sh.shape[-1] - n))
        g_dirs = _basis_vjp(dirs, torch.einsum("nc,nck->nk", g, sh[..., :n]), deg)
        return g_sh, g_dirs, None
