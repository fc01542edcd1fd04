import torch


class PendulumVerlet(torch.autograd.Function):
    @staticmethod
    def forward(q, p, dt):
        half = p - 0.5 * dt * torch.sin(q)
        q1 = q + dt * half
        return q1, half - 0.5 * dt * torch.sin(q1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, p, ctx.dt = inputs
        ctx.save_for_backward(q, p)

    @staticmethod
    def backward(ctx, gq, gp):
        q, p = ctx.saved_tensors
        dt = ctx.dt
        q1 = q + dt * (p - 0.5 * dt * torch.sin(q))
        gq1 = gq - 0.5 * dt * torch.cos(q) * gp
        ghalf = gp + dt * gq1
        return gq1 - 0.5 * dt * torch.cos(q) * ghalf, ghalf, None
