import torch


def _apply(x, w, i, j, reg):
    flux = w.unsqueeze(1) * (x[i] - x[j])
    y = reg * x
    y.index_add_(0, i, flux)
    y.index_add_(0, j, -flux)
    return y


def _cg(b, w, i, j, reg, tol, maxiter):
    x = torch.zeros_like(b)
    r = b.clone()
    p = r.clone()
    rs = (r * r).sum(0)
    for _ in range(maxiter):
        if rs.max().sqrt() < tol:
            break
        Ap = _apply(p, w, i, j, reg)
        a = rs / (p * Ap).sum(0).clamp(min=1e-300)
        x = x + a * p
        r = r - a * Ap
        new = (r * r).sum(0)
        p = r + new / rs.clamp(min=1e-300) * p
        rs = new
    return x


class LaplacianSolve(torch.autograd.Function):
    """Solve (reg I + L(w)) x = b on a graph by conjugate gradients.

    b (V, K) several right-hand sides, w (E,) conductances, edges (2, E), reg a float > 0
    """

    @staticmethod
    def forward(ctx, b, w, edges, reg=0.1, tol=1e-14, maxiter=200):
        i, j = edges
        x = _cg(b, w, i, j, reg, tol, maxiter)
        ctx.save_for_backward(x, w, edges)
        ctx.conf = reg, tol, maxiter
        return x

    @staticmethod
    def backward(ctx, gx):
        x, w, edges = ctx.saved_tensors
        i, j = edges
        lam = _cg(gx, w, i, j, *ctx.conf)
        gw = None
        if ctx.needs_input_grad[1]:
            gw = -((lam[i] - lam[j]) * (x[i] - x[j])).sum(1)
        return lam, gw, None, None, None, None
