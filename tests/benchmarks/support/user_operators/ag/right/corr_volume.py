import torch
import torch.nn.functional as F
from torch.autograd import Function


# cost volume as in PWC-Net: mean over channels of f1(x) * f2(x + d), |d| <= r
class CostVolume(Function):
    @staticmethod
    def forward(ctx, f1, f2, r=1, normalize=True):
        ctx.save_for_backward(f1, f2)
        ctx.r = r
        ctx.norm = f1.shape[1] if normalize else 1
        H, W = f1.shape[-2:]
        f2p = F.pad(f2, (r, r, r, r))
        planes = []
        for dy in range(2 * r + 1):
            for dx in range(2 * r + 1):
                planes.append((f1 * f2p[..., dy:dy + H, dx:dx + W]).sum(1))
        return torch.stack(planes, 1) / ctx.norm

    @staticmethod
    def backward(ctx, gv):
        f1, f2 = ctx.saved_tensors
        r = ctx.r
        H, W = f1.shape[-2:]
        f2p = F.pad(f2, (r, r, r, r))
        g1 = torch.zeros_like(f1)
        g2 = torch.zeros_like(f2)
        k = 0
        for dy in range(2 * r + 1):
            for dx in range(2 * r + 1):
                gk = gv[:, k].unsqueeze(1) / ctx.norm
                g1 = g1 + gk * f2p[..., dy:dy + H, dx:dx + W]
                hit = F.pad(gk * f1, (r, r, r, r))
                ey, ex = 2 * r - dy, 2 * r - dx
                g2 = g2 + hit[..., ey:ey + H, ex:ex + W]
                k += 1
        return g1, g2, None, None
