import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def hat(v: torch.Tensor) -> torch.Tensor:
    """Skew symmetric matrices ``(N, 3, 3)`` of vectors ``(N, 3)``."""
    x, y, z = v.unbind(1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], 1).view(-1, 3, 3)


def _factors(angle):
    small = angle < 0.1
    safe = torch.where(small, torch.ones_like(angle), angle)
    sq = angle * angle
    a = torch.where(small, 1 - sq / 6 + sq * sq / 120 - sq**3 / 5040, safe.sin() / safe)
    b = torch.where(small, 0.5 - sq / 24 + sq * sq / 720 - sq**3 / 40320, (1 - safe.cos()) / safe**2)
    return a, b


def _factor_slopes(angle):
    small = angle < 0.1
    safe = angle
    sq = angle * angle
    da = (safe * safe.cos() - safe.sin()) / safe**3
    db = (safe * safe.sin() - 2 * (1 - safe.cos())) / safe**4
    weight = small.to(angle.dtype)
    da = weight * (-1 / 3 + sq / 30 - sq * sq / 840) + (1 - weight) * da
    db = weight * (-1 / 12 + sq / 180 - sq * sq / 6720) + (1 - weight) * db
    return da, db


class SO3ExponentialMap(Function):
    """Rodrigues' formula for axis-angle vectors ``(N, 3)``, giving rotations ``(N, 3, 3)``.

    Defined for all vectors, the zero vector included.
    """

    @staticmethod
    def forward(ctx, log_rot):
        if log_rot.dim() != 2 or log_rot.shape[1] != 3:
            raise ValueError("Input tensor shape has to be Nx3.")
        skew = hat(log_rot)
        angle = log_rot.norm(dim=1)
        a, b = (f.view(-1, 1, 1) for f in _factors(angle))
        ctx.save_for_backward(log_rot)
        return torch.eye(3, dtype=log_rot.dtype, device=log_rot.device) + a * skew + b * (skew @ skew)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_R):
        (log_rot,) = ctx.saved_tensors
        skew = hat(log_rot)
        angle = log_rot.norm(dim=1)
        a, b = (f.view(-1, 1, 1) for f in _factors(angle))
        da, db = _factor_slopes(angle)
        g = a * grad_R + b * (grad_R @ skew.mT + skew.mT @ grad_R)
        direct = torch.stack([g[:, 2, 1] - g[:, 1, 2], g[:, 0, 2] - g[:, 2, 0], g[:, 1, 0] - g[:, 0, 1]], 1)
        radial = da * (grad_R * skew).sum((1, 2)) + db * (grad_R * (skew @ skew)).sum((1, 2))
        return direct + radial.unsqueeze(1) * log_rot
