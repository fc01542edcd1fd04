import torch


class MeshMoments(torch.autograd.Function):
    """Signed volume () and centroid (3,) of a closed mesh.

    verts (V, 3), faces (F, 3) long with consistent orientation.
    """

    @staticmethod
    def forward(ctx, verts, faces):
        ctx.save_for_backward(verts, faces)
        a, b, c = verts[faces].unbind(1)
        det = (torch.linalg.cross(a, b) * c).sum(-1)
        volume = det.sum() / 6
        first = (det.unsqueeze(-1) * (a + b + c)).sum(0) / 24
        return volume, first / volume

    @staticmethod
    def backward(ctx, g_volume, g_centroid):
        verts, faces = ctx.saved_tensors
        a, b, c = verts[faces].unbind(1)
        ab, bc, ca = torch.linalg.cross(a, b), torch.linalg.cross(b, c), torch.linalg.cross(c, a)
        det = (ab * c).sum(-1)
        total = a + b + c
        volume = det.sum() / 6
        centroid = (det.unsqueeze(-1) * total).sum(0) / 24 / volume

        d_first = g_centroid / volume
        d_volume = g_volume
        d_det = (d_volume / 6 + total @ d_first / 24).unsqueeze(-1)
        d_total = det.unsqueeze(-1) * d_first / 24
        corners = torch.stack([d_det * bc + d_total, d_det * ca + d_total, d_det * ab + d_total], 1)
        grad = torch.zeros(verts.shape, dtype=verts.dtype, device=verts.device)
        return grad.index_add(0, faces.reshape(-1), corners.reshape(-1, 3)), None
