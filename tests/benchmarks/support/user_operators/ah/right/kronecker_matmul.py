import torch


class KroneckerMatmul(torch.autograd.Function):
    """``(A kron B) @ X`` without building the product.

    A is ``(n, m)``, B is ``(p, q)``, X is ``(m * q, k)`` or ``(m * q,)``.
    """

    @staticmethod
    def forward(ctx, A, B, X):
        if X.shape[0] != A.shape[1] * B.shape[1]:
            raise ValueError(f"X needs {A.shape[1] * B.shape[1]} rows, not {X.shape[0]}")
        ctx.save_for_backward(A, B, X)
        x = X.reshape(A.shape[1], B.shape[1], -1)
        return torch.einsum("ij,pq,jqk->ipk", A, B, x).reshape(A.shape[0] * B.shape[0], *X.shape[1:])

    @staticmethod
    def backward(ctx, G):
        A, B, X = ctx.saved_tensors
        x = X.reshape(A.shape[1], B.shape[1], -1)
        g = G.reshape(A.shape[0], B.shape[0], -1)
        dA = dB = dX = None
        if ctx.needs_input_grad[0]:
            dA = torch.einsum("ipk,pq,jqk->ij", g, B, x)
        if ctx.needs_input_grad[1]:
            dB = torch.einsum("ipk,ij,jqk->pq", g, A, x)
        if ctx.needs_input_grad[2]:
            dX = torch.einsum("ij,pq,ipk->jqk", A, B, g).reshape(X.shape)
        return dA, dB, dX
