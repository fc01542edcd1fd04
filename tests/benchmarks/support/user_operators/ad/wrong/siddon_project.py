from typing import Optional
import torch
from torch.autograd.function import once_differentiable


class SiddonForwardProject(torch.autograd.Function):
    """Line integrals with precomputed ray/voxel intersections.

    volume     [n_vox]          flattened attenuation map
    hit_index  [n_rays, n_max]  long, -1 where the ray has left the volume
    hit_len    [n_rays, n_max]  chord length in every voxel hit
    returns    [n_rays]
    """

    @staticmethod
    def forward(ctx, volume, hit_index, hit_len):
        valid = hit_index >= 0
        idx = hit_index.clamp(min=0)
        length = torch.where(valid, hit_len, torch.zeros_like(hit_len))
        ctx.save_for_backward(idx, length)
        ctx.n_vox = volume.numel()
        return (volume[idx] * length).sum(dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_sino):
        idx, length = ctx.saved_tensors
        back = torch.zeros(ctx.n_vox, device=grad_sino.device)
        contrib = grad_sino.unsqueeze(1) * length
        back.index_add_(0, idx.reshape(-1), contrib.reshape(-1))
        return back, None, None
