import torch


class NeuSAlpha(torch.autograd.Function):
    """alpha = clamp((Phi(prev) - Phi(next)) / Phi(prev), 0, 1), Phi = sigmoid(inv_s * sdf)"""

    @staticmethod
    def forward(ctx, prev_sdf, next_sdf, inv_s):
        ctx.save_for_backward(prev_sdf, next_sdf, inv_s)
        a = torch.sigmoid(prev_sdf * inv_s)
        b = torch.sigmoid(next_sdf * inv_s)
        return ((a - b + 1e-5) / (a + 1e-5)).clamp(0.0, 1.0)

    @staticmethod
    def backward(ctx, grad_alpha):
        prev_sdf, next_sdf, inv_s = ctx.saved_tensors
        a = torch.sigmoid(prev_sdf * inv_s)
        b = torch.sigmoid(next_sdf * inv_s)
        raw = (a - b + 1e-5) / (a + 1e-5)
        g = grad_alpha * ((raw > 0) & (raw < 1))
        ga = g * b / (a + 1e-5) ** 2 * a * (1 - a)
        gb = -g / (a + 1e-5) * b * (1 - b)
        g_inv_s = (ga * prev_sdf + gb * next_sdf).sum().reshape(inv_s.shape)
        return ga * inv_s, gb * inv_s, g_inv_s
