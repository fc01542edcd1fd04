import torch
from torch.autograd.function import once_differentiable


class _Newmark(torch.autograd.Function):
    @staticmethod
    def march(ground, omega, zeta, dt):
        c, k = 2 * zeta * omega, omega * omega
        den = 1 + c * dt / 2 + k * dt * dt / 4
        u = v = a = torch.zeros_like(omega)
        path = []
        for t in range(ground.size(1)):
            up = u + dt * v + dt * dt / 4 * a
            vp = v + dt / 2 * a
            a = -(ground[:, t] + c * vp + k * up) / den
            u, v = up + dt * dt / 4 * a, vp + dt / 2 * a
            path.append((up, vp, a, u))
        return c, k, den, path

    @staticmethod
    def forward(ctx, ground, omega, zeta, dt):
        ctx.save_for_backward(ground, omega, zeta)
        ctx.dt = dt
        path = _Newmark.march(ground, omega, zeta, dt)[3]
        return torch.stack([p[3] for p in path], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        ground, omega, zeta = ctx.saved_tensors
        dt = ctx.dt
        c, k, den, path = _Newmark.march(ground, omega, zeta, dt)
        lu = lv = la = torch.zeros_like(omega)
        gc, gk = torch.zeros_like(omega), torch.zeros_like(omega)
        g_ground = torch.zeros_like(ground)
        for t in reversed(range(ground.size(1))):
            up, vp, a, _ = path[t]
            lu = lu + g[:, t]
            w = (la + dt * dt / 4 * lu + dt / 2 * lv) / den
            g_ground[:, t] = -w
            gc = gc - w * vp
            gk = gk - w * (up + dt * dt / 4 * a)
            lup, lvp = lu - k * w, lv - c * w
            lu, lv, la = lup, dt * lup + lvp, dt * dt / 4 * lup + dt / 2 * lvp
        return g_ground, gc * 2 * zeta + gk * 2 * omega, gc * 2 * omega, None


def newmark_sdof(ground, omega, zeta, dt=0.02):
    """Relative displacement of oscillators under ground acceleration, average-acceleration Newmark, at rest first.

    ground (B, T), omega (B,) [rad/s], zeta (B,) damping ratio -> (B, T)
    """
    return _Newmark.apply(ground, omega, zeta, dt)
