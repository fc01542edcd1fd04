import torch


class BondPrice(torch.autograd.Function):
    """Present value of yearly cash flows, the first one a year from now.

    cash: (T,) amounts; y: (B,) yields. Returns (price, duration), both (B,); Macaulay's
    duration is for reports only and has no gradient.
    """

    @staticmethod
    def forward(ctx, cash, y):
        t = torch.arange(1, cash.numel() + 1, dtype=cash.dtype, device=cash.device)
        disc = (1 + y).unsqueeze(-1) ** -t
        price = disc @ cash
        duration = disc @ (t * cash) / price
        ctx.save_for_backward(cash, y, t)
        ctx.mark_non_differentiable(duration)
        return price, duration

    @staticmethod
    def backward(ctx, g, _):
        cash, y, t = ctx.saved_tensors
        base = (1 + y).unsqueeze(-1)
        gcash = g @ base ** -t
        gy = -g * (base ** -(t + 1) @ (t * cash))
        return gcash, gy
