import itertools

import torch
from torch import Tensor


def _axes(flow: Tensor) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """For each axis: lower and upper index, fraction, whether the point is inside."""
    out = []
    for a, n in enumerate(flow.shape[2:]):
        shape = [1, 1, 1, 1]
        shape[a + 1] = n
        p = torch.arange(n, dtype=flow.dtype, device=flow.device).view(shape) + flow[:, a]
        inside = (p >= 0) & (p <= n - 1)
        p = p.clamp(0, n - 1)
        lo = p.detach().floor().clamp(max=max(n - 2, 0)).long()
        out.append((lo, (lo + 1).clamp(max=n - 1), p - lo, inside))
    return out


def _corner(axes, bits, h: int, w: int) -> tuple[Tensor, list[Tensor]]:
    z, y, x = (ax[bit] for ax, bit in zip(axes, bits))
    return ((z * h + y) * w + x).flatten(1), [ax[2] if bit else 1 - ax[2] for ax, bit in zip(axes, bits)]


class VolumeWarp(torch.autograd.Function):
    """Trilinear warp of a volume by displacements in voxels, border clamped. vol (B, C, D, H, W), flow (B, 3, D, H, W)"""

    @staticmethod
    def forward(ctx, vol: Tensor, flow: Tensor) -> Tensor:
        ctx.save_for_backward(vol, flow)
        b, c, _, h, w = vol.shape
        axes, flat = _axes(flow), vol.reshape(b, c, -1)
        out = torch.zeros_like(flat)
        for bits in itertools.product((0, 1), repeat=3):
            idx, (wz, wy, wx) = _corner(axes, bits, h, w)
            out = out + flat.gather(2, idx[:, None].expand(-1, c, -1)) * (wz * wy * wx).flatten(1)[:, None]
        return out.reshape(vol.shape)

    @staticmethod
    def backward(ctx, g: Tensor):
        vol, flow = ctx.saved_tensors
        b, c, _, h, w = vol.shape
        axes, flat, gf = _axes(flow), vol.reshape(b, c, -1), g.reshape(b, c, -1)
        dvol, dflow = torch.zeros_like(flat), [0, 0, 0]
        for bits in itertools.product((0, 1), repeat=3):
            idx, ws = _corner(axes, bits, h, w)
            idx = idx[:, None].expand(-1, c, -1)
            dvol = dvol.scatter_add(2, idx, gf * (ws[0] * ws[1] * ws[2]).flatten(1)[:, None])
            s = (gf * flat.gather(2, idx)).sum(1).view_as(ws[0])
            for a in range(3):
                others = ws[(a + 1) % 3] * ws[(a + 2) % 3]
                dflow[a] = dflow[a] + (s if bits[a] else -s) * others
        dflow = torch.stack([d * ax[3] for d, ax in zip(dflow, axes)], 1)
        return dvol.reshape(vol.shape), dflow
