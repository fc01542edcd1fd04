import torch
import torch.nn.functional as F


class ForgetGateBias(torch.autograd.Function):
    """f: (B, H, T) gate logits -> (B, H, T, T), sum of log sigmoid(f) over j < l <= i, 0 where j > i"""

    @staticmethod
    def forward(ctx, f):
        ctx.save_for_backward(f)
        c = F.logsigmoid(f).cumsum(-1)
        return (c.unsqueeze(-1) - c.unsqueeze(-2)).tril()

    @staticmethod
    def backward(ctx, g):
        f, = ctx.saved_tensors
        gc = g.sum(-1) - g.sum(-2)
        return gc.flip(-1).cumsum(-1).flip(-1) * torch.sigmoid(-f)
