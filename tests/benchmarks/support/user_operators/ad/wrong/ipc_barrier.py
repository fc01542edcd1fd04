import torch


class LogBarrier(torch.autograd.Function):
    # C2 clamped log barrier of incremental potential contact
    #   b(d) = -(d - dhat)^2 log(d / dhat)  for 0 < d < dhat, else 0

    @staticmethod
    def forward(ctx, d, dhat, kappa):
        near = d < dhat
        x = torch.where(near, d, torch.full_like(d, dhat))
        ctx.save_for_backward(d)
        ctx.dhat, ctx.kappa = dhat, kappa
        return -kappa * (x - dhat) ** 2 * torch.log(x / dhat)

    @staticmethod
    def backward(ctx, grad):
        d, = ctx.saved_tensors
        dhat = ctx.dhat
        x = d.data.clamp(max=dhat)
        slope = -2 * (x - dhat) * torch.log(x / dhat) - (x - dhat) ** 2 / x
        return grad * slope * ctx.kappa, None, None
