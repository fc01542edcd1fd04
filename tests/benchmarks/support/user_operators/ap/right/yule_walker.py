import torch


def _lags(p, device):
    i = torch.arange(p, device=device)
    return (i[:, None] - i).abs()


class YuleWalker(torch.autograd.Function):
    """AR(p) coefficients and innovation variance from autocovariances r: (B, p + 1)."""

    @staticmethod
    def forward(ctx, r):
        p = r.shape[1] - 1
        R = r[:, _lags(p, r.device)]
        a = torch.linalg.solve(R, r[:, 1:])
        ctx.save_for_backward(r, a)
        return a, r[:, 0] - (a * r[:, 1:]).sum(1)

    @staticmethod
    def backward(ctx, ga, gs):
        r, a = ctx.saved_tensors
        p = a.shape[1]
        lags = _lags(p, r.device)
        gs = gs[:, None]
        v = torch.linalg.solve(r[:, lags], ga - gs * r[:, 1:])
        outer = v.unsqueeze(2) * a.unsqueeze(1)
        head = torch.zeros_like(r[:, :p]).index_add(1, lags.reshape(-1), -outer.flatten(1))
        tail = v - gs * a
        return torch.cat([gs + head[:, :1], head[:, 1:] + tail[:, :-1], tail[:, -1:]], 1)
