import torch
from torch import nn


class _Stribeck(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qd, fc, fs, vs, b, vt):
        ctx.save_for_backward(qd, fc, fs, vs, b)
        ctx.vt = vt
        e = torch.exp(-((qd / vs) ** 2))
        return (fc + (fs - fc) * e) * torch.tanh(qd / vt) + b * qd

    @staticmethod
    def backward(ctx, g):
        qd, fc, fs, vs, b = ctx.saved_tensors
        th = torch.tanh(qd / ctx.vt)
        e = torch.exp(-((qd / vs) ** 2))
        g_qd = g_fc = g_fs = g_vs = g_b = None
        if ctx.needs_input_grad[0]:
            level = fc + (fs - fc) * e
            g_qd = g * (level * (1 - th * th) / ctx.vt - 2 * (fs - fc) * e * qd / vs**2 * th + b)
        if any(ctx.needs_input_grad[1:5]):
            g_fc = (g * (1 - e) * th).sum_to_size(fc.shape)
            g_fs = (g * e * th).sum_to_size(fs.shape)
            g_vs = (g * (fs - fc) * e * 2 * qd**2 / vs**3 * th).sum_to_size(vs.shape)
            g_b = (g * qd).sum_to_size(b.shape)
        return g_qd, g_fc, g_fs, g_vs, g_b, None


class StribeckFriction(nn.Module):
    """Joint friction torque [Nm] from joint speed qd (..., J) [rad/s]."""

    def __init__(self, joints, vt=0.1):
        super().__init__()
        self.coulomb = nn.Parameter(torch.linspace(0.5, 1.0, joints))
        self.static = nn.Parameter(torch.linspace(0.9, 1.9, joints))
        self.stribeck = nn.Parameter(torch.full((joints,), 0.4))
        self.viscous = nn.Parameter(torch.full((joints,), 0.2))
        self.vt = vt

    def forward(self, qd):
        return _Stribeck.apply(qd, self.coulomb, self.static, self.stribeck, self.viscous, self.vt)
