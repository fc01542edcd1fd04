import torch


class VariableDiffusion(torch.autograd.Function):
    """d/dx (k du/dx) on a uniform 1-D grid, finite volumes.

    u, k: (B, X) cell values; bc: "neumann" (no flux through the ends) or "periodic".
    """

    @staticmethod
    def forward(ctx, u, k, dx=1.0, bc="neumann"):
        if u.is_complex() or k.is_complex():
            raise TypeError("complex inputs are not supported")
        if u.shape != k.shape:
            raise ValueError("u and k differ in shape")
        if bc not in ("neumann", "periodic"):
            raise ValueError(f"unknown boundary condition {bc!r}")
        ctx.save_for_backward(u, k)
        ctx.dx, ctx.bc = dx, bc
        # face i lies between cells i and i + 1
        flux = 0.5 * (k + k.roll(-1, -1)) * (u.roll(-1, -1) - u) / dx
        if bc == "neumann":
            flux = torch.cat([flux[:, :-1], torch.zeros_like(flux[:, -1:])], -1)
        return (flux - flux.roll(1, -1)) / dx

    @staticmethod
    def backward(ctx, g):
        u, k = ctx.saved_tensors
        dx = ctx.dx
        gflux = (g - g.roll(-1, -1)) / dx
        gflux = torch.cat([gflux[:, :-1], torch.zeros_like(gflux[:, -1:])], -1)
        gdu = gflux * 0.5 * (k + k.roll(-1, -1)) / dx
        gu = gdu.roll(1, -1) - gdu
        gk = gflux * 0.5 * (u.roll(-1, -1) - u) / dx
        gk = gk + gk.roll(1, -1)
        return gu, gk, None, None
