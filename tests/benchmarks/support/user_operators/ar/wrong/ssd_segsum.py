import torch


class SegSumExp(torch.autograd.Function):
    # L[i, j] = exp(a[j+1] + ... + a[i]) for i >= j, else 0      (Mamba-2 SSD mask)

    @staticmethod
    def forward(ctx, a):
        T = a.size(-1)
        cs = a.cumsum(-1)
        diff = cs.unsqueeze(-1) - cs.unsqueeze(-2)
        keep = torch.ones(T, T, dtype=torch.bool, device=a.device).tril()
        L = diff.masked_fill(~keep, float("-inf")).exp()
        ctx.save_for_backward(L)
        return L

    @staticmethod
    def backward(ctx, dL):
        L, = ctx.saved_tensors
        m = dL * L
        dcs = m.sum(-1) - m.sum(-2)
        return dcs.sum(-1, keepdim=True) - dcs.cumsum(-1)
