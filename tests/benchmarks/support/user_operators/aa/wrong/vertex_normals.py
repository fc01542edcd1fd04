import torch


class VertexNormals(torch.autograd.Function):
    # verts V x 3, faces F x 3 (int64), area weighted, unit length (zero for isolated vertices)
    eps = 1e-12

    @staticmethod
    def forward(ctx, verts, faces):
        ctx.save_for_backward(verts, faces)
        n = VertexNormals.accumulate(verts, faces)
        return n / n.norm(dim=1, keepdim=True).clamp(min=VertexNormals.eps)

    @staticmethod
    def accumulate(verts, faces):
        v0, v1, v2 = verts[faces].unbind(1)
        fn = torch.linalg.cross(v1 - v0, v2 - v0)
        return torch.zeros_like(verts).index_add(0, faces.reshape(-1), fn.repeat_interleave(3, 0))

    @staticmethod
    def backward(ctx, g):
        verts, faces = ctx.saved_tensors
        n = VertexNormals.accumulate(verts, faces)
        sq = (n * n).sum(1, keepdim=True)
        ok = sq > VertexNormals.eps ** 2
        l = torch.where(ok, sq, torch.ones_like(sq)).sqrt()
        u = n / l
        gn = torch.where(ok, (g - u * (u * g).sum(1, keepdim=True)) / l, torch.zeros_like(g))
        gf = gn[faces].sum(1)
        v0, v1, v2 = verts[faces].unbind(1)
        g1 = torch.linalg.cross(v2 - v0, gf)
        g2 = torch.linalg.cross(gf, v1 - v0)
        gv = torch.stack([-g1 - g2, g2, g1], 1)
        return torch.zeros_like(verts).index_add(0, faces.reshape(-1), gv.reshape(-1, 3)), None
