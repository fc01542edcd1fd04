import torch
from torch.autograd.function import once_differentiable


class DeltaRule(torch.autograd.Function):
    """DeltaNet, one head: S += beta_t (v_t - S k_t) k_t^T, y_t = S q_t, from S = 0."""

    @staticmethod
    def forward(ctx, q, k, v, beta):
        S = q.new_zeros(v.shape[-1], k.shape[-1])
        states, errors, ys = [], [], []
        for t in range(q.shape[0]):
            states.append(S)
            e = v[t] - S @ k[t]
            errors.append(e)
            S = S + beta[t] * torch.outer(e, k[t])
            ys.append(S @ q[t])
        states.append(S)
        ctx.save_for_backward(q, k, beta, torch.stack(states), torch.stack(errors))
        return torch.stack(ys)

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        q, k, beta, states, errors = ctx.saved_tensors
        gq, gk, gbeta = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(beta)
        gv = torch.zeros_like(errors)
        dS = torch.zeros_like(states[0])
        for t in range(q.shape[0] - 1, -1, -1):
            gq[t] = states[t + 1].t() @ gy[t]
            dS = dS + torch.outer(gy[t], q[t])
            u = dS @ k[t]
            gbeta[t] = u @ errors[t]
            de = beta[t] * u
            gv[t] = de
            gk[t] = beta[t] * dS.t() @ errors[t] - states[t].t() @ de
            dS = dS - torch.outer(de, k[t])
        return gq, gk, gv, gbeta
