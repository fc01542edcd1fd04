import torch


class LogPenaltyProx(torch.autograd.Function):
    """Proximal map of the log-sum penalty, elementwise.

    argmin_z  (z - x)^2 / 2 + lam * log(1 + |z| / eps)

    Parameters
    ----------
    x : Tensor
        Any shape.
    lam : Tensor
        Penalty weight, broadcastable to ``x``. Must satisfy ``0 < lam < eps**2`` so that the
        map is continuous.
    eps : float
        Positive width of the penalty.

    Returns
    -------
    Tensor
        Same shape as ``x``; zero where ``|x| <= lam / eps``.
    """

    @staticmethod
    def forward(ctx, x, lam, eps=1.0):
        mag = x.abs()
        root = ((mag + eps) ** 2 - 4 * lam).clamp(min=0).sqrt()
        z = torch.where(mag > lam / eps, x.sign() * 0.5 * (mag - eps + root), torch.zeros_like(x))
        ctx.save_for_backward(x, lam, z)
        ctx.eps = eps
        return z

    @staticmethod
    def backward(ctx, grad_out):
        x, lam, z = ctx.saved_tensors
        width = ctx.eps + z.abs()
        active = x.abs() > lam / ctx.eps
        dx = torch.where(active, grad_out / (1 - lam / width**2), torch.zeros_like(grad_out))
        dlam = -dx * x.sign() / width
        return dx, dlam.sum_to_size(lam.shape), None
