import torch


class ScatterMean(torch.autograd.Function):
    """Mean of the rows of ``src`` with the same ``index``: (E, F), (E,) -> (size, F).  Empty rows are 0."""

    @staticmethod
    def forward(ctx, src, index, size):
        out = src.new_zeros(size, src.shape[1]).index_add_(0, index, src)
        count = torch.bincount(index, minlength=size).clamp(min=1).to(src.dtype)
        ctx.save_for_backward(index, count)
        return out / count[:, None]

    @staticmethod
    def backward(ctx, grad):
        index, count = ctx.saved_tensors
        grad_src = grad[index] / count[index][:, None]
        return grad_src, None, None
