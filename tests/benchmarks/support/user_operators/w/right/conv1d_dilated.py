import torch
import torch.nn.functional as F


class Conv1dFn(torch.autograd.Function):
    """1d convolution (N, C, L) with (O, C, K), zero padding, any stride and dilation."""

    @staticmethod
    def forward(ctx, x, w, stride=1, padding=0, dilation=1):
        ctx.save_for_backward(x, w)
        ctx.conf = stride, padding, dilation
        return F.conv1d(x, w, None, stride, padding, dilation)

    @staticmethod
    def backward(ctx, gy):
        x, w = ctx.saved_tensors
        stride, padding, dilation = ctx.conf
        gx = gw = None
        if ctx.needs_input_grad[0]:
            rest = x.shape[-1] + 2 * padding - dilation * (w.shape[-1] - 1) - 1 - (gy.shape[-1] - 1) * stride
            gx = F.conv_transpose1d(gy, w, None, stride, padding, rest, 1, dilation)
        if ctx.needs_input_grad[1]:
            cols = F.pad(x, (padding, padding)).unfold(-1, dilation * (w.shape[-1] - 1) + 1, stride)
            cols = cols[..., ::dilation]
            gw = torch.einsum("nol,nclk->ock", gy, cols)
        return gx, gw, None, None, None
