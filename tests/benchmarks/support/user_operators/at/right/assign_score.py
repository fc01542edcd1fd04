import torch
from torch.autograd import Function


class AssignScoreWithK(Function):
    r"""Perform weighted sum to generate output features according to scores (PAConv).

    scores (B, N1, K, M), point_features (B, N0, M, O), center_features (B, N0, M, O),
    knn_idx (B, N1, K), the first neighbour is the centre -> (B, O, N1, K)
    """

    @staticmethod
    def forward(ctx, scores, point_features, center_features, knn_idx):
        ctx.save_for_backward(scores, point_features, center_features, knn_idx)
        bidx = torch.arange(scores.size(0), device=scores.device)[:, None, None]
        diff = point_features[bidx, knn_idx] - center_features[bidx, knn_idx[..., :1]]
        return torch.einsum("bnkm,bnkmo->bonk", scores, diff)

    @staticmethod
    def backward(ctx, grad_out):
        scores, points, centers, knn_idx = ctx.saved_tensors
        B, N1, K, M = scores.size()
        _, N0, _, O = points.size()
        bidx = torch.arange(B, device=scores.device)[:, None, None]
        grad_out = grad_out.contiguous().view(B, O, N1 * K).transpose(1, 2).reshape(B, N1, K, O)
        diff = points[bidx, knn_idx] - centers[bidx, knn_idx[..., :1]]
        grad_scores = torch.einsum("bnko,bnkmo->bnkm", grad_out, diff)
        grad_diff = scores.unsqueeze(-1) * grad_out.unsqueeze(-2)
        offset = torch.arange(B, device=scores.device) * N0
        flat = (knn_idx + offset[:, None, None]).reshape(-1)
        centre = (knn_idx[..., 0] + offset[:, None]).reshape(-1)
        grad_points = grad_diff.new_zeros(B * N0, M, O).index_add(0, flat, grad_diff.reshape(-1, M, O))
        grad_centers = grad_diff.new_zeros(B * N0, M, O).index_add(0, centre, -grad_diff.sum(2).reshape(-1, M, O))
        return grad_scores, grad_points.view(B, N0, M, O), grad_centers.view(B, N0, M, O), None


assign_score_withk = AssignScoreWithK.apply
