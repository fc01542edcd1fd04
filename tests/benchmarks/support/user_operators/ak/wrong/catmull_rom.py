import torch


def _weights(t):
    t2, t3 = t * t, t * t * t
    return torch.stack([-t3 + 2 * t2 - t, 3 * t3 - 5 * t2 + 2, -3 * t3 + 4 * t2 + t, t3 - t2]) / 2


def _slopes(t):
    t2 = t * t
    return torch.stack([-3 * t2 + 4 * t - 1, 9 * t2 - 10 * t, -9 * t2 + 8 * t + 1, 3 * t2 - 2 * t]) / 2


class CatmullRom(torch.autograd.Function):
    """Cubic interpolation of the rows of table (C, K) at positions x (N,) in knots; constant outside.

    -> (C, N)
    """

    @staticmethod
    def forward(ctx, table, x):
        k = table.shape[1]
        ctx.cell = x.floor().clamp(0, k - 2)
        ctx.index = (ctx.cell.long() + torch.arange(-1, 3, device=x.device)[:, None]).clamp(0, k - 1)
        ctx.save_for_backward(table, x)
        t = x.clamp(0, k - 1) - ctx.cell
        return (table[:, ctx.index] * _weights(t)).sum(1)

    @staticmethod
    def backward(ctx, g):
        table, x = ctx.saved_tensors
        k = table.shape[1]
        t = x.clamp(0, k - 1) - ctx.cell
        spread = (g[:, None] * _weights(t)).reshape(table.shape[0], -1)
        g_table = torch.zeros_like(table).index_add(1, ctx.index.reshape(-1), spread)
        gx = (g[:, None] * table[:, ctx.index] * _slopes(t)).sum((0, 1))
        return g_table, gx
