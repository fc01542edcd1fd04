import torch


class PhongTessellation(torch.autograd.Function):
    """Phong tessellation (Boubekeur and Alexa).

    Args:
        bary: barycentric coordinates (P, 3)
        verts: corners of the triangle of each point (P, 3, 3)
        normals: unit corner normals (P, 3, 3)
        alpha: shape factor, scalar tensor
    Returns:
        (P, 3)
    """

    @staticmethod
    def forward(ctx, bary, verts, normals, alpha):
        ctx.save_for_backward(bary, verts, normals, alpha)
        p = (bary[..., None] * verts).sum(1)
        h = ((p[:, None] - verts) * normals).sum(-1)
        return p - alpha * ((bary * h)[..., None] * normals).sum(1)

    @staticmethod
    def backward(ctx, g):
        bary, verts, normals, alpha = ctx.saved_tensors
        p = (bary[..., None] * verts).sum(1)
        rel = p[:, None] - verts
        h = (rel * normals).sum(-1)
        ng = (normals * g[:, None]).sum(-1)
        gh = -alpha * bary * ng
        grel = gh[..., None] * normals
        gp = g + grel.sum(1)
        gverts = bary[..., None] * g[:, None] - grel
        gnormals = -alpha * (bary * h)[..., None] * g[:, None] + gh[..., None] * rel
        gbary = (verts * gp[:, None]).sum(-1) - alpha * h * ng
        galpha = -(bary * h * ng).sum()
        return gbary, gverts, gnormals, galpha
