import torch


class FoPool(torch.autograd.Function):
    # QRNN pooling: c_t = f_t c_{t-1} + (1 - f_t) z_t, h_t = o_t c_t; z, f, o (B, T, H), c0 (B, H) or None
    @staticmethod
    def forward(ctx, z, f, o, c0=None):
        c = torch.zeros_like(z[:, 0]) if c0 is None else c0
        cs = []
        for t in range(z.shape[1]):
            c = f[:, t] * c + (1 - f[:, t]) * z[:, t]
            cs.append(c)
        ctx.save_for_backward(z, f, o, c0)
        return o * torch.stack(cs, 1)

    @staticmethod
    def backward(ctx, gh):
        z, f, o, c0 = ctx.saved_tensors
        c = torch.zeros_like(z[:, 0]) if c0 is None else c0
        cs = [c]
        for t in range(z.shape[1]):
            cs.append(f[:, t] * cs[-1] + (1 - f[:, t]) * z[:, t])
        gc = torch.zeros_like(c)
        lam = []
        for t in range(z.shape[1] - 1, -1, -1):
            gc = gc + gh[:, t] * o[:, t]
            lam.append(gc)
            gc = gc * f[:, t]
        lam = torch.stack(lam[::-1], 1)
        go = gh * torch.stack(cs[1:], 1)
        gf = lam * (torch.stack(cs[:-1], 1) - z)
        gz = lam * (1 - f)
        return gz, gf, go, None if c0 is None else gc
