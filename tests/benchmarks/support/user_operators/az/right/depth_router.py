import torch
from torch.autograd import Function


class DepthRouter(Function):
    @staticmethod
    def forward(ctx, stream, block_out, scores, index):
        if index.shape != block_out.shape[:2]:
            raise ValueError("one index per routed token is needed")
        gate = torch.sigmoid(scores.gather(1, index))
        ctx.save_for_backward(block_out, scores, index)
        where = index[..., None].expand_as(block_out)
        return stream.scatter_add(1, where, gate[..., None] * block_out)

    @staticmethod
    def backward(ctx, grad):
        block_out, scores, index = ctx.saved_tensors
        gate = torch.sigmoid(scores.gather(1, index))
        routed = grad.gather(1, index[..., None].expand_as(block_out))
        grad_gate = (routed * block_out).sum(-1) * gate * (1 - gate)
        rows = torch.arange(scores.size(0), device=scores.device)[:, None] * scores.size(1)
        grad_scores = torch.zeros(scores.shape, dtype=scores.dtype, device=scores.device)
        grad_scores.reshape(-1).index_add_(0, (rows + index).reshape(-1), grad_gate.reshape(-1))
        return grad, gate[..., None] * routed, grad_scores, None
