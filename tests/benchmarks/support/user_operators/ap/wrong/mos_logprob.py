import torch


class MixtureOfSoftmaxes(torch.autograd.Function):
    """Log probability of target under a mixture of softmaxes.

    Parameters
    ----------
    prior : (B, M) mixture logits
    logits : (B, M, V)
    target : (B,) int64
    ignore_index : int, rows with this target give 0
    """

    @staticmethod
    def forward(ctx, prior, logits, target, ignore_index=-100):
        keep = target != ignore_index
        safe = target.masked_fill(~keep, 0)
        ctx.save_for_backward(prior, logits, safe, keep)
        joint = MixtureOfSoftmaxes.joint(prior, logits, safe)
        return joint.logsumexp(-1) * keep

    @staticmethod
    def joint(prior, logits, target):
        idx = target[:, None, None].expand(-1, prior.shape[1], 1)
        return prior.log_softmax(-1) + logits.log_softmax(-1).gather(-1, idx).squeeze(-1)

    @staticmethod
    def backward(ctx, grad):
        prior, logits, target, keep = ctx.saved_tensors
        g = (grad * keep)[:, None]
        resp = MixtureOfSoftmaxes.joint(prior, logits, target).softmax(-1)
        hot = torch.nn.functional.one_hot(target, logits.shape[-1])[:, None, :]
        g_prior = g * (resp - prior.softmax(-1))
        g_logits = (g * resp)[..., None] * (hot - logits.softmax(-1))
        return g_prior, g_logits, None
