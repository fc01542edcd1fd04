import torch
from torch.autograd import Function


class _Folding(Function):
    @staticmethod
    def _jac(d):
        o = d[:, :, :-1, :-1]
        dx, dy = d[:, :, :-1, 1:] - o, d[:, :, 1:, :-1] - o
        return dx[:, 0], dx[:, 1], dy[:, 0], dy[:, 1]

    @staticmethod
    def forward(ctx, disp):
        ctx.save_for_backward(disp)
        ux, vx, uy, vy = _Folding._jac(disp)
        det = (1 + ux) * (1 + vy) - uy * vx
        return (-det).clamp(min=0).mean()

    @staticmethod
    def backward(ctx, g):
        disp, = ctx.saved_tensors
        b, _, h, w = disp.shape
        ux, vx, uy, vy = _Folding._jac(disp)
        det = (1 + ux) * (1 + vy) - uy * vx
        s = -g * (det < 0) / det.numel()
        gx = torch.stack([s * (1 + vy), -s * uy], 1).flatten(2)
        gy = torch.stack([-s * vx, s * (1 + ux)], 1).flatten(2)
        at = torch.arange(h * w, device=disp.device).view(h, w)[:-1, :-1].flatten()
        out = torch.zeros_like(disp)
        flat = out.reshape(b, 2, h * w)
        flat.index_add_(2, at + 1, gx)
        flat.index_add_(2, at + w, gy)
        flat.index_add_(2, at, -gx - gy)
        return out


def folding_penalty(disp):
    """Mean of max(0, -det J) of a displacement field (B, 2, H, W) in voxels."""
    return _Folding.apply(disp)
