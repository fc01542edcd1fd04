import torch


class Toeplitz(torch.autograd.Function):
    @staticmethod
    def forward(ctx, c):
        n = (c.shape[1] + 1) // 2
        i = torch.arange(n, device=c.device)
        return c[:, n - 1 + i[:, None] - i]

    @staticmethod
    def backward(ctx, g):
        n = g.shape[-1]
        # a diagonal is every (n + 1)-th element of the flat matrix
        flat = g.reshape(g.shape[0], n * n)
        out = []
        for d in range(1 - n, n):
            start = d * n if d >= 0 else -d
            out.append(flat[:, start::n + 1][:, :n - abs(d)].sum(1))
        return torch.stack(out, dim=1)
