import torch
import torch.nn.functional as F


def _phi(x):
    return F.elu(x) + 1


def _dphi(x):
    return torch.where(x > 0, torch.ones_like(x), x.clamp(max=0).exp())


class CausalLinearAttention(torch.autograd.Function):
    """Transformers are RNNs; quadratic form, (B, H, T, D) each"""

    @staticmethod
    def forward(ctx, q, k, v, eps=1e-6):
        a = (_phi(q) @ _phi(k).mT).tril()
        out = a @ v / (a.sum(-1, keepdim=True) + eps)
        ctx.save_for_backward(q, k, v)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        fq, fk = _phi(q), _phi(k)
        a = (fq @ fk.mT).tril()
        z = a.sum(-1, keepdim=True) + ctx.eps
        g = g / z
        da = (g @ v.mT).tril()
        return (da @ fk) * _dphi(q), (da.mT @ fq) * _dphi(k), a.mT @ g, None
