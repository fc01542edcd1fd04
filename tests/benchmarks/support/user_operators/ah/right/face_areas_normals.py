import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

EPS = 1e-12


class _FaceAreasNormals(Function):
    """
    Areas and unit normals of triangles.

    verts: (V, 3), faces: (F, 3) -> areas (F,), normals (F, 3).
    Faces without area have the normal 0 and pass no gradient on.
    """

    @staticmethod
    def forward(ctx, verts, faces):
        if not (verts.dim() == 2 and verts.size(1) == 3):
            raise ValueError("verts need to be of shape Vx3.")
        if not (faces.dim() == 2 and faces.size(1) == 3):
            raise ValueError("faces need to be of shape Fx3.")
        v0, v1, v2 = verts[faces].unbind(1)
        c = torch.cross(v1 - v0, v2 - v0, dim=1)
        length = c.norm(dim=1)
        ctx.save_for_backward(verts, faces)
        return 0.5 * length, c / length.clamp(min=EPS).unsqueeze(1) * (length > EPS).unsqueeze(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_areas, grad_normals):
        verts, faces = ctx.saved_tensors
        v0, v1, v2 = verts[faces].unbind(1)
        e1, e2 = v1 - v0, v2 - v0
        c = torch.cross(e1, e2, dim=1)
        length = c.norm(dim=1, keepdim=True)
        n = c / length.clamp(min=EPS)
        grad_c = 0.5 * grad_areas.unsqueeze(1) * n
        grad_c = grad_c + (grad_normals - n * (n * grad_normals).sum(1, keepdim=True)) / length.clamp(min=EPS)
        grad_c = grad_c * (length > EPS)
        g1 = torch.cross(e2, grad_c, dim=1)
        g2 = torch.cross(grad_c, e1, dim=1)
        grad_verts = torch.zeros_like(verts)
        grad_verts.index_add_(0, faces[:, 0], -(g1 + g2))
        grad_verts.index_add_(0, faces[:, 1], g1)
        grad_verts.index_add_(0, faces[:, 2], g2)
        return grad_verts, None


face_areas_normals = _FaceAreasNormals.apply
