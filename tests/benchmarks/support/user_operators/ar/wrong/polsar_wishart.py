import torch


class WishartDistance(torch.autograd.Function):
    """log|det S_k| + Re tr(S_k^-1 C_p) for covariances C (P, n, n) and class centres S (K, n, n) -> (P, K)"""

    @staticmethod
    def forward(ctx, C, S):
        Si = torch.linalg.inv(S)
        ctx.save_for_backward(C, S)
        logdet = torch.linalg.slogdet(S).logabsdet
        return logdet[None] + torch.einsum("kab,pba->pk", Si, C).real

    @staticmethod
    def backward(ctx, g):
        C, S = ctx.saved_tensors
        Si = torch.linalg.inv(S)
        gc = g.to(C.dtype)
        grad_C = torch.einsum("pk,kab->pab", gc, Si.mT)
        M = Si @ torch.einsum("pk,pab->kab", gc, C) @ Si
        grad_S = gc.sum(0)[:, None, None] * Si.mH - M.mH
        return grad_C, grad_S
