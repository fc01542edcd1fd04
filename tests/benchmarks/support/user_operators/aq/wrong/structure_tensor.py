import torch
import torch.nn.functional as F


def dx(im):
    p = F.pad(im, (1, 1))
    return 0.5 * (p[..., 2:] - p[..., :-2])


def dy(im):
    p = F.pad(im, (0, 0, 1, 1))
    return 0.5 * (p[..., 2:, :] - p[..., :-2, :])


class StructureTensor(torch.autograd.Function):
    """im (..., H, W), zero outside -> Ixx, Ixy, Iyy of the same size"""

    @staticmethod
    def forward(ctx, im):
        ctx.save_for_backward(im)
        ix, iy = dx(im), dy(im)
        return ix * ix, ix * iy, iy * iy

    @staticmethod
    def backward(ctx, gxx, gxy, gyy):
        im, = ctx.saved_tensors
        ix, iy = dx(im), dy(im)
        # central differences are antisymmetric
        return -dx(2 * gxx * ix + gxy * iy) - dy(2 * gyy * iy)
