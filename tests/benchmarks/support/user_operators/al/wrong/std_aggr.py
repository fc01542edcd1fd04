# standard deviation aggregator (PNA) over the incoming messages of each node
import torch


def _moments(x, index, dim_size, unbiased):
    count = x.new_zeros(dim_size).index_add(0, index, x.new_ones(index.numel()))
    mean = x.new_zeros(dim_size, x.size(1)).index_add(0, index, x) / count.clamp(min=1).unsqueeze(1)
    dev = x - mean[index]
    dof = (count - 1 if unbiased else count).clamp(min=1).unsqueeze(1)
    var = x.new_zeros(dim_size, x.size(1)).index_add(0, index, dev * dev) / dof
    return dev, dof, var


class ScatterStd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index, dim_size, unbiased=False, eps=1e-5):
        ctx.save_for_backward(x, index)
        ctx.args = (dim_size, unbiased, eps)
        return (_moments(x, index, dim_size, unbiased)[2] + eps).sqrt()

    @staticmethod
    def backward(ctx, grad_out):
        x, index = ctx.saved_tensors
        dim_size, unbiased, eps = ctx.args
        dev, _, var = _moments(x, index, dim_size, unbiased)
        grad_var = grad_out / (2 * (var + eps).sqrt())
        dof = torch.bincount(index, minlength=dim_size).clamp(min=1).unsqueeze(1)
        return 2 * dev * (grad_var / dof)[index], None, None, None, None
