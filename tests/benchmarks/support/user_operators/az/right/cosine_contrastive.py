import torch
from torch import Tensor, nn


def _unit(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    inv = (x.square().sum(-1, keepdim=True) + eps).rsqrt()
    return x * inv, inv


def _unit_backward(grad: Tensor, unit: Tensor, inv: Tensor) -> Tensor:
    return inv * (grad - unit * (grad * unit).sum(-1, keepdim=True))


class _CCL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, user, pos, neg, margin, weight, eps):
        u, p, n = (_unit(x, eps)[0] for x in (user, pos, neg))
        hinge = torch.relu((u[:, None] * n).sum(-1) - margin)
        ctx.save_for_backward(user, pos, neg)
        ctx.opts = margin, weight, eps
        return (1 - (u * p).sum(-1) + weight * hinge.mean(-1)).mean()

    @staticmethod
    def backward(ctx, grad):
        user, pos, neg = ctx.saved_tensors
        margin, weight, eps = ctx.opts
        (u, u_inv), (p, p_inv), (n, n_inv) = (_unit(x, eps) for x in (user, pos, neg))
        scale = grad / user.size(0)
        active = (u[:, None] * n).sum(-1, keepdim=True) > margin
        per_neg = scale * weight / neg.size(1) * active
        grad_u = -scale * p + (per_neg * n).sum(1)
        return (
            _unit_backward(grad_u, u, u_inv),
            _unit_backward(-scale * u, p, p_inv),
            _unit_backward(per_neg * u[:, None], n, n_inv),
            None,
            None,
            None,
        )


class CosineContrastive(nn.Module):
    """Cosine contrastive loss of SimpleX.

    Args:
        margin: negatives with a cosine below it cost nothing.
        negative_weight: weight of the negatives' mean.
        eps: added to the squared norms.

    Shape: user (B, D), pos (B, D), neg (B, N, D) -> scalar.
    """

    def __init__(self, margin: float = 0.0, negative_weight: float = 1.0, eps: float = 1e-6) -> None:
        super().__init__()
        if not -1 <= margin <= 1:
            raise ValueError("margin is a cosine")
        self.margin, self.negative_weight, self.eps = margin, negative_weight, eps

    def forward(self, user: Tensor, pos: Tensor, neg: Tensor) -> Tensor:
        return _CCL.apply(user, pos, neg, self.margin, self.negative_weight, self.eps)
