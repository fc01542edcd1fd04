import torch


class HydrostaticReconstruction(torch.autograd.Function):
    """Audusse-type hydrostatic reconstruction for shallow water, 1D.

    Args:
        h: water depth per cell, (..., N), h >= 0
        z: bed elevation per cell, (..., N)

    Returns:
        (h_left, h_right), each (..., N - 1): the depths on both sides of every face,
        max(0, h + z - max(z_i, z_{i+1})).
    """

    @staticmethod
    def forward(ctx, h, z):
        ctx.save_for_backward(h, z)
        zf = torch.maximum(z[..., :-1], z[..., 1:])
        eta = h + z
        return (eta[..., :-1] - zf).clamp(min=0), (eta[..., 1:] - zf).clamp(min=0)

    @staticmethod
    def backward(ctx, gl, gr):
        h, z = ctx.saved_tensors
        zi, zj = z[..., :-1], z[..., 1:]
        zf = torch.maximum(zi, zj)
        eta = h + z
        gl = gl * (eta[..., :-1] > zf)
        gr = gr * (eta[..., 1:] > zf)
        gh = torch.zeros_like(h)
        gh[..., :-1] += gl
        gh[..., 1:] += gr
        # bed at the face: the higher of the two, shared when level
        share = (zi > zj).to(z.dtype) + 0.5 * (zi == zj).to(z.dtype)
        gf = gl + gr
        gz = gh.clone()
        gz[..., :-1] -= share * gf
        gz[..., 1:] -= (1 - share) * gf
        return gh, gz
