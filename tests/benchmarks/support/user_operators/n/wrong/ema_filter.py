import torch


_buffers = {}


class EMAFilter(torch.autograd.Function):
    """y_t = (1 - alpha) * y_{t-1} + alpha * x_t, y_{-1} = 0, over the last dim; alpha is a 0-d tensor."""

    @staticmethod
    def forward(ctx, x, alpha):
        if alpha.dim():
            raise ValueError("alpha must be a 0-d tensor")
        decay = 1 - alpha
        y = torch.empty_like(x)
        state = torch.zeros_like(x[..., 0])
        for t in range(x.shape[-1]):
            state = decay * state + alpha * x[..., t]
            y[..., t] = state
        _buffers[tuple(x.shape)] = y.detach().clone()
        ctx.save_for_backward(x, alpha)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_y):
        x, alpha = ctx.saved_tensors
        y = _buffers[tuple(x.shape)]
        grad_x = torch.empty_like(x)
        carry = torch.zeros_like(x[..., 0])
        grad_alpha = torch.zeros_like(alpha)
        for t in range(x.shape[-1] - 1, -1, -1):
            carry = carry + grad_y[..., t]
            grad_x[..., t] = alpha * carry
            prev = y[..., t - 1] if t > 0 else torch.zeros_like(carry)
            grad_alpha = grad_alpha + (carry * (x[..., t] - prev)).sum()
            carry = carry * (1 - alpha)
        return grad_x, grad_alpha
