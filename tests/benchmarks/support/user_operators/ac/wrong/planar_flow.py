import torch


class PlanarTransform(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, u, w, b):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(z, u, w, b)
        h = torch.tanh(z @ w + b)
        det = 1 + (1 - h ** 2) * (u @ w)
        return z + h[:, None] * u, det.abs().log()

    @staticmethod
    def backward(ctx, g_out, g_ld):
        z, u, w, b = ctx.saved_tensors
        if g_out is None and g_ld is None:
            return None, None, None, None
        if g_out is None:
            g_out = torch.zeros_like(z)
        if g_ld is None:
            g_ld = torch.zeros_like(z[:, 0])
        h = torch.tanh(z @ w + b)
        dh = 1 - h ** 2
        uw = u @ w
        det = 1 + dh * uw
        g_det = g_ld / det.abs()
        g_a = (g_out @ u) * dh - 2 * g_det * uw * h * dh
        g_uw = (g_det * dh).sum()
        g_z = g_out + g_a[:, None] * w
        g_u = h @ g_out + g_uw * w
        g_w = g_a @ z + g_uw * u
        return g_z, g_u, g_w, g_a.sum()
