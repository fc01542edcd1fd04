import torch
from torch import nn


class EulerEquation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, omega, torque, inertia):
        ctx.save_for_backward(omega, torque, inertia)
        h = omega @ inertia.T
        rhs = torque - torch.linalg.cross(omega, h)
        return torch.linalg.solve(inertia, rhs.T).T

    @staticmethod
    def backward(ctx, g):
        omega, torque, inertia = ctx.saved_tensors
        h = omega @ inertia.T
        acc = torch.linalg.solve(inertia, (torque - torch.linalg.cross(omega, h)).T).T
        lam = torch.linalg.solve(inertia.T, g.T).T
        gh = -torch.linalg.cross(lam, omega)
        g_omega = -torch.linalg.cross(h, lam) + gh @ inertia
        g_inertia = -lam.T @ acc
        return g_omega, lam, g_inertia


class RigidBody(nn.Module):
    """Angular acceleration I^-1 (tau - w x I w) with a learned inertia matrix.

    forward(omega, torque): both (B, 3) in the body frame -> (B, 3)
    """

    def __init__(self, diag=(1.0, 1.5, 2.0)):
        super().__init__()
        self.inertia = nn.Parameter(torch.diag(torch.tensor(diag)))

    def forward(self, omega, torque):
        return EulerEquation.apply(omega, torque, self.inertia)
