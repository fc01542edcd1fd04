import torch
from torch import nn
from torch.autograd import Function


class _Couple(Function):
    @staticmethod
    def forward(ctx, x, raw, t, bound, move):
        ctx.save_for_backward(x, raw, bound, move)
        s = move * bound * torch.tanh(raw / bound)
        return x * s.exp() + move * t, s.sum(-1)

    @staticmethod
    def backward(ctx, gy, g_logdet):
        x, raw, bound, move = ctx.saved_tensors
        th = torch.tanh(raw / bound)
        scale = (move * bound * th).exp()
        gs = move * (gy * x * scale + g_logdet[..., None])
        slope = 1 - th * th
        g_bound = (gs * th).sum()
        return gy * scale, gs * slope, gy * move, g_bound, None


class AffineCoupling(nn.Module):
    """Affine coupling layer of a normalising flow, returns (y, log |det|).

    Half of the features (even, or odd with ``flip``) condition the other half. The log scale stays
    within +-bound, which is trained.
    """

    def __init__(self, dim, flip=False, hidden=4):
        super().__init__()
        self.register_buffer("move", ((torch.arange(dim) + flip) % 2).float())
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 2 * dim))
        self.log_bound = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        raw, t = self.net(x * (1 - self.move)).chunk(2, -1)
        return _Couple.apply(x, raw, t, self.log_bound.exp(), self.move)
