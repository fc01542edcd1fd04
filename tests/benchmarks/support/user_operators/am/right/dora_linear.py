import torch
from torch import nn


class _DoRA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, base, down, up, mag, scale):
        ctx.save_for_backward(x, base, down, up, mag)
        ctx.scale = scale
        w = base + scale * up @ down
        w = mag[:, None] * w / w.norm(dim=1, keepdim=True)
        return x @ w.t()

    @staticmethod
    def backward(ctx, g):
        x, base, down, up, mag = ctx.saved_tensors
        w = base + ctx.scale * up @ down
        n = w.norm(dim=1, keepdim=True)
        unit = w / n
        gx = gbase = gdown = gup = gmag = None
        if ctx.needs_input_grad[0]:
            gx = g @ (mag[:, None] * unit)
        if any(ctx.needs_input_grad[1:5]):
            gw = g.reshape(-1, g.shape[-1]).t() @ x.reshape(-1, x.shape[-1])
            gmag = (gw * unit).sum(1)
            gbase = mag[:, None] / n * (gw - unit * (unit * gw).sum(1, keepdim=True))
            gdown = ctx.scale * up.t() @ gbase
            gup = ctx.scale * gbase @ down.t()
        return gx, gbase, gdown, gup, gmag, None


class DoRALinear(nn.Module):
    def __init__(self, in_features, out_features, rank=2, scale=1.0):
        super().__init__()
        self.register_buffer("base", torch.randn(out_features, in_features, generator=torch.Generator().manual_seed(1)))
        self.down = nn.Parameter(torch.randn(rank, in_features) / rank)
        self.up = nn.Parameter(torch.zeros(out_features, rank))
        self.mag = nn.Parameter(self.base.norm(dim=1).clone())
        self.scale = scale

    def forward(self, x):
        return _DoRA.apply(x, self.base, self.down, self.up, self.mag, self.scale)
