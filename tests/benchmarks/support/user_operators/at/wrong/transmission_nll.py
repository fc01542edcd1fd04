import torch


class TransmissionNLL(torch.autograd.Function):
    """Poisson log-likelihood of transmission CT, without the log y! terms.

    line: line integrals; counts: measured data (no gradient); blank: blank scan;
    background: mean scatter and randoms or None. All of one shape.
    """

    @staticmethod
    def forward(ctx, line, counts, blank, background=None):
        ctx.with_background = background is not None
        ctx.save_for_backward(line, counts, blank, background)
        mean = blank * torch.exp(-line)
        if background is not None:
            mean = mean + background
        return (mean - counts * torch.log(mean)).sum()

    @staticmethod
    def backward(ctx, grad_output):
        line, counts, blank, background = ctx.saved_tensors
        att = torch.exp(-line)
        mean = blank * att
        if ctx.with_background:
            mean = mean + background
        resid = grad_output * (1 - counts / mean)
        return -resid * mean, None, resid * att, resid if ctx.with_background else None
