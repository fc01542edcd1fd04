import torch
import torch.nn.functional as F


class CausalDynamicConv(torch.autograd.Function):
    """Causal convolution whose kernel is predicted for every step.

    x: (B, C, T), kernel: (B, K, T) with the current step's tap last, dilation: spacing of the taps.
    """

    @staticmethod
    def forward(ctx, x, kernel, dilation=1):
        assert not (x.is_complex() or kernel.is_complex()), "real tensors only"
        T, K = x.shape[-1], kernel.shape[1]
        padded = F.pad(x, ((K - 1) * dilation, 0))
        out = torch.zeros_like(x)
        for k in range(K):
            out = out + kernel[:, k:k + 1] * padded[..., k * dilation:k * dilation + T]
        ctx.save_for_backward(x, kernel)
        ctx.dilation = dilation
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, kernel = ctx.saved_tensors
        T, K, dilation = x.shape[-1], kernel.shape[1], ctx.dilation
        padded = F.pad(x, ((K - 1) * dilation, 0))
        grad_x = torch.zeros_like(x)
        grad_k = []
        for k in range(K):
            lag = (K - 1 - k) * dilation
            grad_k.append((grad_out * padded[..., k * dilation:k * dilation + T]).sum(1))
            grad_x = grad_x + F.pad(grad_out * kernel[:, k:k + 1], (0, lag))[..., lag:]
        return grad_x, torch.stack(grad_k, 1), None
