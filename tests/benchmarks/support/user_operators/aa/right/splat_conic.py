import torch


class Cov2DToConic(torch.autograd.Function):
    """Screen-space covariance (xx, xy, yy) of each Gaussian to the conic (inverse) and pixel radius.

    A low-pass of ``blur`` is added to the diagonal first, as in EWA splatting.
    cov: (N, 3) -> conic (N, 3), radius (N,) int, not differentiable
    """

    @staticmethod
    def forward(ctx, cov, blur=0.3):
        ctx.save_for_backward(cov)
        ctx.blur = blur
        a, b, c = cov[:, 0] + blur, cov[:, 1], cov[:, 2] + blur
        det = a * c - b * b
        mid = 0.5 * (a + c)
        radius = torch.ceil(3 * torch.sqrt(mid + torch.sqrt((mid * mid - det).clamp(min=0.1)))).int()
        ctx.mark_non_differentiable(radius)
        return torch.stack([c, -b, a], 1) / det[:, None], radius

    @staticmethod
    def backward(ctx, g, _g_radius):
        (cov,) = ctx.saved_tensors
        a, b, c = cov[:, 0] + ctx.blur, cov[:, 1], cov[:, 2] + ctx.blur
        det = a * c - b * b
        gA, gB, gC = g.unbind(1)
        inv2 = 1 / det ** 2
        ga = (-c * c * gA + b * c * gB - b * b * gC) * inv2
        gc = (-b * b * gA + a * b * gB - a * a * gC) * inv2
        gb = (2 * b * c * gA - (det + 2 * b * b) * gB + 2 * a * b * gC) * inv2
        return torch.stack([ga, gb, gc], 1), None
