import torch
import torch.nn as nn


class PendulumStepFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, th, thdot, u, m, l, g, dt, max_torque):
        uc = u.clamp(-max_torque, max_torque)
        acc = 1.5 * g / l * torch.sin(th) + 3.0 / (m * l ** 2) * uc
        new_thdot = thdot + acc * dt
        new_th = th + new_thdot * dt
        ctx.save_for_backward(th, u, m, l)
        ctx.consts = (g, dt, max_torque)
        return new_th, new_thdot

    @staticmethod
    def backward(ctx, d_th, d_thdot):
        th, u, m, l = ctx.saved_tensors
        g, dt, max_torque = ctx.consts
        uc = u.clamp(-max_torque, max_torque)
        dv = d_thdot + d_th * dt
        da = dv * dt
        grad_th = d_th + da * 1.5 * g / l * torch.cos(th)
        grad_u = da * 3.0 / (m * l ** 2) * (u.abs() <= max_torque)
        grad_m = -(da * uc).sum() * 3.0 / (m ** 2 * l ** 2)
        grad_l = -(da * (1.5 * g / l ** 2 * torch.sin(th) + 6.0 * uc / (m * l ** 3))).sum()
        return grad_th, dv, grad_u, grad_m, grad_l, None, None, None


class Pendulum(nn.Module):
    def __init__(self, m=1.0, l=1.0, g=10.0, dt=0.05, max_torque=2.0):
        super().__init__()
        self.m = nn.Parameter(torch.tensor(float(m)))
        self.l = nn.Parameter(torch.tensor(float(l)))
        self.g, self.dt, self.max_torque = g, dt, max_torque

    def forward(self, th, thdot, u):
        return PendulumStepFn.apply(th, thdot, u, self.m, self.l, self.g, self.dt, self.max_torque)
