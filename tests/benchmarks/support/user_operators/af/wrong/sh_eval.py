import torch
from torch.autograd.function import once_differentiable

C0 = 0.28209479177387814
C1 = 0.4886025119029199
C2 = (1.0925484305920792, -1.0925484305920792, 0.31539156525252005, -1.0925484305920792, 0.5462742152960396)


def _basis(d, degree):
    x, y, z = d.unbind(-1)
    b = [torch.full_like(x, C0)]
    if degree > 0:
        b += [-C1 * y, C1 * z, -C1 * x]
    if degree > 1:
        b += [C2[0] * x * y, C2[1] * y * z, C2[2] * (2 * z * z - x * x - y * y), C2[3] * x * z,
              C2[4] * (x * x - y * y)]
    return torch.stack(b, -1)


class SHEval(torch.autograd.Function):
    """Colours from spherical harmonics: coeffs (N, 3, (degree+1)^2), dirs (N, 3) -> (N, 3)"""

    @staticmethod
    def forward(ctx, coeffs, dirs, degree=2):
        basis = _basis(dirs, degree)
        ctx.save_for_backward(coeffs, dirs, basis)
        ctx.degree = degree
        return (coeffs * basis[:, None, :]).sum(-1) + 0.5

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        coeffs, dirs, basis = ctx.saved_tensors
        g_coeffs = grad[..., None] * basis[:, None, :]
        g_b = (grad[..., None] * coeffs).sum(1)
        x, y, z = dirs.unbind(-1)
        gx, gy, gz = torch.zeros_like(x), torch.zeros_like(y), torch.zeros_like(z)
        if ctx.degree > 0:
            gy = gy - C1 * g_b[:, 1]
            gz = gz + C1 * g_b[:, 2]
            gx = gx - C1 * g_b[:, 3]
        if ctx.degree > 1:
            b4, b5, b6, b7, b8 = g_b[:, 4:9].unbind(-1)
            gx = gx + C2[0] * y * b4 - 2 * C2[2] * x * b6 + C2[3] * z * b7 + 2 * C2[4] * x * b8
            gy = gy + C2[0] * x * b4 + C2[1] * z * b5 - 2 * C2[2] * y * b6 + 2 * C2[4] * y * b8
            gz = gz + C2[1] * y * b5 + 4 * C2[2] * z * b6 + C2[3] * x * b7
        return g_coeffs, torch.stack([gx, gy, gz], -1), None
