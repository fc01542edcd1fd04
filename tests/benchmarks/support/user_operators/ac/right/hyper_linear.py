import torch
from torch import nn, Tensor


class HyperMatmul(torch.autograd.Function):
    # W_b = unflatten(H z_b + c); y_bt = W_b x_bt
    @staticmethod
    def forward(ctx, x, z, H, c, out_features):
        W = (z @ H.t() + c).view(z.shape[0], out_features, x.shape[-1])
        ctx.save_for_backward(x, z, H, c)
        return torch.einsum("bti,boi->bto", x, W)

    @staticmethod
    def backward(ctx, g):
        x, z, H, c = ctx.saved_tensors
        W = (z @ H.t() + c).view(z.shape[0], g.shape[-1], x.shape[-1])
        gx = torch.einsum("bto,boi->bti", g, W)
        gW = torch.einsum("bto,bti->boi", g, x).flatten(1)
        return gx, gW @ H, gW.t() @ z, gW.sum(0), None


class HyperLinear(nn.Module):
    def __init__(self, in_features: int, out_features: int, z_dim: int):
        super().__init__()
        self.out_features = out_features
        self.H = nn.Parameter(torch.randn(out_features * in_features, z_dim) / z_dim ** 0.5)
        self.c = nn.Parameter(torch.randn(out_features * in_features) / in_features ** 0.5)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return HyperMatmul.apply(x, z, self.H, self.c, self.out_features)
