import torch


class CharbonnierTV(torch.autograd.Function):
    """Smooth anisotropic total variation of a volume (D, H, W).

    sum over axes and neighbours of sqrt((difference / spacing)^2 + eps^2), with the voxel spacing
    (3,) a tensor, so that it may be fitted as well. Returns a scalar.
    """

    @staticmethod
    def forward(ctx, vol, spacing, eps=1e-2):
        ctx.save_for_backward(vol, spacing)
        ctx.eps = eps
        total = vol.new_zeros(())
        for ax in range(3):
            d = vol.diff(dim=ax) / spacing[ax]
            total = total + (d * d + eps ** 2).sqrt().sum()
        return total

    @staticmethod
    def backward(ctx, g):
        vol, spacing = ctx.saved_tensors
        gv, gs = torch.zeros_like(vol), []
        for ax in range(3):
            n = vol.shape[ax]
            d = vol.diff(dim=ax) / spacing[ax]
            w = d / (d * d + ctx.eps ** 2).sqrt() / spacing[ax]
            pad = torch.zeros_like(vol.narrow(ax, 0, 1))
            gv = gv + torch.cat([pad, w], ax) - torch.cat([w, pad], ax)
            gs.append(-(w * d).sum())
        return g * gv, g * torch.stack(gs), None
