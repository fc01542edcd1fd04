import torch


class ClampedSwiGLU(torch.autograd.Function):
    """Clamped SwiGLU on interleaved (gate, linear) features, (..., 2 * D) -> (..., D)."""

    @staticmethod
    def forward(ctx, x, alpha=1.702, limit=7.0):
        if x.shape[-1] % 2:
            raise ValueError("last dimension must be even")
        ctx.save_for_backward(x)
        ctx.alpha, ctx.limit = alpha, limit
        x_glu, x_linear = x[..., ::2], x[..., 1::2]
        x_glu = x_glu.clamp(max=limit)
        x_linear = x_linear.clamp(-limit, limit)
        return x_glu * torch.sigmoid(alpha * x_glu) * (x_linear + 1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        alpha, limit = ctx.alpha, ctx.limit
        x_glu, x_linear = x[..., ::2], x[..., 1::2]
        glu = x_glu.clamp(max=limit)
        lin = x_linear.clamp(-limit, limit)
        sig = torch.sigmoid(alpha * glu)
        d_glu = grad_output * (lin + 1) * sig * (1 + alpha * glu * (1 - sig))
        d_lin = grad_output * glu * sig
        d_glu = d_glu * (x_glu <= limit)
        d_lin = d_lin * (x_linear <= limit)
        return torch.stack((d_glu, d_lin), dim=-1).flatten(-2), None, None
