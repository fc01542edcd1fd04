import torch


class DiagonalScan(torch.autograd.Function):
    """h_t = a_t * h_{t-1} + b_t

    Args: a, b of shape (B, T, N); h0 of shape (B, N).
    Returns: all states (B, T, N), and the last state (B, N) for the next chunk.
    """

    @staticmethod
    def forward(ctx, a, b, h0):
        hs, h = [], h0
        for at, bt in zip(a.unbind(1), b.unbind(1)):
            h = at * h + bt
            hs.append(h)
        out = torch.stack(hs, 1)
        ctx.save_for_backward(a, h0, out)
        return out, h.clone()

    @staticmethod
    def backward(ctx, g, g_last):
        a, h0, hs = ctx.saved_tensors
        lam, lams = g_last, []
        for t in reversed(range(a.shape[1])):
            lam = lam + g[:, t]
            lams.append(lam)
            lam = lam * a[:, t]
        db = torch.stack(lams[::-1], 1)
        prev = torch.cat([h0.unsqueeze(1), hs[:, :-1]], 1)
        return db * prev, db, lam
