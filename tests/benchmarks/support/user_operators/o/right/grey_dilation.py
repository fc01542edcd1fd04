import torch
import torch.nn.functional as F


class GreyDilation2d(torch.autograd.Function):
    """Grey-scale dilation, max over the window of image + structuring element.

    image: (B, C, H, W); element: (kh, kw), shared by the channels. Outside the image counts as -inf,
    so padding must stay below the element's size. The gradient goes to the first maximum.
    """

    @staticmethod
    def _sums(image, element, stride, padding):
        kh, kw = element.shape
        x = F.pad(image, [padding] * 4, value=float("-inf"))
        win = x.unfold(2, kh, stride).unfold(3, kw, stride)
        return (win + element).flatten(-2)

    @staticmethod
    def forward(ctx, image, element, stride=1, padding=0):
        if padding >= min(element.shape):
            raise ValueError("padding must be smaller than the element")
        ctx.save_for_backward(image, element)
        ctx.stride, ctx.padding = stride, padding
        return GreyDilation2d._sums(image, element, stride, padding).max(-1).values

    @staticmethod
    def backward(ctx, grad):
        x, element = ctx.saved_tensors
        kh, kw = element.shape
        pad = ctx.padding
        k = GreyDilation2d._sums(x, element, ctx.stride, pad).argmax(-1)
        h_out, w_out = k.shape[2:]
        H, W = x.size(2) + 2 * pad, x.size(3) + 2 * pad
        row = torch.arange(h_out, device=x.device)[:, None] * ctx.stride + k // kw
        col = torch.arange(w_out, device=x.device) * ctx.stride + k % kw
        flat = (row * W + col).flatten(2)
        g = grad.new_zeros(x.size(0), x.size(1), H * W).scatter_add(2, flat, grad.flatten(2))
        g = g.view(x.size(0), x.size(1), H, W)[:, :, pad:pad + x.size(2), pad:pad + x.size(3)]
        g_el = grad.new_zeros(kh * kw).index_add(0, k.flatten(), grad.flatten()).view(kh, kw)
        return g, g_el, None, None
