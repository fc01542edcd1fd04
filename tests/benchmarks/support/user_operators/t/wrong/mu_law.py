import math

import torch


class MuLawEncode(torch.autograd.Function):
    """Mu-law companding of audio in [-1, 1].

    Parameters
    ----------
    x : torch.Tensor
        waveform
    mu : int
        number of channels minus one, e.g. 255
    """

    @staticmethod
    def forward(x, mu):
        return x.sign() * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.mu = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ctx.mu / (1 + ctx.mu * x.abs()) / math.log(256), None
