import torch
import torch.nn.functional as F


class Involution(torch.autograd.Function):
    # x (B, C, H, W), kernel (B, G, K*K, H, W), C divisible by G
    @staticmethod
    def forward(ctx, x, kernel, K):
        ctx.save_for_backward(x, kernel)
        ctx.K = K
        B, C, H, W = x.shape
        G = kernel.shape[1]
        cols = F.unfold(x, K, padding=K // 2).reshape(B, G, C // G, K * K, H, W)
        return (kernel.unsqueeze(2) * cols).sum(3).reshape(B, C, H, W)

    @staticmethod
    def backward(ctx, g):
        x, kernel = ctx.saved_tensors
        K = ctx.K
        B, C, H, W = x.shape
        G = kernel.shape[1]
        cols = F.unfold(x, K, padding=K // 2).reshape(B, G, C // G, K * K, H, W)
        g = g.reshape(B, G, C // G, 1, H, W)
        g_cols = (g * kernel.unsqueeze(2)).reshape(B, C * K * K, H * W)
        return F.fold(g_cols, (H, W), K, padding=K // 2), (g * cols).sum(2), None
