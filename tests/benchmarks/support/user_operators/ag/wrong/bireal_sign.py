import torch
from torch.autograd import Function


class _Sign(Function):
    @staticmethod
    def forward(ctx, x, estimator):
        ctx.save_for_backward(x)
        ctx.estimator = estimator
        return torch.where(x >= 0, torch.ones_like(x), -torch.ones_like(x))

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        inside = (x.abs() < 1).to(g.dtype)
        if ctx.estimator == "clip":
            return g * inside, None
        # piecewise polynomial, Bi-Real Net eq. (5)
        slope = torch.where(x < 0, 2 - 2 * x, 2 + 2 * x)
        return g * slope * inside, None


def bireal_sign(x, estimator="poly"):
    """sign(x) in {-1, +1}; the gradient is that of a clipped identity ("clip") or of the
    piecewise quadratic approximation of sign ("poly")."""
    if estimator not in ("clip", "poly"):
        raise ValueError(estimator)
    return _Sign.apply(x, estimator)
