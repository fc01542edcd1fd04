import torch
import torch.nn.functional as F


class SigLIPLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, txt, t_prime, bias):
        n = img.shape[0]
        sim = img @ txt.t()
        labels = 2 * torch.eye(n, dtype=img.dtype, device=img.device) - 1
        ctx.save_for_backward(img, txt, t_prime, bias)
        return -F.logsigmoid(labels * (sim * t_prime.exp() + bias)).sum() / n

    @staticmethod
    def backward(ctx, grad):
        img, txt, t_prime, bias = ctx.saved_tensors
        n = img.shape[0]
        t = t_prime.exp()
        sim = img @ txt.t()
        labels = 2 * torch.eye(n, dtype=img.dtype, device=img.device) - 1
        gz = -labels * torch.sigmoid(-labels * (sim * t + bias)) * grad / n
        return t * gz @ txt, t * gz.t() @ img, (gz * sim).sum() * t, gz.sum()
