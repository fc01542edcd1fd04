import torch
from torch import nn


class _MaxOverPieces(torch.autograd.Function):
    # (..., F * pieces) -> (..., F), neighbouring pieces compete
    @staticmethod
    def forward(ctx, z, pieces):
        blocks = z.reshape(*z.shape[:-1], -1, pieces)
        y, winner = blocks.max(dim=-1, keepdim=True)
        ctx.save_for_backward(winner)
        ctx.pieces = pieces
        ctx.z_shape = z.shape
        return y.squeeze(-1)

    @staticmethod
    def backward(ctx, gy):
        (winner,) = ctx.saved_tensors
        gz = gy.new_zeros(gy.numel(), ctx.pieces)
        gz = gz.scatter(1, winner.view(-1, 1), gy.reshape(-1, 1))
        return gz.view(ctx.z_shape), None


class Maxout(nn.Module):
    """Linear layer followed by a maximum over ``pieces`` affine functions for each output feature."""

    def __init__(self, in_features, out_features, pieces=2):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features * pieces)
        self.pieces = pieces

    def forward(self, x):
        return _MaxOverPieces.apply(self.linear(x), self.pieces)
