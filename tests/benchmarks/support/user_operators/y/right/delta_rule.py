import torch
from torch.autograd.function import once_differentiable


class DeltaRule(torch.autograd.Function):
    """Recurrent DeltaNet: S_t = S_{t-1} + beta_t (v_t - S_{t-1} k_t) k_t^T, o_t = S_t q_t.

    q, k: (B, T, K), v: (B, T, V), beta: (B, T)
    """

    @staticmethod
    def forward(ctx, q, k, v, beta):
        S = q.new_zeros(q.shape[0], v.shape[2], q.shape[2])
        states, out = [S], []
        for t in range(q.shape[1]):
            err = v[:, t] - torch.einsum("bvk,bk->bv", S, k[:, t])
            S = S + torch.einsum("b,bv,bk->bvk", beta[:, t], err, k[:, t])
            states.append(S)
            out.append(torch.einsum("bvk,bk->bv", S, q[:, t]))
        ctx.save_for_backward(q, k, v, beta, torch.stack(states, 1))
        return torch.stack(out, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v, beta, states = ctx.saved_tensors
        dq, dk, dv, dbeta = (torch.zeros_like(x) for x in (q, k, v, beta))
        dS = torch.zeros_like(states[:, 0])
        for t in range(q.shape[1] - 1, -1, -1):
            S, prev, kt, bt = states[:, t + 1], states[:, t], k[:, t], beta[:, t, None]
            dq[:, t] = torch.einsum("bvk,bv->bk", S, do[:, t])
            dS = dS + torch.einsum("bv,bk->bvk", do[:, t], q[:, t])
            err = v[:, t] - torch.einsum("bvk,bk->bv", prev, kt)
            dSk = torch.einsum("bvk,bk->bv", dS, kt)
            derr = bt * dSk
            dbeta[:, t] = (err * dSk).sum(-1)
            dv[:, t] = derr
            dk[:, t] = bt * torch.einsum("bvk,bv->bk", dS, err) - torch.einsum("bvk,bv->bk", prev, derr)
            dS = dS - torch.einsum("bv,bk->bvk", derr, kt)
        return dq, dk, dv, dbeta
