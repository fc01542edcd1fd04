import torch
from torch.autograd.function import once_differentiable


class InterpolateFaceAttributes(torch.autograd.Function):
    """Attributes at the pixels of a rasterised mesh.

    attr (V, C) per-vertex values, faces (F, 3), pix_to_face (H, W) with -1 for background,
    bary (H, W, 3), background (C,) -> (H, W, C)
    """

    @staticmethod
    def forward(ctx, attr, faces, pix_to_face, bary, background):
        hit = pix_to_face >= 0
        tri = faces[pix_to_face.clamp(min=0)]
        out = (attr[tri] * bary[..., None]).sum(-2)
        ctx.save_for_backward(attr, tri, hit, bary)
        return torch.where(hit[..., None], out, background)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        attr, tri, hit, bary = ctx.saved_tensors
        need = ctx.needs_input_grad
        g_fg = g * hit[..., None]
        g_attr = g_bary = g_back = None
        if need[0]:
            g_attr = torch.zeros_like(attr)
            g_attr.index_add_(0, tri.reshape(-1), (g_fg.unsqueeze(-2) * bary.unsqueeze(-1)).reshape(-1, attr.shape[1]))
        if need[3]:
            g_bary = (attr[tri] * g_fg.unsqueeze(-2)).sum(-1)
        if need[4]:
            g_back = (g - g_fg).sum((0, 1))
        return g_attr, None, None, g_bary, g_back
