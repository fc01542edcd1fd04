import torch
from torch import nn
from torch.autograd import Function


class _Fuse(Function):
    @staticmethod
    def forward(ctx, gyro, acc, alpha, dt):
        theta = [acc[:, 0]]
        for t in range(1, acc.size(1)):
            theta.append(alpha * (theta[-1] + gyro[:, t] * dt) + (1 - alpha) * acc[:, t])
        theta = torch.stack(theta, 1)
        _Fuse.theta = theta.detach()
        ctx.save_for_backward(gyro, acc, alpha)
        ctx.dt = dt
        return theta

    @staticmethod
    def backward(ctx, grad):
        gyro, acc, alpha, theta = *ctx.saved_tensors, _Fuse.theta
        lam = torch.zeros_like(grad[:, 0])
        lams = []
        for t in reversed(range(grad.size(1))):
            lam = grad[:, t] + alpha * lam
            lams.append(lam)
        lams = torch.stack(lams[::-1], 1)
        first, rest = lams[:, :1], lams[:, 1:]
        g_gyro = torch.cat([torch.zeros_like(first), alpha * ctx.dt * rest], 1)
        g_acc = torch.cat([first, (1 - alpha) * rest], 1)
        g_alpha = (rest * (theta[:, :-1] + gyro[:, 1:] * ctx.dt - acc[:, 1:])).sum()
        return g_gyro, g_acc, g_alpha, None


class ComplementaryFilter(nn.Module):
    """gyro rate (B, T), accelerometer angle (B, T) -> fused angle (B, T)"""

    def __init__(self, dt=0.01, tau=0.5):
        super().__init__()
        self.dt = dt
        self.alpha = nn.Parameter(torch.tensor(tau / (tau + dt)))

    def forward(self, gyro, acc):
        return _Fuse.apply(gyro, acc, self.alpha, self.dt)
