import torch
import torch.nn.functional as F


def _grouped(t, groups):
    return t.reshape(t.shape[:-1] + (groups, -1))


class GatedGroupRMSNorm(torch.autograd.Function):
    """RMSNorm(x * silu(z)) * weight, the mean square taken in each of ``groups`` parts (Mamba2).

    x, z: (..., D); weight: (D,); D divisible by groups.
    """

    @staticmethod
    def forward(ctx, x, z, weight, groups=1, eps=1e-5):
        ctx.save_for_backward(x, z, weight)
        ctx.groups, ctx.eps = groups, eps
        u = _grouped(x * F.silu(z), groups)
        n = u * torch.rsqrt(u.square().mean(-1, keepdim=True) + eps)
        return n.reshape(x.shape) * weight

    @staticmethod
    def backward(ctx, dy):
        x, z, weight = ctx.saved_tensors
        sig = torch.sigmoid(z)
        u = _grouped(x * z * sig, ctx.groups)
        rstd = torch.rsqrt(u.square().mean(-1, keepdim=True) + ctx.eps)
        n = u * rstd
        dn = _grouped(dy * weight, ctx.groups)
        du = rstd * (dn - n * (dn * n).mean(-1, keepdim=True))
        du = du.reshape(x.shape)
        dw = (dy * n.reshape(x.shape)).sum_to_size(weight.shape)
        dz = du * x * sig * (1 + z * (1 - sig))
        return du * z * sig, dz, dw, None, None
