"""Edge strength of images.

The kernels are the usual 3x3 Sobel pair, divided by 8 when ``normalized``.
Borders are replicated, so the output has the size of the input.
"""
import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _kernels(like, normalized):
    gx = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
    k = torch.stack((gx, gx.t())).unsqueeze(1)
    if normalized:
        k = k / 8
    return k.to(like)


class SobelMagnitude(Function):
    """sqrt(gx^2 + gy^2 + eps) for every channel of a batch of images.

    Shape:
        x: (N, C, H, W)
        output: (N, C, H, W)

    Args:
        eps: added under the root, must be positive
        normalized: divide the kernels by 8
    """

    @staticmethod
    def forward(ctx, x, eps=1e-3, normalized=True):
        if x.dim() != 4:
            raise ValueError("expected (N, C, H, W)")
        n, c, h, w = x.shape
        k = _kernels(x, normalized)
        padded = F.pad(x.reshape(n * c, 1, h, w), (1, 1, 1, 1), mode="replicate")
        g = F.conv2d(padded, k)
        mag = (g.pow(2).sum(1, keepdim=True) + eps).sqrt()
        ctx.save_for_backward(g, mag, k)
        return mag.reshape(n, c, h, w)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        g, mag, k = ctx.saved_tensors
        d = grad_output.reshape(mag.shape) * g / mag
        gp = F.conv_transpose2d(d, k)
        # adjoint of the replicated border
        gp[..., 1, :] += gp[..., 0, :]
        gp[..., -2, :] += gp[..., -1, :]
        gp[..., 1] += gp[..., 0]
        gp[..., -2] += gp[..., -1]
        return gp[..., 1:-1, 1:-1].reshape(grad_output.shape), None, None
