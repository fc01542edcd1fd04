import torch
from torch import nn
from torch.autograd import Function


def _windows(x, taps):
    padded = nn.functional.pad(x, (taps - 1, 0))
    return padded.unfold(-1, taps, 1).flip(-1)


class VolterraFunction(Function):
    @staticmethod
    def forward(ctx, x, h1, h2):
        ctx.save_for_backward(x, h1, h2)
        win = _windows(x, h1.shape[0])
        return win @ h1 + ((win @ h2) * win).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        x, h1, h2 = ctx.saved_tensors
        taps = h1.shape[0]
        win = _windows(x, taps)
        g = grad.unsqueeze(-1)
        g_h1 = (g * win).flatten(0, -2).sum(0)
        g_h2 = torch.einsum("...t,...ti,...tj->ij", grad, win, win)
        g_win = g * (h1 + win @ (h2 + h2.T))
        g_x = torch.zeros_like(x)
        n = x.shape[-1]
        for k in range(min(taps, n)):
            g_x = g_x + nn.functional.pad(g_win[..., k:, k], (0, k))
        return g_x, g_h1, g_h2


class VolterraFilter(nn.Module):
    """Causal second-order Volterra filter, zero initial state.

    :param taps: memory of both kernels
    :shape x: ``(..., T)``
    :returns: ``(..., T)``
    """

    def __init__(self, taps):
        super().__init__()
        self.linear = nn.Parameter(torch.zeros(taps))
        self.quadratic = nn.Parameter(torch.zeros(taps, taps))

    def forward(self, x):
        return VolterraFunction.apply(x, self.linear, self.quadratic)
