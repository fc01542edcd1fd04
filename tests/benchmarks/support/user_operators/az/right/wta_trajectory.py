import torch
from torch.autograd import Function


class WTATrajectory(Function):
    """Winner-takes-all loss of a multi-modal trajectory head.

    Args:
        modes: (B, K, T, 2) predicted positions.
        logits: (B, K) scores of the modes.
        target: (B, T, 2) driven positions.
        valid: (B, T) bool, False where the agent was not observed; optional.

    The mode with the smallest error is regressed (mean squared distance over the valid steps) and
    is the class of the cross entropy. Returns the batch mean.
    """

    @staticmethod
    def forward(ctx, modes, logits, target, valid=None):
        if valid is None:
            valid = torch.ones_like(target[..., 0], dtype=torch.bool)
        diff = (modes - target[:, None]) * valid[:, None, :, None]
        steps = valid.sum(1).clamp(min=1)
        error = diff.square().sum((2, 3)) / steps[:, None]
        best = error.argmin(1, keepdim=True)
        ctx.save_for_backward(modes, logits, target, valid, best)
        ctx.n_inputs = len(ctx.needs_input_grad)
        nll = -torch.log_softmax(logits, 1).gather(1, best)
        return (error.gather(1, best) + nll).mean()

    @staticmethod
    def backward(ctx, grad):
        modes, logits, target, valid, best = ctx.saved_tensors
        batch = logits.size(0)
        chosen = torch.zeros_like(logits).scatter(1, best, 1.0)
        steps = valid.sum(1).clamp(min=1)
        diff = (modes - target[:, None]) * valid[:, None, :, None]
        grad_modes = grad * 2 / batch * diff * (chosen / steps[:, None])[..., None, None]
        grad_logits = grad / batch * (torch.softmax(logits, 1) - chosen)
        grad_target = -grad_modes.sum(1)
        return (grad_modes, grad_logits, grad_target, None)[: ctx.n_inputs]
