import torch


class EnsembleCRPS(torch.autograd.Function):
    """CRPS of an ensemble forecast, kernel form.

    CRPS = 1/M sum_i |x_i - y| - 1/(2 M^2) sum_ij |x_i - x_j|

    with M (M - 1) in place of M^2 in the second term for the *fair* estimator.
    ens: (M, ...) members in the first axis; obs: (...). Result has the shape of obs.
    """

    @staticmethod
    def forward(ens, obs, fair=False):
        m = ens.shape[0]
        skill = (ens - obs).abs().mean(0)
        order = ens.sort(dim=0).values
        rank = torch.arange(m, device=ens.device, dtype=ens.dtype).view(-1, *[1] * obs.dim())
        pair = 2 * ((2 * rank - m + 1) * order).sum(0)
        norm = m * (m - 1) if fair else m * m
        return skill - pair / (2 * norm)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ens, obs, fair = inputs
        ctx.save_for_backward(ens, obs)
        ctx.fair = fair

    @staticmethod
    def backward(ctx, grad_out):
        ens, obs = ctx.saved_tensors
        m = ens.shape[0]
        s = torch.sign(ens - obs) / m
        rank = ens.argsort(dim=0).argsort(dim=0).to(ens.dtype)
        norm = m * (m - 1) if ctx.fair else m * m
        spread = (2 * rank - m + 1) / norm
        return grad_out * (s - spread), -grad_out * s.sum(0), None
