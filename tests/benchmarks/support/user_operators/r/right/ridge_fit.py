import torch


class Ridge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, y, lam):
        H = X.mT @ X + lam * torch.eye(X.shape[-1], dtype=X.dtype)
        w = torch.linalg.solve(H, X.mT @ y.unsqueeze(-1)).squeeze(-1)
        ctx.save_for_backward(X, y, lam, w)
        return w

    @staticmethod
    def backward(ctx, gw):
        X, y, lam, w = ctx.saved_tensors
        H = X.mT @ X + lam * torch.eye(X.shape[-1], dtype=X.dtype)
        v = torch.linalg.solve(H, gw.unsqueeze(-1)).squeeze(-1)
        Xv = (X @ v.unsqueeze(-1)).squeeze(-1)
        r = y - (X @ w.unsqueeze(-1)).squeeze(-1)
        gX = r.unsqueeze(-1) * v.unsqueeze(-2) - Xv.unsqueeze(-1) * w.unsqueeze(-2)
        glam = -(v * w).sum()
        return gX, Xv, glam


def ridge(X, y, *, lam):
    return Ridge.apply(X, y, torch.as_tensor(lam, dtype=X.dtype))
