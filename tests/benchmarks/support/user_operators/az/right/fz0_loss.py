import torch
from torch.autograd import Function


class FZ0Loss(Function):
    """Fissler-Ziegel loss (FZ0) of a joint VaR and expected shortfall forecast.

    var, es: (N,), es negative; pnl: (N,), the realised return, which may itself come from a
    portfolio being optimised; alpha: tail level. Returns (N,).
    """

    @staticmethod
    def forward(ctx, var: torch.Tensor, es: torch.Tensor, pnl: torch.Tensor, alpha: float) -> torch.Tensor:
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must lie in (0, 1), not {alpha}")
        if (es >= 0).any():
            raise ValueError("expected shortfall must be negative")
        ctx.save_for_backward(var, es, pnl)
        ctx.alpha = alpha
        shortfall = (var - pnl).clamp(min=0)
        return -shortfall / (alpha * es) + var / es + torch.log(-es) - 1

    @staticmethod
    def backward(ctx, grad):
        var, es, pnl = ctx.saved_tensors
        hit = (pnl <= var).to(grad.dtype)
        tail = grad * hit / (ctx.alpha * es)
        grad_var = grad / es - tail
        grad_es = tail * (var - pnl) / es + grad * (es - var) / es**2
        grad_pnl = tail if ctx.needs_input_grad[2] else None
        return grad_var, grad_es, grad_pnl, None
