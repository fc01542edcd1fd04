import torch


class QuaternionRotate(torch.autograd.Function):
    """Rotate vectors by unit quaternions (w, x, y, z).

    quat: (N, 4); vec: (N, 3). ``v + w t + u x t`` with ``t = 2 u x v``; the
    quaternion is not normalised here.
    """

    @staticmethod
    def forward(ctx, quat, vec):
        ctx.save_for_backward(quat, vec)
        w, u = quat[:, :1], quat[:, 1:]
        t = 2 * torch.cross(u, vec, dim=1)
        return vec + w * t + torch.cross(u, t, dim=1)

    @staticmethod
    def backward(ctx, grad_output):
        quat, vec = ctx.saved_tensors
        w, u = quat[:, :1], quat[:, 1:]
        t = 2 * torch.cross(u, vec, dim=1)
        grad_w = (grad_output * t).sum(1, keepdim=True)
        grad_t = w * grad_output + torch.cross(grad_output, u, dim=1)
        grad_u = torch.cross(t, grad_output, dim=1) + 2 * torch.cross(vec, grad_t, dim=1)
        grad_vec = grad_output + 2 * torch.cross(grad_t, u, dim=1)
        return torch.cat([grad_w, grad_u], dim=1), grad_vec
