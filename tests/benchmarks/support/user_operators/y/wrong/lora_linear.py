import torch


class LoRALinear(torch.autograd.Function):
    """x W^T + b + scaling * (x A^T) B^T; W and b are mostly frozen.

    x (..., in), weight (out, in), bias (out,) or None, A (r, in), B (out, r)
    """

    @staticmethod
    def forward(ctx, x, weight, bias, A, B, scaling=1.0):
        y = x @ weight.t() + scaling * (x @ A.t()) @ B.t()
        ctx.save_for_backward(x, weight, A, B)
        ctx.scaling = scaling
        ctx.has_bias = bias is not None
        return y + bias if bias is not None else y

    @staticmethod
    def backward(ctx, dy):
        x, weight, A, B = ctx.saved_tensors
        x2, dy2 = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        dyB = ctx.scaling * dy2 @ B
        dx = dW = None
        if ctx.needs_input_grad[0]:
            dx = (dy2 @ weight + dyB @ A).view(x.shape)
        if ctx.needs_input_grad[1]:
            dW = dy2.t() @ x2
        dA = dyB.t() @ x2
        dB = ctx.scaling * dy2.t() @ (x2 @ A.t())
        if not ctx.has_bias:
            return dx, dW, dA, dB, None
        return dx, dW, dy2.sum(0), dA, dB, None
