import torch


class SurfelUV(torch.autograd.Function):
    """Ray-splat intersection of 2D Gaussian splatting.

    T: (N, 3, 3) rows (T_u, T_v, T_w) of the splat-to-screen transform, xy: (P, 2) pixels.
    Output (N, P, 2): local coordinates (u, v) of the hit.
    """

    @staticmethod
    def forward(ctx, T, xy):
        ctx.save_for_backward(T, xy)
        hu, hv = SurfelUV.planes(T, xy)
        p = torch.linalg.cross(hu, hv)
        return p[..., :2] / p[..., 2:]

    @staticmethod
    def planes(T, xy):
        Tu, Tv, Tw = T[:, None].unbind(2)
        x, y = xy[None, :, :1], xy[None, :, 1:]
        return x * Tw - Tu, y * Tw - Tv

    @staticmethod
    def backward(ctx, g):
        T, xy = ctx.saved_tensors
        hu, hv = SurfelUV.planes(T, xy)
        p = torch.linalg.cross(hu, hv)
        z = p[..., 2:]
        gz = -(g * p[..., :2]).sum(-1, keepdim=True) / z ** 2
        dp = torch.cat([g / z, gz], -1)
        dhu = torch.linalg.cross(hv, dp)
        dhv = torch.linalg.cross(dp, hu)
        Tw = T[:, None, 2]
        dTw = (xy[None, :, :1] * dhu + xy[None, :, 1:] * dhv).sum(1)
        dT = torch.stack([-dhu.sum(1), -dhv.sum(1), dTw], 1)
        dxy = torch.stack([(dhu * Tw).sum((0, 2)), (dhv * Tw).sum((0, 2))], -1)
        return dT, dxy
