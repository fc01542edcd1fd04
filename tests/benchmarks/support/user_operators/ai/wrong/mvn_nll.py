import math
from typing import Optional
import torch
from torch import Tensor


class _MvnNll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mean, tril):
        z = torch.linalg.solve_triangular(tril, (x - mean).t(), upper=False).t()
        ctx.save_for_backward(x, mean, tril)
        logdet = tril.diagonal().log().sum()
        return 0.5 * z.square().sum(1) + logdet + 0.5 * x.size(1) * math.log(2 * math.pi)

    @staticmethod
    def backward(ctx, g):
        x, mean, tril = ctx.saved_tensors
        low = tril.tril()
        z = torch.linalg.solve_triangular(low, (x - mean).t(), upper=False)
        a = torch.linalg.solve_triangular(low.t(), z * g, upper=True)
        gx = a.t()
        g_tril = torch.diag_embed(g.sum() / tril.diagonal()) - a @ z.t()
        return gx, None, g_tril.tril()


def mvn_nll(x: Tensor, mean: Optional[Tensor] = None, scale_tril: Optional[Tensor] = None, reduction: str = "mean") -> Tensor:
    """Negative log density of rows ``x`` (N, D) under N(mean, L L^T), where L is the lower triangle of `scale_tril`."""
    d = x.size(1)
    mean = x.new_zeros(d) if mean is None else mean
    scale_tril = torch.eye(d, dtype=x.dtype, device=x.device) if scale_tril is None else scale_tril
    out = _MvnNll.apply(x, mean, scale_tril)
    return {"none": lambda o: o, "mean": torch.mean, "sum": torch.sum}[reduction](out)
