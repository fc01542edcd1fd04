import torch
from torch.autograd import Function


def _cell(gates, c, w_ci, w_cf, w_co):
    gi, gf, gg, go = gates.chunk(4, 1)
    i = torch.sigmoid(gi + w_ci * c)
    f = torch.sigmoid(gf + w_cf * c)
    g = torch.tanh(gg)
    c_new = f * c + i * g
    o = torch.sigmoid(go + w_co * c_new)
    return i, f, g, o, c_new


class PeepholeLSTMCell(Function):
    """gates (B, 4H) in the order i, f, g, o; c (B, H); peepholes (H,). Returns h', c'."""

    @staticmethod
    def forward(gates, c, w_ci, w_cf, w_co):
        if gates.is_complex():
            raise TypeError("gates must be real")
        if gates.size(1) != 4 * c.size(1) or gates.size(0) != c.size(0):
            raise ValueError("gates must be (B, 4H) for a cell of (B, H)")
        i, f, g, o, c_new = _cell(gates, c, w_ci, w_cf, w_co)
        return o * torch.tanh(c_new), c_new

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g_h, g_c_new):
        gates, c, w_ci, w_cf, w_co = ctx.saved_tensors
        i, f, g, o, c_new = _cell(gates, c, w_ci, w_cf, w_co)
        tc = torch.tanh(c_new)
        g_o = g_h * tc * o * (1 - o)
        g_cn = g_c_new + g_h * o * (1 - tc * tc) + g_o * w_co
        g_i = g_cn * g * i * (1 - i)
        g_f = g_cn * c * f * (1 - f)
        g_g = g_cn * i * (1 - g * g)
        g_c = g_cn * f + g_i * w_ci + g_f * w_cf
        g_gates = torch.cat([g_i, g_f, g_g, g_o], 1)
        return g_gates, g_c, (g_i * c).sum(0), (g_f * c).sum(0), (g_o * c_new).sum(0)
