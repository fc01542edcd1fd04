import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

C0 = 0.28209479177387814
C1 = 0.4886025119029199
C2 = (1.0925484305920792, 0.31539156525252005, 0.5462742152960396)


def basis(d, degree):
    x, y, z = d.unbind(1)
    b = [torch.full_like(x, C0)]
    if degree > 0:
        b += [-C1 * y, C1 * z, -C1 * x]
    if degree > 1:
        b += [C2[0] * x * y, -C2[0] * y * z, C2[1] * (2 * z * z - x * x - y * y), -C2[0] * x * z,
              C2[2] * (x * x - y * y)]
    return torch.stack(b, 1)


class SHColor(Function):

    @staticmethod
    def forward(ctx, coef, dirs, degree=2):
        # coef (N, 9, C), dirs (N, 3) of any length, -> colours (N, C) >= 0
        norm = dirs.norm(dim=1, keepdim=True).clamp(min=1e-9)
        d = dirs / norm
        b = basis(d, degree)
        raw = torch.einsum("nk,nkc->nc", b, coef[:, :b.shape[1]]) + 0.5
        ctx.save_for_backward(coef, d, norm, b, raw > 0)
        ctx.degree = degree
        return raw.clamp(min=0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        coef, d, norm, b, on = ctx.saved_tensors
        grad = grad * on
        K = b.shape[1]
        g_coef = torch.zeros_like(coef)
        g_coef[:, :K] = b[..., None] * grad[:, None]
        gb = (coef[:, :K] * grad[:, None]).sum(-1)
        x, y, z = d.unbind(1)
        gd = torch.zeros_like(d)
        if ctx.degree > 0:
            gd[:, 0] -= C1 * gb[:, 3]
            gd[:, 1] -= C1 * gb[:, 1]
            gd[:, 2] += C1 * gb[:, 2]
        if ctx.degree > 1:
            xy, yz, zz, xz, dd = gb[:, 4:].unbind(1)
            gd[:, 0] += C2[0] * (xy * y - xz * z) - 2 * C2[1] * zz * x + 2 * C2[2] * dd * x
            gd[:, 1] += C2[0] * (xy * x - yz * z) - 2 * C2[1] * zz * y - 2 * C2[2] * dd * y
            gd[:, 2] += 2 * C2[1] * zz * z - C2[0] * (yz * y + xz * x)
        g_dirs = (gd - d * (d * gd).sum(1, keepdim=True)) / norm
        return g_coef, g_dirs, None
