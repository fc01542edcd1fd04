import torch
from torch.autograd.function import once_differentiable


class SelectiveScan(torch.autograd.Function):
    """Reference (sequential) scan.

    u, delta (B, L, D); A (D, N); B, C (B, L, N); returns y (B, L, D) and the last state (B, D, N)
    """

    @staticmethod
    def forward(ctx, u, delta, A, B, C):
        h = u.new_zeros(u.shape[0], u.shape[2], A.shape[1])
        hs, ys = [h], []
        for t in range(u.shape[1]):
            dA = torch.exp(delta[:, t, :, None] * A)
            h = dA * h + (delta[:, t] * u[:, t])[..., None] * B[:, t, None, :]
            hs.append(h)
            ys.append((h * C[:, t, None, :]).sum(-1))
        ctx.hs = hs[:-1]
        ctx.save_for_backward(u, delta, A, B, C)
        return torch.stack(ys, 1), h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gy, glast):
        u, delta, A, B, C = ctx.saved_tensors
        hs = ctx.hs
        gu, gd = torch.zeros_like(u), torch.zeros_like(delta)
        gA, gB, gC = torch.zeros_like(A), torch.zeros_like(B), torch.zeros_like(C)
        gh = glast
        for t in reversed(range(u.shape[1])):
            dA = torch.exp(delta[:, t, :, None] * A)
            du = (delta[:, t] * u[:, t])[..., None]
            h = dA * hs[t] + du * B[:, t, None, :]
            gC[:, t] = (gy[:, t, :, None] * h).sum(1)
            gh = gh + gy[:, t, :, None] * C[:, t, None, :]
            gB[:, t] = (gh * du).sum(1)
            gdu = (gh * B[:, t, None, :]).sum(-1)
            gdA = gh * hs[t] * dA
            gd[:, t] = gdu * u[:, t] + (gdA * A).sum(-1)
            gu[:, t] = gdu * delta[:, t]
            gA += (gdA * delta[:, t, :, None]).sum(0)
            gh = gh * dA
        return gu, gd, gA, gB, gC
