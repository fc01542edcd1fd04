import torch
from torch.autograd.function import once_differentiable


def delay(v):
    return torch.cat([torch.zeros_like(v[:, :1]), v[:, :-1]], 1)


def advance(v):
    return torch.cat([v[:, 1:], torch.zeros_like(v[:, :1])], 1)


class LatticeFIR(torch.autograd.Function):
    """All-zero lattice.  x (B, T), k (p,).  Gives the forward prediction error of the last stage."""

    @staticmethod
    def forward(ctx, x, k):
        f, b = x, x
        tape = []
        for km in k.unbind():
            db = delay(b)
            tape += [f, db]
            f, b = f + km * db, km * f + db
        ctx.save_for_backward(k, *tape)
        return f

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        k, *tape = ctx.saved_tensors
        gf, gb = grad, torch.zeros_like(grad)
        gk = torch.zeros_like(k)
        for m in reversed(range(len(k))):
            f, db = tape[2 * m], tape[2 * m + 1]
            gk[m] = (gf * db + gb * f).sum()
            gf, gb = gf + k[m] * gb, delay(k[m] * gf + gb)
        return gf + gb, gk
