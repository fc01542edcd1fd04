import torch


class EffDistLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, m, interval):
        """
        Efficient O(N) realization of distortion loss.
        w:        [B, N] volume rendering weight of each point.
        m:        [B, N] midpoint distance to camera of each point, ascending.
        interval: [B, N] the query interval of each point.
        """
        ctx.save_for_backward(w, m, interval)
        wm = w * m
        loss_uni = (1 / 3) * interval * w.pow(2)
        loss_bi = 2 * w * (m * (w.cumsum(-1) - w) - (wm.cumsum(-1) - wm))
        return (loss_bi.sum() + loss_uni.sum()) / w.size(0)

    @staticmethod
    def backward(ctx, grad_back):
        w, m, interval = ctx.saved_tensors
        grad_back = grad_back / w.size(0)
        wm = w * m
        w_prefix = w.cumsum(-1) - w
        wm_prefix = wm.cumsum(-1) - wm
        w_suffix = w.sum(-1, keepdim=True) - w.cumsum(-1)
        wm_suffix = wm.sum(-1, keepdim=True) - wm.cumsum(-1)
        grad_uni = (1 / 3) * interval * 2 * w
        grad_bi = 2 * (m * (w_prefix - w_suffix) + (wm_suffix - wm_prefix))
        grad_m = 2 * w * (w_prefix - w_suffix)
        return grad_back * (grad_uni + grad_bi), grad_back * grad_m, grad_back * w.pow(2) / 3


eff_distloss = EffDistLoss.apply
