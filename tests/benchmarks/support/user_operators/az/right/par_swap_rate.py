import torch
from torch.autograd import Function


class ParSwapRate(Function):
    @staticmethod
    def forward(ctx, zero_rates, tenors):
        discount = torch.exp(-zero_rates * tenors)
        accrual = torch.diff(tenors, prepend=torch.zeros_like(tenors[:1]))
        ctx.save_for_backward(zero_rates, tenors)
        return (1 - discount[..., -1]) / (discount * accrual).sum(-1)

    @staticmethod
    def backward(ctx, grad_rate):
        zero_rates, tenors = ctx.saved_tensors
        discount = torch.exp(-zero_rates * tenors)
        accrual = torch.diff(tenors, prepend=torch.zeros_like(tenors[:1]))
        annuity = (discount * accrual).sum(-1)
        rate = (1 - discount[..., -1]) / annuity
        grad_discount = -(grad_rate * rate / annuity)[..., None] * accrual
        grad_discount[..., -1] -= grad_rate / annuity
        grad_rates = grad_tenors = None
        if ctx.needs_input_grad[0]:
            grad_rates = -grad_discount * discount * tenors
        if ctx.needs_input_grad[1]:
            step = -(grad_rate * rate / annuity)[..., None] * discount
            step = step - torch.cat([step[..., 1:], torch.zeros_like(step[..., :1])], -1)
            grad_tenors = (step - grad_discount * discount * zero_rates).sum_to_size(tenors.shape)
        return grad_rates, grad_tenors
