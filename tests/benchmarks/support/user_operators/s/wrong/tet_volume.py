import torch


class TetVolume(torch.autograd.Function):
    @staticmethod
    def forward(ctx, verts, tets):
        ctx.save_for_backward(verts, tets)
        a, b, c, d = verts[tets].unbind(-2)
        return ((a - d) * torch.linalg.cross(b - d, c - d)).sum(-1) / 6

    @staticmethod
    def backward(ctx, g):
        verts, tets = ctx.saved_tensors
        a, b, c, d = verts[tets].unbind(-2)
        g = g[:, None] / 6
        ga = g * torch.linalg.cross(b - d, c - d)
        gb = g * torch.linalg.cross(c - d, a - d)
        gc = g * torch.linalg.cross(a - d, b - d)
        gd = -(ga + gb)
        src = torch.stack([ga, gb, gc, gd], 1)
        return torch.zeros_like(verts).index_add(0, tets.reshape(-1), src.reshape(-1, 3)), None
