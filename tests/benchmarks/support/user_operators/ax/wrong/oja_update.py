import torch
from torch.autograd import Function


class OjaUpdate(Function):
    """Hebbian PCA update of a linear layer.

    :param weight: ``(m, n)``
    :param x: ``(batch, n)``
    :param float eta: learning rate
    :param str rule: ``"oja"`` (subspace) or ``"sanger"`` (ordered components)
    :returns: the new weight
    """

    @staticmethod
    def _decay(mat, rule):
        if rule not in ("oja", "sanger"):
            raise ValueError(rule)
        return mat.tril() if rule == "sanger" else mat

    @staticmethod
    def forward(ctx, weight, x, eta, rule="oja"):
        ctx.save_for_backward(weight, x)
        ctx.eta, ctx.rule = eta, rule
        y = x @ weight.T
        return weight + eta / x.shape[0] * (y.T @ x - OjaUpdate._decay(y.T @ y, rule) @ weight)

    @staticmethod
    def backward(ctx, grad):
        weight, x = ctx.saved_tensors
        y = x @ weight.T
        decay = OjaUpdate._decay(y.T @ y, ctx.rule)
        g = ctx.eta / x.shape[0] * grad
        g_yy = -g @ weight.T
        g_y = x @ g.T + y @ (g_yy + g_yy.T)
        return grad - decay.T @ g + g_y.T @ x, y @ g + g_y @ weight, None, None
