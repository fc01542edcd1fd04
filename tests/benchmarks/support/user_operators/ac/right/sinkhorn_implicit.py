import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _SinkhornPlan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cost, a, b, eps, max_iter, tol):
        f = torch.zeros_like(a)
        g = torch.zeros_like(b)
        log_a, log_b = a.log(), b.log()
        for _ in range(max_iter):
            f = eps * (log_a - torch.logsumexp((g[None, :] - cost) / eps, dim=1))
            g = eps * (log_b - torch.logsumexp((f[:, None] - cost) / eps, dim=0))
            plan = torch.exp((f[:, None] + g[None, :] - cost) / eps)
            if (plan.sum(1) - a).abs().max() < tol:
                break
        ctx.save_for_backward(plan)
        ctx.eps = eps
        return plan

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        # implicit function theorem on the two marginal constraints, last dual fixed to 0
        plan, = ctx.saved_tensors
        n, m = plan.shape
        gp = grad * plan
        top = torch.cat([torch.diag(plan.sum(1)), plan], dim=1)
        bottom = torch.cat([plan.t(), torch.diag(plan.sum(0))], dim=1)
        M = torch.cat([top, bottom])[:-1, :-1]
        rhs = torch.cat([gp.sum(1), gp.sum(0)])[:-1]
        sol = torch.linalg.solve(M, rhs)
        x = sol[:n]
        y = torch.cat([sol[n:], sol.new_zeros(1)])
        g_cost = (plan * (x[:, None] + y[None, :]) - gp) / ctx.eps
        return g_cost, x, y, None, None, None


class SinkhornPlan(nn.Module):
    """Entropic transport plan with learnable source masses and uniform target masses.

    forward(cost): (n, m) -> plan (n, m)
    """

    def __init__(self, n, eps=0.1, max_iter=2000, tol=1e-13):
        super().__init__()
        self.a_logits = nn.Parameter(torch.linspace(-0.5, 0.5, n))
        self.eps, self.max_iter, self.tol = eps, max_iter, tol

    def forward(self, cost):
        a = torch.softmax(self.a_logits, 0)
        b = torch.full_like(cost[0], 1.0 / cost.shape[1])
        return _SinkhornPlan.apply(cost, a, b, self.eps, self.max_iter, self.tol)
