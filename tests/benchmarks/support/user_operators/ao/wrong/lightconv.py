import torch
import torch.nn as nn
import torch.nn.functional as F


class _LightConv(torch.autograd.Function):
    """x (B, T, C), weight (H, 1, K); causal, each head shares its kernel among C / H channels"""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        p = torch.softmax(weight, -1).squeeze(1)
        cols = _LightConv.columns(x, *p.shape)
        return torch.einsum("bthdk,hk->bthd", cols, p).flatten(2)

    @staticmethod
    def columns(x, H, K):
        B, T, C = x.shape
        padded = F.pad(x, (0, 0, K - 1, 0))
        return padded.unfold(1, K, 1).reshape(B, T, H, C // H, K)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        B, T, C = x.shape
        p = torch.softmax(weight, -1).squeeze(1)
        H, K = p.shape
        gh = g.reshape(B, T, H, C // H)
        back = F.pad(gh, (0, 0, 0, 0, 0, K - 1)).unfold(1, K, 1)
        gx = torch.einsum("bthdk,hk->bthd", back, p.flip(-1)).reshape(B, T, C)
        gp = torch.einsum("bthd,bthdk->hk", gh, _LightConv.columns(x, H, K))
        gw = p * (gp - (gp * p).sum(-1, keepdim=True))
        return gx, gw


class LightweightConv(nn.Module):
    def __init__(self, channels, heads, kernel_size):
        super().__init__()
        assert channels % heads == 0
        self.weight = nn.Parameter(torch.empty(heads, 1, kernel_size))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x):
        return _LightConv.apply(x, self.weight)
