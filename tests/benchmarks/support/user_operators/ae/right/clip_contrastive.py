import math

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _SymmetricInfoNCE(torch.autograd.Function):
    """mean of the cross entropies of rows and columns of scale * a b'"""

    @staticmethod
    def forward(ctx, a, b, scale):
        logits = scale * (a @ b.t())
        n = logits.shape[0]
        rows = logits.log_softmax(1)
        cols = logits.log_softmax(0)
        ctx.save_for_backward(a, b, scale, rows, cols)
        return -(rows.diagonal().sum() + cols.diagonal().sum()) / (2 * n)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, b, scale, rows, cols = ctx.saved_tensors
        n = rows.shape[0]
        eye = torch.eye(n, dtype=rows.dtype, device=rows.device)
        d = g * (rows.exp() + cols.exp() - 2 * eye) / (2 * n)
        d_scale = (d * (a @ b.t())).sum()
        return scale * (d @ b), scale * (d.t() @ a), d_scale


class ClipLoss(nn.Module):
    """CLIP's loss with a learned temperature; features are expected to be normalised."""

    def __init__(self, init_temperature=0.07, max_scale=100.0):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / init_temperature)))
        self.max_scale = max_scale

    def forward(self, image_features, text_features):
        scale = self.logit_scale.exp().clamp(max=self.max_scale)
        return _SymmetricInfoNCE.apply(image_features, text_features, scale)
