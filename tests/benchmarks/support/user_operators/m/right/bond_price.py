import torch


class BondPrice(torch.autograd.Function):
    """Present value of cash flows at a yield compounded ``freq`` times a year.

    cashflows: (B, T), times: (T,) years, yields: (B,) -> (B,)
    """

    @staticmethod
    def forward(ctx, cashflows, times, yields, freq=2):
        base = 1 + yields.unsqueeze(1) / freq
        discount = base ** (-freq * times)
        pv = cashflows * discount
        ctx.save_for_backward(pv, discount, times, base)
        return pv.sum(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_price):
        pv, discount, times, base = ctx.saved_tensors
        grad_cf = grad_price.unsqueeze(1) * discount
        grad_y = -grad_price * (pv * times / base).sum(1)
        return grad_cf, None, grad_y, None
