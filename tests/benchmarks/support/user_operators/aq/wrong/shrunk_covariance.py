import torch


class ShrunkCov(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, alpha):
        """X (n, p) observations in rows, alpha 0-dim in [0, 1] -> (1 - a) S + a tr(S)/p I"""
        n, p = X.shape
        Xc = X - X.mean(0)
        S = Xc.T @ Xc / n
        ctx.save_for_backward(X, alpha)
        return (1 - alpha) * S + alpha * S.trace() / p * torch.eye(p, dtype=X.dtype, device=X.device)

    @staticmethod
    def backward(ctx, G):
        X, alpha = ctx.saved_tensors
        n, p = X.shape
        eye = torch.eye(p, dtype=X.dtype, device=X.device)
        Xc = X - X.mean(0)
        S = Xc.T @ Xc / n
        GS = (1 - alpha) * G + alpha * G.trace() / p * eye
        g_alpha = (G * (S.trace() / p * eye - S)).sum()
        return Xc @ GS * 2 / n, g_alpha
