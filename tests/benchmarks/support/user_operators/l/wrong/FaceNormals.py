import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class FaceNormals(Function):
    """Normals of a triangle mesh.

    verts: (V, 3) float, faces: (F, 3) long.
    unit=True gives unit normals, n / max(|n|, eps); False gives the cross product (2 x area).
    """

    @staticmethod
    def forward(ctx, verts, faces, unit=True, eps=1e-8):
        v0, v1, v2 = verts[faces].unbind(1)
        n = torch.linalg.cross(v1 - v0, v2 - v0)
        ctx.save_for_backward(verts, faces)
        ctx.unit, ctx.eps = unit, eps
        if unit:
            n = n / n.norm(dim=1, keepdim=True).clamp(min=eps)
        return n

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        verts, faces = ctx.saved_tensors
        v0, v1, v2 = verts[faces].unbind(1)
        e1, e2 = v1 - v0, v2 - v0
        if ctx.unit:
            n = torch.linalg.cross(e1, e2)
            length = n.norm(dim=1, keepdim=True)
            safe = length.clamp(min=ctx.eps)
            unit = n / safe
            radial = unit * (unit * grad).sum(1, keepdim=True)
            grad = (grad - torch.where(length > ctx.eps, radial, torch.zeros_like(n))) / safe
        g1 = torch.linalg.cross(e2, grad)
        g2 = torch.linalg.cross(grad, e1)
        out = torch.zeros_like(verts)
        out.index_add_(0, faces[:, 0], -(g1 + g2))
        out.index_add_(0, faces[:, 1], g2)
        out.index_add_(0, faces[:, 2], g1)
        return out, None, None, None


def vertex_normals(verts, faces):
    n = FaceNormals.apply(verts, faces, False)
    acc = torch.zeros_like(verts).index_add(0, faces.reshape(-1), n.repeat_interleave(3, 0))
    return torch.nn.functional.normalize(acc, dim=1)
