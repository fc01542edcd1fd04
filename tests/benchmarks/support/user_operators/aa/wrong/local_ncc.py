import torch
import torch.nn.functional as F


class _NCC1(torch.autograd.Function):
    """Squared correlation coefficient of two images (B, N) -> (B,)"""

    @staticmethod
    def forward(ctx, I, J, eps):
        ctx.save_for_backward(I, J)
        ctx.eps = eps
        a, b = I - I.mean(1, True), J - J.mean(1, True)
        return (a * b).sum(1) ** 2 / ((a * a).sum(1) * (b * b).sum(1) + eps)

    @staticmethod
    def backward(ctx, g):
        I, J = ctx.saved_tensors
        a, b = I - I.mean(1, True), J - J.mean(1, True)
        ab, aa, bb = (a * b).sum(1, True), (a * a).sum(1, True), (b * b).sum(1, True)
        den = aa * bb + ctx.eps
        g = g[:, None]
        gI = g * (2 * ab / den * b - 2 * ab ** 2 * bb / den ** 2 * a)
        gJ = g * (2 * ab / den * a - 2 * ab ** 2 * bb / den ** 2 * b)
        return gI, gJ, None


class PatchNCC(torch.nn.Module):
    """Local normalised cross-correlation as a registration loss: mean over windows, negated."""

    def __init__(self, win=3, stride=1, eps=1e-5):
        super().__init__()
        self.win, self.stride, self.eps = win, stride, eps

    def forward(self, fixed, moving):
        patches = [F.unfold(v, self.win, stride=self.stride).transpose(1, 2).flatten(0, 1) for v in (fixed, moving)]
        return -_NCC1.apply(*patches, self.eps).mean()
