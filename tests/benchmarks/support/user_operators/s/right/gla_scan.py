import torch
from torch.autograd.function import once_differentiable


class GatedLinearAttention(torch.autograd.Function):
    """Recurrent form of gated linear attention.

    S_t = diag(a_t) S_{t-1} + k_t v_t^T,   y_t = S_t^T q_t

    q, k, a: (T, dk), v: (T, dv), optional initial state (dk, dv).
    Returns y (T, dv) and the last state; states are recomputed in backward.
    """

    @staticmethod
    def states(k, v, a, state):
        S = k.new_zeros(k.shape[1], v.shape[1]) if state is None else state
        out = [S]
        for t in range(len(k)):
            S = a[t][:, None] * S + torch.outer(k[t], v[t])
            out.append(S)
        return out

    @staticmethod
    def forward(ctx, q, k, v, a, state=None):
        S = GatedLinearAttention.states(k, v, a, state)
        ctx.save_for_backward(q, k, v, a, state)
        return torch.stack([q[t] @ S[t + 1] for t in range(len(q))]), S[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx, gy, gS):
        q, k, v, a, state = ctx.saved_tensors
        S = GatedLinearAttention.states(k, v, a, state)
        gq, gk, gv, ga = (torch.empty_like(t) for t in (q, k, v, a))
        dS = gS
        for t in reversed(range(len(q))):
            dS = dS + torch.outer(q[t], gy[t])
            gq[t] = S[t + 1] @ gy[t]
            gk[t] = dS @ v[t]
            gv[t] = k[t] @ dS
            ga[t] = (dS * S[t]).sum(1)
            dS = a[t][:, None] * dS
        return gq, gk, gv, ga, None if state is None else dS
