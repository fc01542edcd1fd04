import torch


def _keep(shape, p, seed, device):
    gen = torch.Generator(device=device).manual_seed(seed)
    return torch.rand(shape, generator=gen, device=device) >= p


class DropoutAdd(torch.autograd.Function):
    # residual + dropout(x) * scale, mask is drawn again from the seed in backward => nothing of size N saved but x
    @staticmethod
    def forward(ctx, x, residual, scale, p, seed):
        ctx.p, ctx.seed = p, seed
        ctx.save_for_backward(x, scale)
        keep = _keep(x.shape, p, seed, x.device)
        return residual + x * keep / (1 - p) * scale

    @staticmethod
    def backward(ctx, dy):
        x, scale = ctx.saved_tensors
        keep = _keep(x.shape, ctx.p, ctx.seed, x.device)
        dz = dy * keep / (1 - ctx.p)
        dscale = (dz * x).flatten(0, -2).sum(0)
        return dz * scale, dy, dscale, None, None
