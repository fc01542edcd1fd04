"""At-sensor radiance to bottom-of-atmosphere reflectance."""
import torch

NODATA = -1.0


def _band(p):
    return p.reshape(1, -1, 1, 1)


class SurfaceReflectance(torch.autograd.Function):
    """``y = (L - path) / trans`` and ``rho = y / (1 + albedo y)``; NODATA where the scene is not valid.

    radiance ``(B, C, H, W)``, path / trans / albedo ``(C,)``, valid ``(B, 1, H, W)`` bool.
    """

    @staticmethod
    def forward(ctx, radiance, path, trans, albedo, valid):
        ctx.save_for_backward(radiance, path, trans, albedo, valid)
        y = (radiance - _band(path)) / _band(trans)
        rho = y / (1 + _band(albedo) * y)
        return rho.masked_fill(~valid, NODATA)

    @staticmethod
    def backward(ctx, grad):
        radiance, path, trans, albedo, valid = ctx.saved_tensors
        g = grad.masked_fill(~valid, 0.0)
        y = (radiance - _band(path)) / _band(trans)
        den = 1 + _band(albedo) * y
        dy = g / den.square()
        d_rad = dy / _band(trans)
        dims = (0, 2, 3)
        d_path = -d_rad.sum(dims)
        d_trans = -(d_rad * y).sum(dims)
        d_albedo = -(g * (y / den).square()).sum(dims)
        return d_rad, d_path, d_trans, d_albedo, None
