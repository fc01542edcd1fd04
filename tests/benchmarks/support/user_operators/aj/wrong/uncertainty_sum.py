import torch


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, log_vars, *losses):
        ctx.save_for_backward(log_vars, *losses)
        means = torch.stack([l.mean() for l in losses])
        return (torch.exp(-log_vars) * means + 0.5 * log_vars).sum()

    @staticmethod
    def backward(ctx, g):
        log_vars, *losses = ctx.saved_tensors
        prec = torch.exp(-log_vars)
        means = torch.stack([l.mean() for l in losses])
        grads = [(g * p).expand(l.shape) for p, l in zip(prec, losses)]
        return (g * (0.5 - prec * means), *grads)


def uncertainty_sum(losses, log_vars):
    """Homoscedastic weighting of a list of task losses of any shapes; log_vars (len(losses),) learned"""
    if len(losses) != log_vars.numel():
        raise ValueError("one log variance per loss")
    return _Weighted.apply(log_vars, *losses)
