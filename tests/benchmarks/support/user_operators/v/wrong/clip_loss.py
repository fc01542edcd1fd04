import torch
import torch.nn.functional as F


class ClipLoss(torch.autograd.Function):
    # img, txt: (N, D) already normalised; scale: exp(logit_scale), 0-d
    @staticmethod
    def forward(ctx, img, txt, scale):
        ctx.save_for_backward(img, txt, scale)
        logits = scale * img @ txt.t()
        lab = torch.arange(len(img), device=img.device)
        return 0.5 * (F.cross_entropy(logits, lab) + F.cross_entropy(logits.t(), lab))

    @staticmethod
    def backward(ctx, g):
        img, txt, scale = ctx.saved_tensors
        n = img.shape[0]
        sim = img @ txt.t()
        logits = scale * sim
        eye = torch.eye(n, dtype=img.dtype, device=img.device)
        d = 0.5 / n * (logits.softmax(1) + logits.t().softmax(1) - 2 * eye) * g
        return scale * d @ txt, scale * d.t() @ img, (d * sim).sum().view_as(scale)
