import torch


class DPPLogLik(torch.autograd.Function):
    # L = V V^T, V (N, D); items: distinct indices of the observed set, at most D
    @staticmethod
    def forward(V, items):
        S = V[items]
        eye = torch.eye(V.shape[1], dtype=V.dtype, device=V.device)
        return torch.logdet(S @ S.T) - torch.logdet(eye + V.T @ V)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        V, items = ctx.saved_tensors
        S = V[items]
        eye = torch.eye(V.shape[1], dtype=V.dtype, device=V.device)
        chosen = torch.linalg.solve(S @ S.T, S)
        norm = torch.linalg.solve(V.T @ V, V.T).T
        return 2 * grad * (torch.zeros_like(V).index_add(0, items, chosen) - norm), None
