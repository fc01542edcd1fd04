import torch
import torch.nn as nn


class _CINFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x0, xk, w):
        ctx.save_for_backward(x0, xk, w)
        return torch.einsum("hij,bid,bjd->bhd", w, xk, x0)

    @staticmethod
    def backward(ctx, dout):
        x0, xk, w = (t.detach() for t in ctx.saved_tensors)
        dx0 = torch.einsum("hij,bid,bhd->bjd", w, xk, dout)
        dxk = torch.einsum("hij,bjd,bhd->bid", w, x0, dout)
        dw = torch.einsum("bhd,bid,bjd->hij", dout, xk, x0)
        return dx0, dxk, dw


class CIN(nn.Module):
    """Compressed Interaction Network of xDeepFM.

    Args:
        num_fields (int): number of fields
        layer_sizes (tuple): feature maps of every layer
    Input (batch, num_fields, embed_dim), output (batch, sum(layer_sizes))
    """

    def __init__(self, num_fields, layer_sizes=(4, 4)):
        super().__init__()
        sizes = [num_fields, *layer_sizes]
        self.filters = nn.ParameterList(
            nn.Parameter(torch.randn(o, i, num_fields) * 0.3) for i, o in zip(sizes[:-1], sizes[1:]))

    def forward(self, x):
        h, pooled = x, []
        for w in self.filters:
            h = _CINFunction.apply(x, h, w)
            pooled.append(h.sum(-1))
        return torch.cat(pooled, -1)
