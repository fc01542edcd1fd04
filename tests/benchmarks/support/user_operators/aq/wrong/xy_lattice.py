import torch

class XYEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, theta, J):
        # theta (B, H, W) periodic both ways, J scalar coupling
        ctx.save_for_backward(theta, J)
        e = torch.cos(theta - theta.roll(-1, 1)) + torch.cos(theta - theta.roll(-1, 2))
        return -J * e.sum((1, 2))

    @staticmethod
    def backward(ctx, g):
        theta, J = ctx.saved_tensors
        tot = torch.zeros_like(theta)
        for dim in (1, 2):
            for step in (-1,):
                tot = tot + torch.sin(theta - theta.roll(step, dim))
        e = torch.cos(theta - theta.roll(-1, 1)) + torch.cos(theta - theta.roll(-1, 2))
        return g[:, None, None] * J * tot, -(g * e.sum((1, 2))).sum()
