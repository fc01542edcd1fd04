import torch
from torch.autograd import Function


class CausalLinearAttention(Function):
    # q, k: (B, T, D)   v: (B, T, E)   ->   (B, T, E)
    # o_t = q_t @ sum_{s <= t} k_s v_s^T      (feature map is applied by the caller)

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        state = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        return torch.einsum("btd,btde->bte", q, state)

    @staticmethod
    def backward(ctx, g):
        q, k, v = ctx.saved_tensors
        state = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        gq = torch.einsum("bte,btde->btd", g, state)

        qg = torch.einsum("btd,bte->btde", q, g)
        # sum over all t >= s
        rev = qg + qg.sum(1, keepdim=True) - qg.cumsum(1)
        gk = torch.einsum("btde,bte->btd", rev, v)
        gv = torch.einsum("btde,btd->bte", rev, k)
        return gq, gk, gv


def elu_attention(q, k, v):
    phi = lambda t: torch.nn.functional.elu(t) + 1
    q, k = phi(q), phi(k)
    num = CausalLinearAttention.apply(q, k, v)
    den = (q * k.cumsum(1)).sum(-1, keepdim=True)
    return num / den


if __name__ == "__main__":
    a, b, c = torch.randn(3, 2, 7, 4).unbind(0)
    print(elu_attention(a, b, c).shape)
