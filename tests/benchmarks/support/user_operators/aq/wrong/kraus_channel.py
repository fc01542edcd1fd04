import torch
from torch.autograd import Function


def dag(M):
    return M.mH


class KrausMap(Function):
    @staticmethod
    def forward(ctx, rho, *ops):
        ctx.save_for_backward(rho, *ops)
        out = torch.zeros_like(rho)
        for K in ops:
            out = out + K @ rho @ dag(K)
        return out

    @staticmethod
    def backward(ctx, G):
        rho, *ops = ctx.saved_tensors
        g_rho = sum(K @ G @ dag(K) for K in ops) if ctx.needs_input_grad[0] else None
        g_ops = []
        for i, K in enumerate(ops):
            if ctx.needs_input_grad[i + 1]:
                g_ops.append(G @ K @ dag(rho) + dag(G) @ K @ rho)
            else:
                g_ops.append(None)
        return (g_rho, *g_ops)


def kraus_channel(rho, ops):
    """sum_k K_k rho K_k^dagger for a list of complex (d, d) operators. rho need not be Hermitian."""
    return KrausMap.apply(rho, *ops)
