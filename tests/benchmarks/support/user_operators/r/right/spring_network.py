import torch


def _stiffness(k, edges, n, fixed):
    """dense stiffness matrix with the rows of the fixed nodes replaced by the identity"""
    i, j = edges
    K = k.new_zeros(n * n)
    for r, c, s in ((i, i, k), (j, j, k), (i, j, -k), (j, i, -k)):
        K = K.index_add(0, r * n + c, s)
    K = K.reshape(n, n)
    free = (~fixed).to(k.dtype)
    return K * free[:, None] * free[None] + torch.diag(1 - free)


class SpringNetwork(torch.autograd.Function):
    """
    Displacements of a network of springs under loads, K(k) u = f.

    k     : (E,) spring constants, positive
    f     : (n,) loads
    edges : (2, E) int64
    fixed : (n,) bool, nodes held at zero; every node must be connected to one of them
    """

    @staticmethod
    def forward(ctx, k, f, edges, fixed):
        if edges.dtype != torch.int64 or edges.shape[0] != 2:
            raise TypeError("edges must be (2, E) int64")
        u = torch.linalg.solve(_stiffness(k, edges, len(f), fixed), f.masked_fill(fixed, 0))
        ctx.save_for_backward(k, u, edges, fixed)
        return u

    @staticmethod
    def backward(ctx, gu):
        k, u, edges, fixed = ctx.saved_tensors
        i, j = edges
        # K is symmetric
        lam = torch.linalg.solve(_stiffness(k, edges, len(u), fixed), gu.masked_fill(fixed, 0))
        gk = -(lam[i] - lam[j]) * (u[i] - u[j])
        return gk, lam, None, None
