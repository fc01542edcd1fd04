import torch
from torch.autograd.function import once_differentiable


class FaceAreas(torch.autograd.Function):
    """Areas of triangles.

    verts: (V, 3) float, faces: (F, 3) long -> (F,)
    Degenerate faces get a zero gradient.
    """

    @staticmethod
    def forward(ctx, verts, faces):
        v0, v1, v2 = (verts[faces[:, k]] for k in range(3))
        normal = torch.cross(v1 - v0, v2 - v0, dim=1)
        length = normal.norm(dim=1)
        ctx.save_for_backward(verts, faces, normal, length)
        return 0.5 * length

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_areas):
        verts, faces, normal, length = ctx.saved_tensors
        v0, v1, v2 = (verts[faces[:, k]] for k in range(3))
        unit = normal / length.clamp(min=1e-20).unsqueeze(1)
        g = 0.5 * grad_areas.unsqueeze(1)
        g1 = g * torch.cross(v2 - v0, unit, dim=1)
        g2 = g * torch.cross(unit, v1 - v0, dim=1)
        grad_verts = torch.zeros_like(verts)
        grad_verts.index_add_(0, faces[:, 0], -(g1 + g2))
        grad_verts.index_add_(0, faces[:, 1], g1)
        grad_verts.index_add_(0, faces[:, 2], g2)
        return grad_verts, None
