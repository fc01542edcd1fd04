import torch
from torch.autograd.function import once_differentiable


class FusedLinearCrossEntropy(torch.autograd.Function):
    """Cross entropy of ``x @ weight.T`` by chunks, so that the logits never exist at once.

    The gradients are made in forward, as in Liger: x (N, d), weight (V, d), target (N,).
    """

    @staticmethod
    def forward(ctx, x, weight, target, chunk=2):
        n = x.shape[0]
        loss = x.new_zeros(())
        gx, gw = torch.empty_like(x), torch.zeros_like(weight)
        for s in range(0, n, chunk):
            xs, ts = x[s : s + chunk], target[s : s + chunk]
            logp = (xs @ weight.t()).log_softmax(-1)
            loss = loss - logp.gather(1, ts[:, None]).sum() / n
            dl = logp.exp()
            dl[torch.arange(len(ts)), ts] -= 1
            gx[s : s + chunk] = dl @ weight / n
            gw += dl.t() @ xs / n
        ctx.save_for_backward(gx, gw)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        gx, gw = ctx.saved_tensors
        return gx * grad_output, gw, None, None
