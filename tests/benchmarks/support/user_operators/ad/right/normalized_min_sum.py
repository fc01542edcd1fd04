import torch


@torch.library.custom_op("ldpc::min_sum", mutates_args=())
def min_sum(llr: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """Normalized min-sum update of a check node, edges in the last dim, beta a learned factor ()."""
    mag = llr.abs()
    two, pos = mag.topk(2, dim=-1, largest=False)
    at_min = torch.arange(llr.shape[-1]) == pos[..., :1]
    m = torch.where(at_min, two[..., 1:], two[..., :1])
    neg = llr < 0
    odd = neg.sum(-1, keepdim=True) - neg.long()
    return beta * m * (1 - 2 * (odd % 2)).to(llr.dtype)


def _ctx(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _bwd(ctx, g):
    llr, beta = ctx.saved_tensors
    two, pos = llr.abs().topk(2, dim=-1, largest=False)
    at_min = torch.arange(llr.shape[-1]) == pos[..., :1]
    neg = llr < 0
    sign = (1 - 2 * ((neg.sum(-1, keepdim=True) - neg.long()) % 2)).to(g.dtype)
    m = torch.where(at_min, two[..., 1:], two[..., :1])
    gs = g * sign
    zero = torch.zeros_like(gs)
    to_first = torch.where(at_min, zero, gs).sum(-1, keepdim=True)
    to_second = torch.where(at_min, gs, zero).sum(-1, keepdim=True)
    gl = zero.scatter(-1, pos, beta * torch.cat([to_first, to_second], -1))
    gl = gl * torch.sign(llr)
    return gl, (gs * m).sum()


min_sum.register_autograd(_bwd, setup_context=_ctx)
