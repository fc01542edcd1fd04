import torch


class MPSAmplitude(torch.autograd.Function):
    """Amplitudes of spin configurations under a periodic matrix product state.

    A: (L, 2, D, D), bits: (B, L) of 0/1.  psi(s) = tr(A_1[s_1] ... A_L[s_L])
    """

    @staticmethod
    def forward(ctx, A, bits):
        ctx.save_for_backward(A, bits)
        m = A[0][bits[:, 0]]
        for site in range(1, A.shape[0]):
            m = m @ A[site][bits[:, site]]
        return m.diagonal(dim1=1, dim2=2).sum(1)

    @staticmethod
    def backward(ctx, g):
        A, bits = ctx.saved_tensors
        L, _, D, _ = A.shape
        eye = torch.eye(D, dtype=A.dtype, device=A.device).expand(len(bits), D, D)
        left = [eye]
        for site in range(L - 1):
            left.append(left[-1] @ A[site][bits[:, site]])
        right = eye
        grads = [None] * L
        for site in range(L - 1, -1, -1):
            env = (left[site] @ right).mT * g[:, None, None]
            grads[site] = torch.zeros_like(A[site]).index_add(0, bits[:, site], env)
            right = A[site][bits[:, site]] @ right
        return torch.stack(grads), None
