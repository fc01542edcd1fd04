import torch


class FMInteraction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, x):
        # v: (F, K) factors, x: (B, F) field values -> (B,)
        xv = x @ v
        x2v2 = (x * x) @ (v * v)
        ctx.save_for_backward(v, x)
        return 0.5 * (xv * xv - x2v2).sum(1)

    @staticmethod
    def backward(ctx, grad):
        v, x = ctx.saved_tensors
        xv = x @ v
        g = grad.unsqueeze(1)
        gv = gx = None
        if ctx.needs_input_grad[0]:
            gv = x.t() @ (g * xv) - v * (g * x * x).sum(0).unsqueeze(1)
        if ctx.needs_input_grad[1]:
            gx = g * (xv @ v.t() - 0.5 * x * (v * v).sum(1))
        return gv, gx
