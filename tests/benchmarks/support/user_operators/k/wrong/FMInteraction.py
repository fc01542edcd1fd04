"""Second-order factorisation machine (Rendle, 2010) in O(F * D)."""
import torch
from torch import Tensor, nn


class _FM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, lin: Tensor, emb: Tensor) -> Tensor:
        s = x @ emb
        pair = 0.5 * (s.pow(2) - x.pow(2) @ emb.pow(2)).sum(1)
        ctx.save_for_backward(x, lin, emb)
        return x @ lin + pair

    @staticmethod
    def backward(ctx, g: Tensor):
        x, lin, emb = ctx.saved_tensors
        g = g.unsqueeze(1)
        s = x @ emb
        gx = glin = gemb = None
        if ctx.needs_input_grad[0]:
            gx = g * (lin + s @ emb.t() - x * emb.pow(2).sum(1))
        if ctx.needs_input_grad[1]:
            glin = (g * x).sum(0)
        if ctx.needs_input_grad[2]:
            diag = (g * x).sum(0)
            gemb = x.t() @ (g * s) - diag.unsqueeze(1) * emb
        return gx, glin, gemb


class FMInteraction(nn.Module):
    """Scores of feature vectors.

    Args:
        num_features: F
        dim: size of the latent factors
        bias: add a global bias

    Shape:
        input (B, F), usually multi-hot but any real values are allowed; output (B,)
    """

    def __init__(self, num_features: int, dim: int = 8, bias: bool = True):
        super().__init__()
        self.linear = nn.Parameter(torch.zeros(num_features))
        self.factors = nn.Parameter(0.1 * torch.randn(num_features, dim))
        self.bias = nn.Parameter(torch.zeros(())) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        y = _FM.apply(x, self.linear, self.factors)
        return y if self.bias is None else y + self.bias
