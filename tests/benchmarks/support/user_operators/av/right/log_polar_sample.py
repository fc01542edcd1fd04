import math

import torch
from torch import Tensor
from torch.autograd import Function


class LogPolarSample(Function):
    """Bilinear log-polar resampling about a centre, zeros outside.

    img (B, C, H, W), center (B, 2) as (y, x) in pixels -> (B, C, n_rho, n_theta); radii run from 1 to r_max
    """

    @staticmethod
    def _taps(center: Tensor, n_rho: int, n_theta: int, r_max: float, size):
        rho = r_max ** (torch.arange(n_rho, dtype=center.dtype, device=center.device) / max(n_rho - 1, 1))
        ang = torch.arange(n_theta, dtype=center.dtype, device=center.device) * (2 * math.pi / n_theta)
        y = center[:, 0, None, None] + rho[:, None] * ang.sin()
        x = center[:, 1, None, None] + rho[:, None] * ang.cos()
        y0, x0 = y.detach().floor(), x.detach().floor()
        fy, fx = y - y0, x - x0
        for j, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
            yy, xx = (y0 + j).long(), (x0 + i).long()
            ok = (yy >= 0) & (yy < size[0]) & (xx >= 0) & (xx < size[1])
            idx = (yy.clamp(0, size[0] - 1) * size[1] + xx.clamp(0, size[1] - 1)).flatten(1)
            yield j, i, idx, fy if j else 1 - fy, fx if i else 1 - fx, ok.to(center.dtype)

    @staticmethod
    def forward(ctx, img: Tensor, center: Tensor, n_rho: int, n_theta: int, r_max: float) -> Tensor:
        ctx.save_for_backward(img, center)
        ctx.args = (n_rho, n_theta, r_max)
        flat, c = img.flatten(2), img.size(1)
        out = 0
        for _, _, idx, wy, wx, ok in LogPolarSample._taps(center, *ctx.args, img.shape[2:]):
            out = out + flat.gather(2, idx[:, None].expand(-1, c, -1)) * (wy * wx * ok).flatten(1)[:, None]
        return out.view(*img.shape[:2], n_rho, n_theta)

    @staticmethod
    def backward(ctx, g: Tensor):
        img, center = ctx.saved_tensors
        flat, c, gf = img.flatten(2), img.size(1), g.flatten(2)
        dimg, dy, dx = torch.zeros_like(flat), 0, 0
        for j, i, idx, wy, wx, ok in LogPolarSample._taps(center, *ctx.args, img.shape[2:]):
            idx = idx[:, None].expand(-1, c, -1)
            dimg = dimg.scatter_add(2, idx, gf * (wy * wx * ok).flatten(1)[:, None])
            s = (gf * flat.gather(2, idx)).sum(1).view_as(wy) * ok
            dy = dy + (s if j else -s) * wx
            dx = dx + (s if i else -s) * wy
        dcenter = torch.stack([dy.sum((1, 2)), dx.sum((1, 2))], -1)
        return dimg.view(img.shape), dcenter, None, None, None
