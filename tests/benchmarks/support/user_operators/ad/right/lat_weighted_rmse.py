from typing import Optional, Sequence
import math
import torch
from torch import Tensor, nn


class _WeightedRMSE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred: Tensor, truth: Tensor, weight: Tensor) -> Tensor:
        err = pred - truth
        mse = (err ** 2 * weight.view(-1, 1)).mean(dim=(-2, -1))
        rmse = mse.sqrt()
        ctx.save_for_backward(err, weight, rmse)
        return rmse

    @staticmethod
    def backward(ctx, g: Tensor):
        err, weight, rmse = ctx.saved_tensors
        n = err.shape[-2] * err.shape[-1]
        coef = (g / (rmse * n))[..., None, None]
        ge = coef * err * weight.view(-1, 1)
        return ge, -ge, None


class LatWeightedRMSE(nn.Module):
    """RMSE on a regular lat/lon grid, (batch, var, lat, lon), averaged over batch and variables.

    Weights are cos(lat) divided by their mean, as in the usual scorecards.
    """

    def __init__(self, lats: Sequence[float], var_weights: Optional[Sequence[float]] = None):
        super().__init__()
        w = torch.tensor([math.cos(math.radians(x)) for x in lats], dtype=torch.float64)
        self.register_buffer("weight", w / w.mean())
        self.var_weights = var_weights

    def forward(self, pred: Tensor, truth: Tensor) -> Tensor:
        r = _WeightedRMSE.apply(pred, truth, self.weight)
        if self.var_weights is not None:
            r = r * r.new_tensor(self.var_weights)
        return r.mean()
