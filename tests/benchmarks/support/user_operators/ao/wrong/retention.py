import torch
from torch.autograd.function import once_differentiable


class Retention(torch.autograd.Function):
    # recurrent form: S_t = gamma S_{t-1} + k_t v_t^T, o_t = q_t S_t
    # q, k (B, T, K), v (B, T, V), gamma ()

    @staticmethod
    def forward(ctx, q, k, v, gamma):
        B, T, K = q.shape
        S = q.new_zeros(B, K, v.shape[-1])
        states = q.new_empty(T, B, K, v.shape[-1], dtype=torch.bfloat16)
        out = []
        for t in range(T):
            S = gamma * S + k[:, t, :, None] * v[:, t, None, :]
            states[t] = S
            out.append(torch.einsum("bk,bkv->bv", q[:, t], S))
        ctx.save_for_backward(q, k, v, gamma, states)
        return torch.stack(out, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        q, k, v, gamma, states = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        dgamma = torch.zeros_like(gamma)
        dS = 0
        for t in range(q.shape[1] - 1, -1, -1):
            dS = gamma * dS + q[:, t, :, None] * g[:, t, None, :]
            dq[:, t] = torch.einsum("bkv,bv->bk", states[t].to(q.dtype), g[:, t])
            dk[:, t] = torch.einsum("bkv,bv->bk", dS, v[:, t])
            dv[:, t] = torch.einsum("bkv,bk->bv", dS, k[:, t])
            if t > 0:
                dgamma += (dS * states[t - 1]).sum()
        return dq, dk, dv, dgamma
