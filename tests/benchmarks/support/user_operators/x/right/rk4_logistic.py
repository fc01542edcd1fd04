import torch
from torch.autograd import Function


class RK4Logistic(Function):
    """One step of dy/dt = r y (1 - y / K); adjoint of the stages by hand."""

    @staticmethod
    def _stages(y, r, K, h):
        f = lambda u: r * u * (1 - u / K)
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        return k1, k2, k3, f(y + h * k3)

    @staticmethod
    def forward(ctx, y, r, K, h):
        ctx.save_for_backward(y, r, K)
        ctx.h = h
        k1, k2, k3, k4 = RK4Logistic._stages(y, r, K, h)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @staticmethod
    def backward(ctx, g):
        y, r, K = ctx.saved_tensors
        h = ctx.h
        k1, k2, k3, _ = RK4Logistic._stages(y, r, K, h)
        us = [y, y + h / 2 * k1, y + h / 2 * k2, y + h * k3]
        jac = [r * (1 - 2 * u / K) for u in us]
        l4 = h / 6 * g
        l3 = h / 3 * g + h * jac[3] * l4
        l2 = h / 3 * g + h / 2 * jac[2] * l3
        l1 = h / 6 * g + h / 2 * jac[1] * l2
        ls = [l1, l2, l3, l4]
        gy = g + sum(j * l for j, l in zip(jac, ls))
        gr = sum(l * u * (1 - u / K) for u, l in zip(us, ls)).sum_to_size(r.shape)
        gK = sum(l * r * u * u / K**2 for u, l in zip(us, ls)).sum_to_size(K.shape)
        return gy, gr, gK, None
