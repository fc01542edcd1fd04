import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class DropoutAddLayerNormFn(torch.autograd.Function):
    """
    residual' = rowscale * colscale * mask / keep * x0 + residual
    out = layer_norm(residual')

    Args:
        x0: (..., hidden)
        residual: (..., hidden) or None
        gamma, beta: (hidden,), beta may be None
        rowscale: (...) or None, constant
        colscale: (hidden,) or None
        dropout_mask: bool (..., hidden) of the kept elements, or None
        keep: probability of keeping an element
        epsilon: float
        prenorm: also return residual'
    """

    @staticmethod
    def forward(ctx, x0, residual, gamma, beta, rowscale=None, colscale=None, dropout_mask=None, keep=1.0,
                epsilon=1e-5, prenorm=False):
        assert x0.shape[-1] == gamma.shape[0], "hidden size mismatch"
        factor = torch.ones_like(x0)
        if dropout_mask is not None:
            factor = factor * dropout_mask / keep
        if rowscale is not None:
            factor = factor * rowscale.unsqueeze(-1)
        x = x0 * factor
        if colscale is not None:
            x = x * colscale
        if residual is not None:
            x = x + residual
        mu = x.mean(-1, keepdim=True)
        rsigma = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + epsilon)
        xhat = (x - mu) * rsigma
        z = xhat * gamma
        if beta is not None:
            z = z + beta
        ctx.save_for_backward(x0, factor, colscale, xhat, rsigma, gamma)
        ctx.has_residual, ctx.has_beta, ctx.prenorm = residual is not None, beta is not None, prenorm
        return (z, x.clone()) if prenorm else z

    @staticmethod
    @once_differentiable
    def backward(ctx, dz: Tensor, *args):
        x0, factor, colscale, xhat, rsigma, gamma = ctx.saved_tensors
        dims = tuple(range(dz.dim() - 1))
        dxhat = dz * gamma
        dx = rsigma * (dxhat - dxhat.mean(-1, keepdim=True) - xhat * (dxhat * xhat).mean(-1, keepdim=True))
        if ctx.prenorm:
            dx = dx + args[0]
        dx0 = dx * factor
        dcolscale = None
        if colscale is not None:
            dcolscale = (dx * x0).sum(dims)
            dx0 = dx0 * colscale
        dgamma = (dz * xhat).sum(dims)
        dbeta = dz.sum(dims) if ctx.has_beta else None
        dresidual = dx if ctx.has_residual else None
        return dx0, dresidual, dgamma, dbeta, None, dcolscale, None, None, None, None
