import torch


class TripletLoss(torch.autograd.Function):
    """mean(relu(|a - p| - |a - n| + margin)), rows are embeddings."""

    @staticmethod
    def forward(ctx, anchor, positive, negative, margin):
        ctx.save_for_backward(anchor, positive, negative)
        ctx.margin = margin
        dp = (anchor - positive).norm(dim=1)
        dn = (anchor - negative).norm(dim=1)
        return torch.relu(dp - dn + margin).mean()

    @staticmethod
    def backward(ctx, grad):
        a, p, n = ctx.saved_tensors
        vp, vn = a - p, a - n
        dp, dn = vp.norm(dim=1, keepdim=True), vn.norm(dim=1, keepdim=True)
        active = (dp - dn + ctx.margin > 0).to(a.dtype) * grad / a.shape[0]
        up, un = active * vp / dp.clamp(min=1e-12), active * vn / dn.clamp(min=1e-12)
        return up - un, -up, un, None
