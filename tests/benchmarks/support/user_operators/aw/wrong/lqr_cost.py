import torch


class LQRCost(torch.autograd.Function):
    @staticmethod
    def _states(x0, u, A, B):
        xs = [x0]
        for t in range(u.shape[1]):
            xs.append(xs[-1] @ A.T + u[:, t] @ B.T)
        return xs

    @staticmethod
    def forward(ctx, x0, u, A, B, Q, R, Qf):
        ctx.save_for_backward(x0, u, A, B, Q, R, Qf)
        xs = LQRCost._states(x0, u, A, B)
        run = torch.stack(xs[:-1], 1)
        cost = ((run @ Q) * run).sum((1, 2)) + ((u @ R) * u).sum((1, 2))
        return cost + ((xs[-1] @ Qf) * xs[-1]).sum(1)

    @staticmethod
    def backward(ctx, g):
        x0, u, A, B, Q, R, Qf = ctx.saved_tensors
        xs = LQRCost._states(x0, u, A, B)
        w = g[:, None]
        lam = w * (xs[-1] @ (Qf + Qf.T))
        gA, gB, gQ = torch.zeros_like(A), torch.zeros_like(B), torch.zeros_like(Q)
        gu = []
        for t in reversed(range(u.shape[1])):
            x, ut = xs[t], u[:, t]
            gu.append(w * (ut @ (R + R.T)) + lam @ B)
            gA = gA + lam.T @ x
            gB = gB + lam.T @ ut
            gQ = gQ + (w * x).T @ x
            lam = w * (x @ Q) * 2 + lam @ A
        gR = torch.einsum("b,bti,btj->ij", g, u, u)
        gQf = (w * xs[-1]).T @ xs[-1]
        return lam, torch.stack(gu[::-1], 1), gA, gB, gQ, gR, gQf


def lqr_cost(x0, u, A, B, Q, R, Qf=None):
    return LQRCost.apply(x0, u, A, B, Q, R, Q if Qf is None else Qf)
