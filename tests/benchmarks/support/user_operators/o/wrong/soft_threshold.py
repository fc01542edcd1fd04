import torch


class SoftThreshold(torch.autograd.Function):
    """Shrinkage sign(x) * max(|x| - lam, 0) as used by unrolled ISTA; real x, lam >= 0 broadcasts to x."""

    @staticmethod
    def forward(ctx, x, lam):
        if torch.broadcast_shapes(x.shape, lam.shape) != x.shape:
            raise ValueError("lam must broadcast to the shape of x")
        if (lam < 0).any():
            raise ValueError("lam must not be negative")
        ctx.save_for_backward(x, lam)
        return x.sign() * (x.abs() - lam).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, lam = ctx.saved_tensors
        g = grad_output.masked_fill_(x.abs() <= lam, 0.0)
        g_lam = -(g * x.sign()).sum_to_size(lam.shape) if ctx.needs_input_grad[1] else None
        return g, g_lam
