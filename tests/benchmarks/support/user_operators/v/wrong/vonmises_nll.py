import math
import torch


class VonMisesNLL(torch.autograd.Function):
    """-log p(theta | mu, kappa), kappa > 0; all of the same shape"""

    @staticmethod
    def forward(theta, mu, kappa):
        return math.log(2 * math.pi) + torch.log(torch.special.i0e(kappa)) + kappa - kappa * torch.cos(theta - mu)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        theta, mu, kappa = ctx.saved_tensors
        gt = g * kappa * torch.sin(theta - mu)
        ratio = torch.special.i1(kappa) / torch.special.i0(kappa)
        return gt, -gt, g * (ratio - torch.cos(theta - mu))
