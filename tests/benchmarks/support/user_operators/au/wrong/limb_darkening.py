import torch


class Power2LimbDarkening(torch.autograd.Function):
    """I(r) = 1 - c (1 - mu^alpha), mu = sqrt(1 - r^2); dark beyond the limb.

    r (N,) distance from the disc's centre in stellar radii, c and alpha scalars.
    """

    @staticmethod
    def forward(ctx, r, c, alpha):
        ctx.save_for_backward(r, c, alpha)
        on = r < 1
        mu = torch.sqrt(torch.where(on, 1 - r * r, torch.ones_like(r)))
        return torch.where(on, 1 - c * (1 - mu**alpha), torch.zeros_like(r))

    @staticmethod
    def backward(ctx, grad):
        r, c, alpha = ctx.saved_tensors
        on = r < 1
        mu = torch.sqrt(1 - r * r)
        grad = grad * on
        d_r = -grad * c * alpha * mu ** (alpha - 2) * r
        d_c = (grad * (mu**alpha - 1)).sum()
        d_alpha = (grad * c * mu**alpha * torch.log(mu)).sum()
        return d_r, d_c, d_alpha
