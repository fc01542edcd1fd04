import torch


def dequantise(q, scale, zero):
    o, i = q.shape
    g = scale.shape[1]
    w = (q.to(scale.dtype).view(o, g, i // g) - zero[..., None]) * scale[..., None]
    return w.view(o, i)


class GroupwiseDequantLinear(torch.autograd.Function):
    """y = x W^T, W stored as integers with one scale and one (float) zero point per group of inputs.

    x: (B, I) float, q: (O, I) int8, scale and zero: (O, I / group)
    """

    @staticmethod
    def forward(ctx, x, q, scale, zero):
        if q.is_floating_point() or q.shape[1] % scale.shape[1] or scale.shape != zero.shape:
            raise ValueError("q must be an integer matrix that the groups divide")
        if x.is_complex():
            raise TypeError("real activations")
        ctx.save_for_backward(x, q, scale, zero)
        return x @ dequantise(q, scale, zero).t()

    @staticmethod
    def backward(ctx, gy):
        x, q, scale, zero = ctx.saved_tensors
        gx = g_scale = g_zero = None
        if ctx.needs_input_grad[0]:
            gx = gy @ dequantise(q, scale, zero)
        if ctx.needs_input_grad[2] or ctx.needs_input_grad[3]:
            o, g = scale.shape
            gw = (gy.t() @ x).reshape(o, g, -1)
            qg = q.reshape(o, g, -1).to(scale.dtype)
            g_scale = (gw * (qg - zero[..., None])).sum(-1)
            g_zero = -gw.sum(-1) * scale
        return gx, None, g_scale, g_zero
