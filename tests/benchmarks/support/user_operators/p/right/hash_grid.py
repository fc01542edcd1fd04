import torch

PRIMES = (1, 2654435761)


def _corners(x, resolution, table_size):
    pos = x * resolution
    base = torch.floor(pos)
    frac = pos - base
    base = base.long()
    out = []
    for dx in (0, 1):
        for dy in (0, 1):
            h = (base[:, 0] + dx) * PRIMES[0] ^ (base[:, 1] + dy) * PRIMES[1]
            out.append((dx, dy, h % table_size))
    return frac, out


class HashGridEncode2D(torch.autograd.Function):
    """One level of a 2-D hash grid.  x: (N, 2) in [0, 1], table: (size, F)."""

    @staticmethod
    def forward(ctx, x, table, resolution):
        frac, corners = _corners(x, resolution, table.shape[0])
        out = 0
        for dx, dy, idx in corners:
            wx = frac[:, 0] if dx else 1 - frac[:, 0]
            wy = frac[:, 1] if dy else 1 - frac[:, 1]
            out = out + (wx * wy)[:, None] * table[idx]
        ctx.save_for_backward(x, table)
        ctx.resolution = resolution
        return out

    @staticmethod
    def backward(ctx, dout):
        x, table = ctx.saved_tensors
        frac, corners = _corners(x, ctx.resolution, table.shape[0])
        dtable = torch.zeros_like(table)
        dfx = dfy = 0
        for dx, dy, idx in corners:
            wx = frac[:, 0] if dx else 1 - frac[:, 0]
            wy = frac[:, 1] if dy else 1 - frac[:, 1]
            dtable = dtable.index_add(0, idx, (wx * wy)[:, None] * dout)
            dw = (dout * table[idx]).sum(1)
            dfx = dfx + (2 * dx - 1) * wy * dw
            dfy = dfy + (2 * dy - 1) * wx * dw
        dx_ = torch.stack([dfx, dfy], 1) * ctx.resolution
        return dx_, dtable, None
