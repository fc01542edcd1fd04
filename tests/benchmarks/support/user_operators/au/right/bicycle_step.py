import torch


class BicycleStep(torch.autograd.Function):
    # state (B, 4): x, y, yaw, speed; control (B, 2): steering angle [rad], acceleration
    @staticmethod
    def forward(ctx, state, control, lf, lr, dt):
        ctx.save_for_backward(state, control)
        ctx.geom = lf, lr, dt
        x, y, yaw, v = state.unbind(-1)
        steer, acc = control.unbind(-1)
        beta = torch.atan(lr / (lf + lr) * torch.tan(steer))
        return torch.stack([x + dt * v * torch.cos(yaw + beta), y + dt * v * torch.sin(yaw + beta),
                            yaw + dt * v / lr * torch.sin(beta), v + dt * acc], -1)

    @staticmethod
    def backward(ctx, g):
        state, control = ctx.saved_tensors
        lf, lr, dt = ctx.geom
        yaw, v = state[..., 2], state[..., 3]
        k = lr / (lf + lr)
        tan = torch.tan(control[..., 0])
        beta = torch.atan(k * tan)
        gx, gy, gyaw, gv = g.unbind(-1)
        c, s = torch.cos(yaw + beta), torch.sin(yaw + beta)
        turn = dt * v * (gy * c - gx * s)
        d_beta = turn + gyaw * dt * v / lr * torch.cos(beta)
        d_v = gv + dt * (gx * c + gy * s) + gyaw * dt / lr * torch.sin(beta)
        d_steer = d_beta * k * (1 + tan**2) / (1 + (k * tan) ** 2)
        return torch.stack([gx, gy, gyaw + turn, d_v], -1), torch.stack([d_steer, dt * gv], -1), None, None, None
