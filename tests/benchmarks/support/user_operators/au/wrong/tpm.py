import torch


class _TPM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, counts, length, scale, log):
        ctx.save_for_backward(counts, length)
        ctx.scale, ctx.log = scale, log
        rate = counts / length
        out = scale * rate / rate.sum(-1, keepdim=True)
        return torch.log1p(out) if log else out

    @staticmethod
    def backward(ctx, g):
        counts, length = ctx.saved_tensors
        rate = counts / length
        total = rate.sum(-1, keepdim=True)
        if ctx.log:
            g = g * total / (total + rate)
        g_rate = ctx.scale / total * (g - (g * rate).sum(-1, keepdim=True) / total)
        g_len = -(g_rate * counts / length**2)
        return g_rate / length, g_len.sum_to_size(length.shape), None, None


def tpm(counts, length, scale=1e6, log=False):
    """Transcripts per million. counts (samples, genes) >= 0, effective length (genes,) in kb; log -> log(1 + x)."""
    return _TPM.apply(counts, length, scale, log)
