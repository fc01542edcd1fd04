import torch


class PreEmphasis_(torch.autograd.Function):

    @staticmethod
    def forward(ctx, wav, coef):
        past = wav[..., :-1].clone()
        wav[..., 1:] -= coef * past
        ctx.mark_dirty(wav)
        ctx.save_for_backward(past, coef)
        return wav

    @staticmethod
    def backward(ctx, grad):
        past, coef = ctx.saved_tensors
        g = grad.clone()
        g[..., :-1] -= coef * grad[..., 1:]
        g_coef = None
        if ctx.needs_input_grad[1]:
            g_coef = -(grad[..., 1:] * past).sum().reshape(coef.shape)
        return g, g_coef
