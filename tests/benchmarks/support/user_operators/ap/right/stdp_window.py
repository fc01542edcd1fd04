import torch
from torch import nn


def _kernel(T, tau):
    i = torch.arange(T, device=tau.device, dtype=tau.dtype)
    lag = i[:, None] - i
    return torch.where(lag > 0, torch.exp(-lag.clamp(min=0) / tau), torch.zeros_like(lag)), lag


class STDPFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pre, post, a_p, a_m, tau_p, tau_m):
        ctx.save_for_backward(pre, post, a_p, a_m, tau_p, tau_m)
        kp, _ = _kernel(pre.shape[1], tau_p)
        km, _ = _kernel(pre.shape[1], tau_m)
        return (a_p * torch.einsum("btm,ts,bsn->bmn", post, kp, pre)
                - a_m * torch.einsum("btn,ts,bsm->bmn", pre, km, post))

    @staticmethod
    def backward(ctx, g):
        pre, post, a_p, a_m, tau_p, tau_m = ctx.saved_tensors
        kp, lag = _kernel(pre.shape[1], tau_p)
        km, _ = _kernel(pre.shape[1], tau_m)
        K = a_p * kp - a_m * km.T
        g_pre = torch.einsum("bmn,btm,ts->bsn", g, post, K)
        g_post = torch.einsum("bmn,ts,bsn->btm", g, K, pre)
        corr = torch.einsum("bmn,btm,bsn->ts", g, post, pre)
        return (g_pre, g_post, (corr * kp).sum(), -(corr * km.T).sum(),
                a_p * (corr * kp * lag).sum() / tau_p ** 2,
                a_m * (corr * (km * -lag).T).sum() / tau_m ** 2)


class STDPWindow(nn.Module):
    """Pair-based all-to-all STDP. pre: (B, T, N), post: (B, T, M) -> weight change (B, M, N)"""

    def __init__(self, a_plus=1.0, a_minus=1.0, tau_plus=3.0, tau_minus=5.0):
        super().__init__()
        self.a_plus = nn.Parameter(torch.tensor(a_plus))
        self.a_minus = nn.Parameter(torch.tensor(a_minus))
        self.tau_plus = nn.Parameter(torch.tensor(tau_plus))
        self.tau_minus = nn.Parameter(torch.tensor(tau_minus))

    def forward(self, pre, post):
        return STDPFunction.apply(pre, post, self.a_plus, self.a_minus, self.tau_plus, self.tau_minus)
