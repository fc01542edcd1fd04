import torch


class RidgeHead(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xs, ys, xq, lam):
        gram = xs.t() @ xs + lam * torch.eye(xs.shape[1], dtype=xs.dtype, device=xs.device)
        W = torch.linalg.solve(gram, xs.t() @ ys)
        ctx.save_for_backward(xs, ys, xq, lam)
        return xq @ W

    @staticmethod
    def backward(ctx, g):
        xs, ys, xq, lam = ctx.saved_tensors
        gram = xs.t() @ xs + lam * torch.eye(xs.shape[1], dtype=xs.dtype, device=xs.device)
        W = torch.linalg.solve(gram, xs.t() @ ys)
        M = torch.linalg.solve(gram, xq.t() @ g)
        g_xs = ys @ M.t() - xs @ (M @ W.t() + W @ M.t())
        return g_xs, xs @ M, g @ W.t(), -(M * W).sum()
