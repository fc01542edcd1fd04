import torch
from torch import nn, Tensor


class _Connect(torch.autograd.Function):
    @staticmethod
    def forward(streams, branch, mix, beta):
        return torch.einsum("...nd,nm->...md", streams, mix) + beta[:, None] * branch[..., None, :]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        streams, branch, mix, beta = ctx.saved_tensors
        gs = torch.einsum("...md,nm->...nd", g, mix)
        gb = torch.einsum("...md,m->...d", g, beta)
        gm = torch.einsum("...nd,...md->...nm", streams, g).flatten(0, -3).sum(0)
        gbeta = torch.einsum("...md,...d->...m", g, branch).flatten(0, -2).sum(0)
        return gs, gb, gm, gbeta


class HyperConnection(nn.Module):
    """Static hyper-connection.

    streams: (B, T, n, d) residual streams; branch: (B, T, d) output of the layer.
    """

    def __init__(self, n: int):
        super().__init__()
        self.mix = nn.Parameter(torch.eye(n))
        self.beta = nn.Parameter(torch.ones(n))

    def forward(self, streams: Tensor, branch: Tensor) -> Tensor:
        return _Connect.apply(streams, branch, self.mix, self.beta)
