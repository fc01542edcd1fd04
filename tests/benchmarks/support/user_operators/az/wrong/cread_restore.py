import torch
from torch.autograd import Function


class CreadRestore(Function):
    """Restores a watch time from the bucket classifiers of CREAD.

    logits: (N, M), logit of "watched longer than edge m"; edges: (M + 1,) ascending.
    Returns (N,).
    """

    @staticmethod
    def forward(ctx, logits, edges):
        if edges.numel() != logits.size(1) + 1:
            raise ValueError(f"{logits.size(1)} buckets need {logits.size(1) + 1} edges, got {edges.numel()}")
        ctx.save_for_backward(logits, edges)
        return edges[0] + torch.sigmoid(logits) @ edges.diff()

    @staticmethod
    def backward(ctx, grad_time):
        logits, edges = ctx.saved_tensors
        p = torch.sigmoid(logits)
        grad_logits = grad_edges = None
        if ctx.needs_input_grad[0]:
            grad_logits = grad_time[:, None] * p * (1 - p) * edges.diff()
        if ctx.needs_input_grad[1]:
            per_width = grad_time @ p
            grad_edges = torch.zeros_like(edges)
            grad_edges[0] += grad_time.sum()
            grad_edges[1:] += per_width
            grad_edges[:-1] = -per_width
        return grad_logits, grad_edges
