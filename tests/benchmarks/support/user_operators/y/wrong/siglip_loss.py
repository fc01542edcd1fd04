import torch
import torch.nn as nn
import torch.nn.functional as F


class _SigmoidPairLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, txt, t, b):
        ctx.save_for_backward(img, txt, t, b)
        y = 2 * torch.eye(img.shape[0], dtype=img.dtype, device=img.device) - 1
        return -F.logsigmoid(y * (t.exp() * img @ txt.t() + b)).sum() / img.shape[0]

    @staticmethod
    def backward(ctx, g):
        img, txt, t, b = ctx.saved_tensors
        y = 2 * torch.eye(img.shape[0], dtype=img.dtype, device=img.device) - 1
        sim = img @ txt.t()
        scale = t.exp()
        dz = -g * y * torch.sigmoid(-y * (scale * sim + b)) / img.shape[0]
        return scale * dz @ txt, scale * dz.t() @ img, (dz * sim).sum(), dz.sum()


class SigLipLoss(nn.Module):
    """Sigmoid loss for language-image pretraining with learned log-temperature and bias."""

    def __init__(self, init_t=1.0, init_b=-2.0, normalize=True):
        super().__init__()
        self.t = nn.Parameter(torch.tensor(init_t))
        self.b = nn.Parameter(torch.tensor(init_b))
        self.normalize = normalize

    def forward(self, img, txt):
        if self.normalize:
            img, txt = F.normalize(img, dim=-1), F.normalize(txt, dim=-1)
        return _SigmoidPairLoss.apply(img, txt, self.t, self.b)
