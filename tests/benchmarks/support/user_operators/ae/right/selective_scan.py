import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class SelectiveScan(torch.autograd.Function):
    """Mamba's recurrence, written out.

    u, delta: (B, D, L); A: (D, N); Bmat, Cmat: (B, N, L); skip: (D,) or None
        h_t = exp(delta_t A) h_{t-1} + delta_t B_t u_t,   y_t = C_t h_t + skip u_t
    """

    @staticmethod
    def forward(ctx, u, delta, A, Bmat, Cmat, skip=None, delta_softplus=False):
        dt = F.softplus(delta) if delta_softplus else delta
        b, d, L = u.shape
        h = u.new_zeros(b, d, A.shape[1])
        hs, ys = [h], []
        for t in range(L):
            decay = torch.exp(dt[:, :, t, None] * A)
            h = decay * h + (dt[:, :, t] * u[:, :, t])[..., None] * Bmat[:, None, :, t]
            hs.append(h)
            ys.append((h * Cmat[:, None, :, t]).sum(-1))
        y = torch.stack(ys, -1)
        if skip is not None:
            y = y + skip[:, None] * u
        ctx.save_for_backward(u, delta, A, Bmat, Cmat, skip, torch.stack(hs, -1))
        ctx.delta_softplus = delta_softplus
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        u, delta, A, Bmat, Cmat, skip, hs = ctx.saved_tensors
        dt = F.softplus(delta) if ctx.delta_softplus else delta
        du, ddt = torch.zeros_like(u), torch.zeros_like(u)
        dA, dB, dC = torch.zeros_like(A), torch.zeros_like(Bmat), torch.zeros_like(Cmat)
        dh = torch.zeros_like(hs[..., 0])
        for t in range(u.shape[-1] - 1, -1, -1):
            step, inp, bt = dt[:, :, t, None], u[:, :, t, None], Bmat[:, None, :, t]
            dC[:, :, t] = (dy[:, :, t, None] * hs[..., t + 1]).sum(1)
            dh = dh + dy[:, :, t, None] * Cmat[:, None, :, t]
            decay = torch.exp(step * A)
            d_log = dh * decay * hs[..., t]
            dA += (d_log * step).sum(0)
            ddt[:, :, t] = (d_log * A + dh * bt * inp).sum(-1)
            du[:, :, t] = (dh * bt * step).sum(-1)
            dB[:, :, t] = (dh * step * inp).sum(1)
            dh = dh * decay
        dskip = None
        if skip is not None:
            dskip = (dy * u).sum((0, 2))
            du = du + skip[:, None] * dy
        if ctx.delta_softplus:
            ddt = ddt * torch.sigmoid(delta)
        return du, ddt, dA, dB, dC, dskip, None
