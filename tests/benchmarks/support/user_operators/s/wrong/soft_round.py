import torch


class SoftRound(torch.autograd.Function):
    """Differentiable rounding for learned compression (Agustsson & Theis); alpha is one number > 0."""

    @staticmethod
    def forward(ctx, x, alpha):
        m = torch.floor(x) + 0.5
        ctx.save_for_backward(x, alpha)
        return m + torch.tanh(alpha * (x - m)) / (2 * torch.tanh(alpha / 2))

    @staticmethod
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        r = x - (torch.floor(x) + 0.5)
        t = torch.tanh(alpha * r)
        h = torch.tanh(alpha / 2)
        dx = alpha * (1 - t * t) / (2 * h)
        dalpha = r * (1 - t * t) / (2 * h)
        return grad * dx, (grad * dalpha).sum()
