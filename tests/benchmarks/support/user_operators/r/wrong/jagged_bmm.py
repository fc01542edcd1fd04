import torch


class JaggedDenseBmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, off):
        ctx.save_for_backward(x, y, off)
        return torch.cat([x[off[i]:off[i + 1]] @ y[i] for i in range(len(off) - 1)])

    @staticmethod
    def backward(ctx, g):
        x, y, off = ctx.saved_tensors
        gx, gy = [], []
        for i in range(len(off) - 1):
            s = slice(off[i], off[i + 1])
            gx.append(g[s] @ y[i].reshape(g.shape[1], -1))
            gy.append(x[s].t() @ g[s])
        return torch.cat(gx), torch.stack(gy), None
