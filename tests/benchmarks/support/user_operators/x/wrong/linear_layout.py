import torch


class LinearLayout(torch.autograd.Function):
    """y = x W (+ b).

    layout "oi": W is (out, in) as in nn.Linear; "io": W is (in, out) as in GPT-2's Conv1D.
    """

    @staticmethod
    def forward(ctx, x, weight, bias=None, layout="oi"):
        ctx.save_for_backward(x, weight)
        ctx.layout, ctx.bias = layout, bias is not None
        y = x @ (weight.t() if layout == "oi" else weight)
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        x2, g2 = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
        if ctx.layout == "oi":
            gx, gw = g @ weight, g2.t() @ x2
        else:
            gx, gw = g @ weight, x2.t() @ g2
        return gx, gw, g2.sum(0) if ctx.bias else None, None
