import torch
from torch import nn
from torch.autograd.function import once_differentiable


class WilsonCowanFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, drive, W, tau, dt):
        x = drive.new_zeros(drive.shape[0], 2)
        xs, ss = [x], []
        for p in drive.unbind(1):
            s = torch.sigmoid(x @ W.T + torch.stack([p, torch.zeros_like(p)], 1))
            x = x + dt / tau * (s - x)
            xs.append(x)
            ss.append(s)
        ctx.dt = dt
        ctx.save_for_backward(W, tau, torch.stack(xs), torch.stack(ss))
        return torch.stack(xs[1:], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        W, tau, xs, ss = ctx.saved_tensors
        k = ctx.dt / tau
        lam = torch.zeros_like(xs[0])
        gW, gtau, gp = torch.zeros_like(W), torch.zeros_like(tau), []
        for t in range(len(ss) - 1, -1, -1):
            lam = lam + g[:, t]
            gz = lam * k * ss[t] * (1 - ss[t])
            gtau = gtau - (lam * (ss[t] - xs[t])).sum(0) * k / tau
            gW = gW + gz.T @ xs[t + 1]
            gp.append(gz[:, 0])
            lam = lam * (1 - k) + gz @ W
        return torch.stack(gp[::-1], 1), gW, gtau, None


class WilsonCowan(nn.Module):
    """Excitatory/inhibitory rate pair from rest. drive: (B, T) into E. Returns (B, T, 2)."""

    def __init__(self, dt=0.1):
        super().__init__()
        self.dt = dt
        self.W = nn.Parameter(torch.tensor([[12.0, -4.0], [13.0, -11.0]]))
        self.log_tau = nn.Parameter(torch.zeros(2))

    def forward(self, drive):
        return WilsonCowanFn.apply(drive, self.W, self.log_tau.exp(), self.dt)
