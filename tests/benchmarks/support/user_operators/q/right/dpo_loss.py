import torch
import torch.nn.functional as F


class DPOLoss(torch.autograd.Function):
    """Direct preference optimisation, with conservative label smoothing; all inputs (B,)."""

    @staticmethod
    def forward(ctx, chosen, rejected, ref_chosen, ref_rejected, beta=0.1, label_smoothing=0.0):
        assert chosen.is_floating_point() and chosen.shape == rejected.shape == ref_chosen.shape == ref_rejected.shape
        z = beta * ((chosen - rejected) - (ref_chosen - ref_rejected))
        ctx.save_for_backward(chosen, rejected, ref_chosen, ref_rejected)
        ctx.beta = beta
        ctx.eps = label_smoothing
        loss = -F.logsigmoid(z) * (1 - label_smoothing) - F.logsigmoid(-z) * label_smoothing
        return loss.mean()

    @staticmethod
    def backward(ctx, grad_output):
        chosen, rejected, ref_chosen, ref_rejected = ctx.saved_tensors
        z = ctx.beta * ((chosen - rejected) - (ref_chosen - ref_rejected))
        dz = -torch.sigmoid(-z) * (1 - ctx.eps) + torch.sigmoid(z) * ctx.eps
        g = grad_output * ctx.beta * dz / z.numel()
        return g, -g, -g, g, None, None
