import torch
from torch import Tensor
from torch.autograd import Function


def quat_to_rotmat(q: Tensor) -> Tensor:
    w, x, y, z = q.unbind(-1)
    return torch.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], -1).reshape(q.shape[:-1] + (3, 3))


def rotmat_vjp(q: Tensor, g: Tensor) -> Tensor:
    w, x, y, z = q.unbind(-1)
    (a, b, c), (d, e, f), (h, i, j) = (row.unbind(-1) for row in g.unbind(-2))
    return 2 * torch.stack([
        x * (i - f) + y * (c - h) + z * (d - b),
        y * (b + d) + z * (c + h) + w * (i - f) - 2 * x * (e + j),
        x * (b + d) + z * (f + i) + w * (c - h) - 2 * y * (a + j),
        x * (c + h) + y * (f + i) + w * (d - b) - 2 * z * (a + e),
    ], -1)


class SplatCovariance(Function):
    """3D Gaussian covariance R S S^T R^T from (unnormalised) quaternions wxyz and scales."""

    @staticmethod
    def forward(ctx, quats: Tensor, scales: Tensor) -> Tensor:
        R = quat_to_rotmat(quats / quats.norm(dim=-1, keepdim=True))
        M = R * scales[..., None, :]
        ctx.save_for_backward(quats, scales)
        return M @ M.mT

    @staticmethod
    def backward(ctx, v_cov: Tensor):
        quats, scales = ctx.saved_tensors
        n = quats.norm(dim=-1, keepdim=True)
        q = quats / n
        R = quat_to_rotmat(q)
        M = R * scales[..., None, :]
        v_M = 2 * v_cov @ M
        v_scale = (v_M * R).sum(-2)
        v_q = rotmat_vjp(q, v_M * scales[..., None, :])
        v_quat = (v_q - q * (q * v_q).sum(-1, keepdim=True)) / n
        return v_quat, v_scale
