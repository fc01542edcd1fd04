import torch
from torch.autograd import Function


class MaskedAffineCoupling(Function):
    """RealNVP coupling with a soft clamp on the log scale.

    x, raw_scale, shift: (B, D); mask: (D,) bool, True where x passes through.
    Returns y (B, D) and log|det J| (B,).
    """

    @staticmethod
    def forward(ctx, x, raw_scale, shift, mask, s_max=2.0):
        if x.is_complex() or raw_scale.is_complex() or shift.is_complex():
            raise TypeError("complex inputs are not supported")
        free = (~mask).to(x.dtype)
        log_s = s_max * torch.tanh(raw_scale / s_max) * free
        y = x * torch.exp(log_s) + shift * free
        ctx.save_for_backward(x, raw_scale, mask)
        ctx.s_max = s_max
        return y, log_s.sum(-1)

    @staticmethod
    def backward(ctx, grad_y, grad_logdet):
        x, raw_scale, mask = ctx.saved_tensors
        free = (~mask).to(x.dtype)
        th = torch.tanh(raw_scale / ctx.s_max)
        scale = torch.exp(ctx.s_max * th * free)
        grad_x = grad_y * scale
        grad_log_s = grad_y * x * scale * free
        grad_raw = grad_log_s * (1 - th * th) + grad_logdet.unsqueeze(-1) * free
        return grad_x, grad_raw, grad_y * free, None, None
