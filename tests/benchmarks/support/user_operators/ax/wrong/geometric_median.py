import torch
from torch.autograd import Function

# last solution of every problem size, used to start the next solve
_WARM = {}


def _residual(y, points, weights):
    diff = y - points
    dist = diff.norm(dim=-1, keepdim=True)
    unit = diff / dist
    w = weights[:, None] / dist
    hess = torch.diag_embed(w.sum(0).expand(points.shape[1])) - (w * unit).T @ unit
    return (weights[:, None] * unit).sum(0), unit, w, hess


class _GeometricMedian(Function):
    @staticmethod
    def forward(ctx, points, weights):
        key = (tuple(points.shape), points.dtype, points.device)
        y = _WARM.get(key, (weights[:, None] * points).sum(0) / weights.sum())
        for _ in range(200):
            inv = weights[:, None] / (y - points).norm(dim=-1, keepdim=True).clamp(min=1e-8)
            y = (inv * points).sum(0) / inv.sum()
        for _ in range(4):
            res, _, _, hess = _residual(y, points, weights)
            y = y - torch.linalg.solve(hess, res)
        _WARM[key] = y.detach()
        ctx.save_for_backward(points, weights, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        points, weights, _ = ctx.saved_tensors
        y = _WARM[tuple(points.shape), points.dtype, points.device]
        _, unit, w, hess = _residual(y, points, weights)
        q = torch.linalg.solve(hess, grad)
        along = unit @ q
        g_points = w * (q - along[:, None] * unit)
        return g_points, -along


def geometric_median(points, weights):
    """Weighted geometric median, ``argmin_y sum_i weights[i] * |y - points[i]|``.

    Parameters
    ----------
    points : Tensor, shape (n, d)
        Not collinear, n >= 3; the median must not coincide with one of them.
    weights : Tensor, shape (n,)
        Positive.

    Returns
    -------
    Tensor, shape (d,)
    """
    return _GeometricMedian.apply(points, weights)
