import torch
import torch.nn.functional as F


class _RDrop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, pad):
        ctx.save_for_backward(a, b, pad)
        la, lb = F.log_softmax(a, -1), F.log_softmax(b, -1)
        kl = 0.5 * ((la.exp() - lb.exp()) * (la - lb)).sum(-1)
        return kl.masked_fill(pad, 0).sum()

    @staticmethod
    def backward(ctx, g):
        a, b, pad = ctx.saved_tensors
        la, lb = F.log_softmax(a, -1), F.log_softmax(b, -1)
        p, q, d = la.exp(), lb.exp(), la - lb
        g = 0.5 * g * (~pad).unsqueeze(-1)
        ga = g * (p * (d - (p * d).sum(-1, keepdim=True)) + p - q)
        gb = g * (q * ((p * d).sum(-1, keepdim=True) - d) + q - p)
        return ga, gb, None


def rdrop_loss(a, b, pad=None):
    """Symmetric KL between two passes of a model with dropout.

    a, b: logits (B, T, V); pad: (B, T) bool, True where padded. Sum over tokens.
    """
    if pad is None:
        pad = torch.zeros(a.shape[:-1], dtype=torch.bool, device=a.device)
    return _RDrop.apply(a, b, pad)
