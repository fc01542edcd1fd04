import torch
import torch.nn.functional as F


class SelectiveScanRef(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        """
        u: (B, D, L)
        delta: (B, D, L)
        A: (D, N)
        B, C: (B, N, L)
        D: (D,) or None
        z: (B, D, L) or None
        delta_bias: (D,) or None

        out: (B, D, L)
        """
        dt = delta if delta_bias is None else delta + delta_bias[:, None]
        if delta_softplus:
            dt = F.softplus(dt)
        h = u.new_zeros(u.shape[0], u.shape[1], A.shape[1])
        hs, ys = [], []
        for i in range(u.shape[2]):
            h = torch.exp(dt[:, :, i, None] * A) * h + (dt * u)[:, :, i, None] * B[:, None, :, i]
            hs.append(h)
            ys.append((h * C[:, None, :, i]).sum(-1))
        y = torch.stack(ys, 2)
        if D is not None:
            y = y + u * D[:, None]
        ctx.delta_softplus = delta_softplus
        ctx.save_for_backward(u, delta, A, B, C, D, z, delta_bias, torch.stack(hs, 2), y)
        return y if z is None else y * F.silu(z)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout):
        u, delta, A, B, C, D, z, delta_bias, hs, y = ctx.saved_tensors
        raw = delta if delta_bias is None else delta + delta_bias[:, None]
        dt = F.softplus(raw) if ctx.delta_softplus else raw
        dz = None
        if z is not None:
            sig = torch.sigmoid(z)
            dz = dout * y * sig * (1 + z * (1 - sig))
            dout = dout * z * sig
        dD = None
        du = torch.zeros_like(u)
        if D is not None:
            dD = (dout * u).sum((0, 2))
            du = du + dout * D[:, None]
        ddt = torch.zeros_like(delta)
        dA, dB, dC = torch.zeros_like(A), torch.zeros_like(B), torch.zeros_like(C)
        dh = torch.zeros_like(hs[:, :, 0])
        for i in range(u.shape[2] - 1, -1, -1):
            dh = dh + dout[:, :, i, None] * C[:, None, :, i]
            dC[:, :, i] = (dout[:, :, i, None] * hs[:, :, i]).sum(1)
            prev = hs[:, :, i - 1] if i > 0 else torch.zeros_like(dh)
            decay = torch.exp(dt[:, :, i, None] * A)
            dlog = dh * prev * decay
            dA += (dlog * dt[:, :, i, None]).sum(0)
            dBu = (dh * B[:, None, :, i]).sum(-1)
            ddt[:, :, i] = (dlog * A).sum(-1) + dBu * u[:, :, i]
            du[:, :, i] += dBu * dt[:, :, i]
            dB[:, :, i] = (dh * (dt * u)[:, :, i, None]).sum(1)
            dh = dh * decay
        if ctx.delta_softplus:
            ddt = ddt * torch.sigmoid(raw)
        dbias = None if delta_bias is None else ddt.sum((0, 2))
        return du, ddt, dA, dB, dC, dD, dz, dbias, None


def selective_scan_fn(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    return SelectiveScanRef.apply(u, delta, A, B, C, D, z, delta_bias, delta_softplus)
