import torch


class HWELogLik(torch.autograd.Function):
    """Log-likelihood of genotype likelihoods under Hardy-Weinberg with inbreeding.

    gl (S, N, 3) likelihoods of 0, 1, 2 alternative alleles; p (S, 1) allele frequency; f () or (N,) inbreeding.
    Returns (S, N).
    """

    @staticmethod
    def forward(ctx, gl, p, f):
        ctx.save_for_backward(gl, p, f)
        q = 1 - p
        lik = gl[..., 0] * (q * q + p * q * f) + gl[..., 1] * 2 * p * q * (1 - f) + gl[..., 2] * (p * p + p * q * f)
        return lik.log()

    @staticmethod
    def backward(ctx, grad):
        gl, p, f = ctx.saved_tensors
        q = 1 - p
        prior = torch.stack([q * q + p * q * f, 2 * p * q * (1 - f), p * p + p * q * f], -1)
        s = (grad / (gl * prior).sum(-1)).unsqueeze(-1)
        d_prior = s * gl
        d_gl = (s * prior).sum_to_size(gl.shape)
        d_p = d_prior[..., 0] * ((1 - 2 * p) * f - 2 * q) + d_prior[..., 1] * 2 * (1 - 2 * p) * (1 - f) \
            + d_prior[..., 2] * (2 * p + (1 - 2 * p) * f)
        d_f = p * q * (d_prior[..., 0] - d_prior[..., 1] + d_prior[..., 2])
        return d_gl, d_p.sum_to_size(p.shape), d_f.sum_to_size(f.shape)
