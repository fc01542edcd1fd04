import torch


class _ScaledResidual(torch.autograd.Function):
    # x, branch: (B, ..., D); gamma: (D,); keep: (B,) or None
    @staticmethod
    def forward(ctx, x, branch, gamma, keep, keep_prob):
        factor = None
        if keep is not None:
            factor = keep.to(x.dtype).div(keep_prob).view(-1, *[1] * (x.dim() - 1))
        ctx.save_for_backward(branch, gamma, factor)
        out = branch * gamma
        if factor is not None:
            out = out * factor
        return x + out

    @staticmethod
    def backward(ctx, g):
        branch, gamma, factor = ctx.saved_tensors
        scaled = g if factor is None else g * factor
        g_branch = g_gamma = None
        if ctx.needs_input_grad[1]:
            g_branch = scaled * gamma
        if ctx.needs_input_grad[2]:
            g_gamma = (scaled * branch).flatten(0, -2).sum(0)
        return g, g_branch, g_gamma, None


def residual_layerscale(x, branch, gamma, keep=None, drop_path=0.0):
    """x + gamma * drop_path(branch), with the samples to keep drawn by the caller."""
    if keep is None:
        return _ScaledResidual.apply(x, branch, gamma, None, 1.0)
    return _ScaledResidual.apply(x, branch, gamma, keep, 1.0 - drop_path)
