import torch


class TokenShift(torch.autograd.Function):
    """RWKV time mixing: x_t + (x_{t-1} - x_t) * mu.

    x (B, T, D), mu (D,), state (B, D): the token before the first one, zeros if None.
    """

    @staticmethod
    def forward(ctx, x, mu, state=None):
        assert not (x.is_complex() or mu.is_complex()), "real tensors only"
        first = torch.zeros_like(x[:, :1]) if state is None else state.unsqueeze(1)
        prev = torch.cat([first, x[:, :-1]], dim=1)
        ctx.save_for_backward(x, mu, state)
        return x + (prev - x) * mu

    @staticmethod
    def backward(ctx, gy):
        x, mu, state = ctx.saved_tensors
        first = torch.zeros_like(x[:, :1]) if state is None else state.unsqueeze(1)
        prev = torch.cat([first, x[:, :-1]], dim=1)
        gmu = (gy * (prev - x)).sum((0, 1))
        gprev = gy * mu
        gx = gy - gprev + torch.cat([gprev[:, 1:], torch.zeros_like(gprev[:, :1])], dim=1)
        gstate = None if state is None else gprev[:, 0]
        return gx, gmu, gstate
