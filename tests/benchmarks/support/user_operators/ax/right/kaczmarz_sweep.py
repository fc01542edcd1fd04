import torch


class KaczmarzSweep(torch.autograd.Function):
    """Sweeps of the algebraic reconstruction technique over all rays in order.

    x (n,), A (m, n) without zero rows, b (m,), relax a float in (0, 2), sweeps an int.
    """

    @staticmethod
    def forward(ctx, x, A, b, relax=1.0, sweeps=1):
        ctx.save_for_backward(x, A, b)
        ctx.relax, ctx.sweeps = relax, sweeps
        for _ in range(sweeps):
            for a, v in zip(A, b):
                x = x + relax * (v - a @ x) / (a @ a) * a
        return x

    @staticmethod
    def backward(ctx, grad):
        x, A, b = ctx.saved_tensors
        relax, m = ctx.relax, A.shape[0]
        iterates = []
        for _ in range(ctx.sweeps):
            for a, v in zip(A, b):
                iterates.append(x)
                x = x + relax * (v - a @ x) / (a @ a) * a
        g_A = [torch.zeros_like(a) for a in A]
        g_b = [torch.zeros_like(v) for v in b]
        g = grad
        for step in range(len(iterates) - 1, -1, -1):
            i, x = step % m, iterates[step]
            a, n2 = A[i], A[i] @ A[i]
            res = b[i] - a @ x
            c = relax * (g @ a) / n2
            g_A[i] = g_A[i] + relax * res / n2 * g - c * x - 2 * c * res / n2 * a
            g_b[i] = g_b[i] + c
            g = g - c * a
        return g, torch.stack(g_A), torch.stack(g_b), None, None
