import torch


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(x, weight, eps=1e-6, add_unit_offset=False):
        assert not (x.is_complex() or weight.is_complex()), "real tensors only"
        if weight.shape != x.shape[-1:]:
            raise ValueError("weight must have the size of the last dimension")
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        w = weight + 1 if add_unit_offset else weight
        return x * rstd * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, eps, add_unit_offset = inputs
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        ctx.add_unit_offset = add_unit_offset

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + ctx.eps)
        x_hat = x * rstd
        dw = (dy * x_hat).reshape(-1, x.shape[-1]).sum(0)
        wdy = dy * weight
        dx = rstd * (wdy - x_hat * (wdy * x_hat).mean(-1, keepdim=True))
        return dx, dw, None, None
