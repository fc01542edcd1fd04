import torch


class MatrixTree(torch.autograd.Function):
    """Log partition of single-root non-projective dependency trees (Koo et al. 2007).
    arc_scores: b x n x n (head, modifier), the diagonal is ignored; root_scores: b x n"""

    @staticmethod
    def laplacian(A, r):
        lap = torch.diag_embed(A.sum(1)) - A
        return torch.cat([r.unsqueeze(1), lap[:, 1:]], 1)

    @staticmethod
    def forward(ctx, arc_scores, root_scores):
        eye = torch.eye(arc_scores.size(-1), dtype=torch.bool, device=arc_scores.device)
        A = arc_scores.exp().masked_fill(eye, 0)
        ctx.save_for_backward(arc_scores, root_scores)
        return torch.logdet(MatrixTree.laplacian(A, root_scores.exp()))

    @staticmethod
    def backward(ctx, grad_logz):
        arc_scores, root_scores = ctx.saved_tensors
        n = arc_scores.size(-1)
        eye = torch.eye(n, dtype=torch.bool, device=arc_scores.device)
        A = arc_scores.exp().masked_fill(eye, 0)
        r = root_scores.exp()
        inv = torch.inverse(MatrixTree.laplacian(A, r))
        not_first = torch.ones(n, dtype=A.dtype, device=A.device)
        not_first[0] = 0
        diag = torch.diagonal(inv, dim1=-2, dim2=-1) * not_first
        arcs = A * (diag.unsqueeze(1) - inv.transpose(1, 2) * not_first.unsqueeze(1))
        roots = r * inv[:, :, 0]
        return grad_logz.view(-1, 1, 1) * arcs, grad_logz.view(-1, 1) * roots
