import math

import torch


class AngleDefect(torch.autograd.Function):
    """Discrete Gaussian curvature: 2 pi (pi on the boundary) less the corner angles at every vertex.

    vertices (V, 3), faces (F, 3) long and not degenerate, boundary (V,) bool or None.
    """

    @staticmethod
    def forward(ctx, vertices, faces, boundary=None):
        ctx.save_for_backward(vertices, faces)
        full = torch.full_like(vertices[:, 0], 2 * math.pi)
        if boundary is not None:
            full = torch.where(boundary, full / 2, full)
        for k in range(3):
            i, j, l = faces[:, k], faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
            e1, e2 = vertices[j] - vertices[i], vertices[l] - vertices[i]
            angle = torch.atan2(torch.linalg.cross(e1, e2).norm(dim=-1), (e1 * e2).sum(-1))
            full = full.index_add(0, i, -angle)
        return full

    @staticmethod
    def backward(ctx, grad):
        vertices, faces = ctx.saved_tensors
        out = torch.zeros_like(vertices)
        flat = out.reshape(-1)
        axes = torch.arange(3, device=faces.device)
        for k in range(3):
            i, j, l = faces[:, k], faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
            e1, e2 = vertices[j] - vertices[i], vertices[l] - vertices[i]
            n = torch.linalg.cross(e1, e2)
            n = n / n.norm(dim=-1, keepdim=True)
            g = grad[i][:, None]
            g1 = g * torch.linalg.cross(n, e1) / e1.pow(2).sum(-1, keepdim=True)
            g2 = -g * torch.linalg.cross(n, e2) / e2.pow(2).sum(-1, keepdim=True)
            for index, part in ((j, g1), (l, g2), (i, -g1 - g2)):
                flat.index_add_(0, (3 * index[:, None] + axes).reshape(-1), part.reshape(-1))
        return out, None, None
