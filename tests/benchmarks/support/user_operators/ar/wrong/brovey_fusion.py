import torch


class BroveyFusion(torch.autograd.Function):
    # ms [B,C,H,W] upsampled multispectral, pan [B,1,H,W], weights [C]

    @staticmethod
    def forward(ctx, ms, pan, weights, eps=1e-6):
        intensity = torch.einsum("bchw,c->bhw", ms, weights).unsqueeze(1) + eps
        ctx.save_for_backward(ms, pan, weights)
        ctx.eps = eps
        return ms * (pan / intensity)

    @staticmethod
    def backward(ctx, grad):
        ms, pan, weights = ctx.saved_tensors
        intensity = torch.einsum("bchw,c->bhw", ms, weights).unsqueeze(1) + ctx.eps
        proj = (grad * ms).sum(1, keepdim=True)
        g_ms = g_pan = g_w = None
        g_int = -proj * pan / intensity ** 2
        if ctx.needs_input_grad[0]:
            g_ms = grad * pan / intensity + g_int / ms.size(1)
        if ctx.needs_input_grad[1]:
            g_pan = proj / intensity
        if ctx.needs_input_grad[2]:
            g_w = (g_int * ms).sum((0, 2, 3))
        return g_ms, g_pan, g_w, None
