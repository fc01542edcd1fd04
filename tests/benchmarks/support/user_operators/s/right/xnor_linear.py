import torch


class XNORLinear(torch.autograd.Function):
    """Linear layer with binary weights, y = (x @ sign(w).T) * alpha.

    x and alpha get their exact gradients.  The gradient of the latent weight w is a
    straight-through estimate (the sign taken to be hardtanh), NOT a derivative.
    """

    @staticmethod
    def forward(ctx, x, w, alpha):
        s = torch.where(w >= 0, 1.0, -1.0).to(x.dtype)
        ctx.save_for_backward(x, w, alpha)
        return (x @ s.t()) * alpha

    @staticmethod
    def backward(ctx, gy):
        x, w, alpha = ctx.saved_tensors
        s = torch.where(w >= 0, 1.0, -1.0).to(x.dtype)
        gx = gw = ga = None
        if ctx.needs_input_grad[0]:
            gx = (gy * alpha) @ s
        if ctx.needs_input_grad[1]:
            gw = (gy * alpha).t() @ x * (w.abs() <= 1)
        if ctx.needs_input_grad[2]:
            ga = (gy * (x @ s.t())).sum(0)
        return gx, gw, ga
