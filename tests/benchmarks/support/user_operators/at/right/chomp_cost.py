import torch


class ObstacleCost(torch.autograd.Function):
    # traj: (B, T, D), sdf: (B, T) signed distances of the waypoints  ->  (B,)
    @staticmethod
    def hinge(sdf, eps):
        c = torch.where(sdf < 0, eps / 2 - sdf, (sdf - eps) ** 2 / (2 * eps))
        return torch.where(sdf < eps, c, torch.zeros_like(c))

    @staticmethod
    def forward(ctx, traj, sdf, eps=0.5, eta=1e-2):
        ctx.save_for_backward(traj, sdf)
        ctx.eps, ctx.eta = eps, eta
        speed = torch.sqrt((traj[:, 1:] - traj[:, :-1]).pow(2).sum(-1) + eta ** 2)
        return (ObstacleCost.hinge(sdf[:, :-1], eps) * speed).mean(1)

    @staticmethod
    def backward(ctx, grad):
        traj, sdf = ctx.saved_tensors
        eps, eta = ctx.eps, ctx.eta
        step = traj[:, 1:] - traj[:, :-1]
        speed = torch.sqrt(step.pow(2).sum(-1) + eta ** 2)
        d = sdf[:, :-1]
        g = grad.unsqueeze(1) / step.size(1)
        slope = torch.where(d < 0, torch.full_like(d, -1.0), (d - eps) / eps)
        slope = torch.where(d < eps, slope, torch.zeros_like(d))
        g_sdf = torch.cat([g * slope * speed, torch.zeros_like(d[:, :1])], 1)
        g_step = (g * ObstacleCost.hinge(d, eps) / speed).unsqueeze(-1) * step
        zero = torch.zeros_like(traj[:, :1])
        g_traj = torch.cat([zero, g_step], 1) - torch.cat([g_step, zero], 1)
        return g_traj, g_sdf, None, None
