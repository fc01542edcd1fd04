import torch


def _sticks(x):
    k = x.shape[-1]
    offset = torch.arange(k, 0, -1, dtype=x.dtype, device=x.device).log()
    z = torch.sigmoid(x - offset)
    rest = torch.cat([torch.ones_like(z[..., :1]), (1 - z).cumprod(-1)], -1)
    return z, rest


class StickBreaking(torch.autograd.Function):
    """x (..., K-1) unconstrained -> point of the simplex (..., K) and log|det J| (...)"""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        z, rest = _sticks(x)
        p = torch.cat([z * rest[..., :-1], rest[..., -1:]], -1)
        logdet = (z.log() + (1 - z).log() + rest[..., :-1].log()).sum(-1)
        return p, logdet

    @staticmethod
    def backward(ctx, gp, glogdet):
        (x,) = ctx.saved_tensors
        z, rest = _sticks(x)
        gpp = gp * torch.cat([z * rest[..., :-1], rest[..., -1:]], -1)
        after = gpp.flip(-1).cumsum(-1).flip(-1)[..., 1:]
        gx = gpp[..., :-1] * (1 - z) - z * after
        k = x.shape[-1]
        left = torch.arange(k - 1, -1, -1, dtype=x.dtype, device=x.device)
        return gx + glogdet.unsqueeze(-1) * (1 - 2 * z - left * z)
