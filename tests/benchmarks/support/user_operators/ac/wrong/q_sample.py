import torch


class QSampleV(torch.autograd.Function):
    # x0, noise: [B, C, L]; t: [B] long; alphas_cumprod: [T]
    # -> x_t and the v-prediction target

    @staticmethod
    def forward(ctx, x0, noise, t, alphas_cumprod):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x0, noise, t, alphas_cumprod)
        a = alphas_cumprod[t].sqrt()[:, None, None]
        s = (1 - alphas_cumprod[t]).sqrt()[:, None, None]
        return a * x0 + s * noise, a * noise - s * x0

    @staticmethod
    def backward(ctx, g_xt, g_v):
        x0, noise, t, acp = ctx.saved_tensors
        a = acp[t].sqrt()[:, None, None]
        s = (1 - acp[t]).sqrt()[:, None, None]
        if g_xt is None or g_v is None:
            return None, None, None, None
        g_x0 = a * g_xt - s * g_v
        g_noise = s * g_xt + a * g_v
        g_a = (g_xt * x0 + g_v * noise).sum((1, 2))
        g_s = (g_xt * noise - g_v * x0).sum((1, 2))
        per_sample = 0.5 * (g_a / a[:, 0, 0] - g_s / s[:, 0, 0])
        g_acp = torch.zeros_like(acp).index_add(0, t, per_sample)
        return g_x0, g_noise, None, g_acp
