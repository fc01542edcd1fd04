import torch


class HSolve(torch.autograd.Function):
    # (A A^H + lam I) x = b
    @staticmethod
    def forward(ctx, A, b, lam):
        assert A.dim() == b.dim() and A.dtype == b.dtype
        eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        x = torch.linalg.solve(A @ A.mH + lam * eye, b)
        ctx.save_for_backward(A, x)
        ctx.lam = lam
        return x

    @staticmethod
    def backward(ctx, gx):
        A, x = ctx.saved_tensors
        eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        gb = torch.linalg.solve(A @ A.mH + ctx.lam * eye, gx)
        gK = -gb @ x.mT
        return (gK + gK.mH) @ A, gb, None
