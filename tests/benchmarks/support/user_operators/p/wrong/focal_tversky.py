import torch


class FocalTverskyLoss(torch.autograd.Function):
    """(1 - TI)^gamma averaged over classes, TI = TP / (TP + alpha FP + beta FN).

    probs: (B, C, *) class probabilities
    labels: (B, *) int64
    """

    @staticmethod
    def forward(ctx, probs, labels, alpha=0.5, beta=0.5, gamma=1.0, smooth=1.0):
        assert not (probs.is_complex()), "real tensors only"
        onehot = torch.nn.functional.one_hot(labels, probs.size(1)).movedim(-1, 1).to(probs.dtype)
        ctx.save_for_backward(probs, onehot)
        ctx.hparams = (alpha, beta, gamma, smooth)
        dims = [0] + list(range(2, probs.dim()))
        tp = (probs * onehot).sum(dims)
        fp = (probs * (1 - onehot)).sum(dims)
        fn = ((1 - probs) * onehot).sum(dims)
        ti = (tp + smooth) / (tp + alpha * fp + beta * fn + smooth)
        return ((1 - ti) ** gamma).mean()

    @staticmethod
    def backward(ctx, grad_output):
        probs, onehot = ctx.saved_tensors
        alpha, beta, gamma, smooth = ctx.hparams
        dims = [0] + list(range(2, probs.dim()))
        tp = (probs * onehot).sum(dims)
        fp = (probs * (1 - onehot)).sum(dims)
        fn = ((1 - probs) * onehot).sum(dims)
        num = tp + smooth
        den = tp + alpha * fp + beta * fn + smooth
        g_ti = -gamma * (1 - num / den) ** (gamma - 1) * grad_output / probs.size(1)
        shape = [1, -1] + [1] * (probs.dim() - 2)
        g_num = (g_ti / den).view(shape)
        g_den = (-g_ti * num / den ** 2).view(shape)
        grad = g_num * onehot + g_den * (onehot + beta * (1 - onehot) - alpha * onehot)
        return grad, None, None, None, None, None
