import torch


class FaceNormals(torch.autograd.Function):
    """Unit normals and areas of the triangles of a mesh.

    verts (V, 3) float, faces (F, 3) long -> normals (F, 3), areas (F,)
    """

    @staticmethod
    def forward(ctx, verts, faces):
        ctx.save_for_backward(verts, faces)
        a, b, c = verts[faces].unbind(1)
        n = torch.linalg.cross(b - a, c - a)
        length = n.norm(dim=-1)
        return n / length.unsqueeze(-1), 0.5 * length

    @staticmethod
    def backward(ctx, g_normal, g_area):
        verts, faces = ctx.saved_tensors
        a, b, c = verts[faces].unbind(1)
        e1, e2 = b - a, c - a
        n = torch.linalg.cross(e1, e2)
        length = n.norm(dim=-1, keepdim=True)
        n = n / length
        gn = (g_normal - n * (n * g_normal).sum(-1, keepdim=True)) / length
        gn = gn + 0.5 * g_area.unsqueeze(-1) * n
        gb = torch.linalg.cross(e2, gn)
        gc = torch.linalg.cross(gn, e1)
        grad = torch.zeros_like(verts)
        for k, gk in enumerate((-gb - gc, gb, gc)):
            grad[faces[:, k]] += gk
        return grad, None
