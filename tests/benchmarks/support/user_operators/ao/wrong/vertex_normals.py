import torch


class VertexNormals(torch.autograd.Function):
    @staticmethod
    def forward(ctx, verts, faces, normalize=False, eps=1e-12):
        ctx.save_for_backward(verts, faces)
        ctx.normalize, ctx.eps = normalize, eps
        n = _area_normals(verts, faces)[0]
        return n / (n.pow(2).sum(1, keepdim=True) + eps).sqrt() if normalize else n

    @staticmethod
    def backward(ctx, g):
        verts, faces = ctx.saved_tensors
        n, e1, e2 = _area_normals(verts, faces)
        if ctx.normalize:
            length = (n.pow(2).sum(1, keepdim=True) + ctx.eps).sqrt()
            g = (g - n * (n * g).sum(1, keepdim=True) / length ** 2) / length
        gf = g[faces].sum(1)
        g1, g2 = torch.linalg.cross(e2, gf), torch.linalg.cross(gf, e1)
        gv = torch.zeros_like(verts)
        for col, val in enumerate((-g1 - g2, g1, g2)):
            gv = gv.index_add(0, faces[:, col], val)
        return gv, None, None


def _area_normals(verts, faces):
    a, b, c = verts[faces].unbind(1)
    e1, e2 = b - a, c - a
    face = torch.linalg.cross(e1, e2)
    n = torch.zeros_like(verts)
    for col in range(3):
        n = n.index_add(0, faces[:, col], face)
    return n, e1, e2
