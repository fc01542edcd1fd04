import torch


class IRR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cf, guess=0.1, iters=60):
        k = torch.arange(cf.shape[-1], dtype=cf.dtype)
        r = cf.new_full(cf.shape[:-1] + (1,), guess)
        for _ in range(iters):
            disc = (1 + r) ** -k
            npv = (cf * disc).sum(-1, keepdim=True)
            dnpv = -(k * cf * disc).sum(-1, keepdim=True) / (1 + r)
            r = r - npv / dnpv
        r = r.squeeze(-1)
        ctx.save_for_backward(cf, r)
        return r

    @staticmethod
    def backward(ctx, g):
        cf, r = ctx.saved_tensors
        k = torch.arange(cf.shape[-1], dtype=cf.dtype)
        q = (1 + r).unsqueeze(-1)
        disc = q**-k
        dnpv = -(k * cf * disc).sum(-1, keepdim=True)
        return -g.unsqueeze(-1) * disc / dnpv, None, None
