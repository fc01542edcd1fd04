import torch


class AutocorrLags(torch.autograd.Function):
    """normalised autocorrelation of x (B, n) at lags 0..L-1 (no mean removal), (B, L)"""

    @staticmethod
    def forward(ctx, x, L):
        n = x.shape[1]
        r = torch.stack([(x[:, :n - k] * x[:, k:]).sum(1) for k in range(L)], 1)
        ctx.save_for_backward(x)
        ctx.L = L
        return r / r[:, :1]

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        n, L = x.shape[1], ctx.L
        r = torch.stack([(x[:, :n - k] * x[:, k:]).sum(1) for k in range(L)], 1)
        r0 = r[:, :1]
        gr = g / r0
        gr0 = -(g * r).sum(1, keepdim=True) / r0 ** 2
        gx = 2 * (gr[:, :1] + gr0) * x
        for k in range(1, L):
            z = x.new_zeros(x.shape[0], k)
            later = torch.cat([x[:, k:], z], 1)
            earlier = torch.cat([z, x[:, :n - k]], 1)
            gx = gx + gr[:, k:k + 1] * 2 * later
        return gx, None
