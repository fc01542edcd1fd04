import torch
from torch import Tensor


@torch.library.custom_op("ah_gg_v1::gmm", mutates_args=())
def gmm(a: Tensor, b: Tensor, batch_sizes: Tensor, trans_b: bool = False) -> Tensor:
    parts = a.split(batch_sizes.tolist())
    return torch.cat([x @ (w.mT if trans_b else w) for x, w in zip(parts, b)])


@gmm.register_fake
def _(a, b, batch_sizes, trans_b=False):
    return a.new_empty(a.shape[0], b.shape[1] if trans_b else b.shape[2])


def _setup(ctx, inputs, output):
    a, b, batch_sizes, trans_b = inputs
    ctx.save_for_backward(a, b, batch_sizes)
    ctx.trans_b = trans_b


def _bwd(ctx, grad):
    a, b, batch_sizes = ctx.saved_tensors
    grad = grad.contiguous()
    agrad = bgrad = None
    if ctx.needs_input_grad[0]:
        agrad = gmm(grad, b, batch_sizes, not ctx.trans_b)
    if ctx.needs_input_grad[1]:
        sizes = batch_sizes.tolist()
        lhs, rhs = (grad, a) if ctx.trans_b else (a, grad)
        bgrad = torch.stack([x.mT @ y for x, y in zip(lhs.split(sizes), rhs.split(sizes))])
    return agrad, bgrad, None, None


gmm.register_autograd(_bwd, setup_context=_setup)


def grouped_gemm(a, b, batch_sizes, trans_b=False):
    """a: (sum(batch_sizes), k), b: (groups, k, n) or, with trans_b, (groups, n, k)"""
    assert batch_sizes.dtype == torch.long and batch_sizes.device.type == "cpu"
    assert batch_sizes.numel() == b.shape[0] and int(batch_sizes.sum()) == a.shape[0]
    return gmm(a, b, batch_sizes, trans_b)
