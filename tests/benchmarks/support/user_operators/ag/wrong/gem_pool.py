# Generalised-mean pooling (GeM) for image retrieval, with trainable exponent.
import torch
from torch.autograd import Function


class GeMPool(Function):

    @staticmethod
    def forward(ctx, x, p, eps=1e-6):
        assert x.dim() == 4, "expected NCHW"
        assert p.numel() == 1
        powered = x.clamp(min=eps).pow(p)
        out = powered.mean(dim=(-2, -1)).pow(1.0 / p)
        ctx.save_for_backward(x, p, out)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, p, out = ctx.saved_tensors
        gx = gp = None
        c = x.clamp(min=ctx.eps)
        area = x.shape[-2] * x.shape[-1]
        if ctx.needs_input_grad[0]:
            lead = (grad_out * out.pow(1 - p) / area)[..., None, None]
            gx = lead * c.pow(p - 1)
            gx = gx * (x >= ctx.eps).to(x.dtype)
        if ctx.needs_input_grad[1]:
            m = out.pow(p)
            mlog = (c.pow(p) * c.log()).mean(dim=(-2, -1))
            per_map = out * (mlog / m) / p
            gp = (grad_out * per_map).sum().reshape(p.shape)
        return gx, gp, None
