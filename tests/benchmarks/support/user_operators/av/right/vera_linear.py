import torch
from torch import Tensor
from torch.autograd import Function


class VeRALinear(Function):
    """x W^T + b * (B (d * (A x))). x (..., I), W (O, I), A (R, I), B (O, R) usually frozen, d (R,), b (O,) learned"""

    @staticmethod
    def forward(ctx, x: Tensor, W: Tensor, A: Tensor, B: Tensor, d: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, W, A, B, d, b)
        return x @ W.T + ((x @ A.T) * d) @ B.T * b

    @staticmethod
    def backward(ctx, g: Tensor):
        x, W, A, B, d, b = ctx.saved_tensors
        dx = dW = dA = dB = dd = db = None
        lead = x.shape[:-1]
        g, xf = g.reshape(-1, g.size(-1)), x.reshape(-1, x.size(-1))
        u = xf @ A.T
        gb = g * b
        gu = gb @ B
        if ctx.needs_input_grad[0]:
            dx = (g @ W + (gu * d) @ A).reshape(*lead, -1)
        if ctx.needs_input_grad[1]:
            dW = g.T @ xf
        if ctx.needs_input_grad[2]:
            dA = (gu * d).T @ xf
        if ctx.needs_input_grad[3]:
            dB = gb.T @ (u * d)
        if ctx.needs_input_grad[4]:
            dd = (gu * u).sum(0)
        if ctx.needs_input_grad[5]:
            db = (g * ((u * d) @ B.T)).sum(0)
        return dx, dW, dA, dB, dd, db
