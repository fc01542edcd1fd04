import torch
import torch.nn.functional as F


class NegBinomialLogProb(torch.autograd.Function):
    """counts (no gradient), total_count r > 0, logits, all of one shape (e.g. scVI's decoder)."""

    @staticmethod
    def forward(counts, r, logits):
        log_norm = torch.lgamma(counts + r) - torch.lgamma(counts + 1) - torch.lgamma(r)
        return log_norm + r * F.logsigmoid(-logits) + counts * F.logsigmoid(logits)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        k, r, logits = ctx.saved_tensors
        gr = torch.digamma(k + r) - torch.digamma(r) + F.logsigmoid(-logits)
        gl = k - (k + r) * torch.sigmoid(logits)
        return None, grad * gr, grad * gl
