import torch


class LBS(torch.autograd.Function):
    """Linear blend skinning.

    Parameters
    ----------
    v : (V, 3) rest vertices
    w : (V, J) skinning weights, rows sum to one
    T : (J, 4, 4) joint transforms, last row 0 0 0 1
    """

    @staticmethod
    def forward(ctx, v, w, T):
        ctx.save_for_backward(v, w, T)
        blended = torch.einsum("vj,jab->vab", w, T)
        return torch.einsum("vab,vb->va", blended[:, :3, :3], v) + blended[:, :3, 3]

    @staticmethod
    def backward(ctx, g):
        v, w, T = ctx.saved_tensors
        hom = torch.cat([v, torch.ones_like(v[:, :1])], 1)
        blended = torch.einsum("vj,jab->vab", w, T)
        gv = torch.einsum("vab,vb->va", blended[:, :3, :3], g)
        outer = g[:, :, None] * hom[:, None, :]
        gw = torch.einsum("vab,jab->vj", outer, T[:, :3])
        gT = torch.zeros_like(T)
        gT[:, :3] = torch.einsum("vj,vab->jab", w, outer)
        return gv, gw, gT
