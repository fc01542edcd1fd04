import torch


class MultiSimilarityLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, sim_mat, labels, alpha=2.0, beta=50.0, base=0.5):
        # sim_mat: n x n, labels: n
        ctx.save_for_backward(sim_mat, labels)
        ctx.alpha, ctx.beta, ctx.base = alpha, beta, base
        pos, neg = MultiSimilarityLoss.exps(sim_mat, labels, alpha, beta, base)
        loss = torch.log1p(pos.sum(1)) / alpha + torch.log1p(neg.sum(1)) / beta
        return loss.mean()

    @staticmethod
    def exps(sim_mat, labels, alpha, beta, base):
        same = labels[:, None] == labels
        eye = torch.eye(labels.numel(), dtype=torch.bool, device=labels.device)
        pos = torch.exp(-alpha * (sim_mat - base)) * (same & ~eye)
        neg = torch.exp(beta * (sim_mat - base)) * ~same
        return pos, neg

    @staticmethod
    def backward(ctx, grad_output):
        sim_mat, labels = ctx.saved_tensors
        pos, neg = MultiSimilarityLoss.exps(sim_mat, labels, ctx.alpha, ctx.beta, ctx.base)
        grad_sim = neg / (1 + neg.sum(1, keepdim=True)) - pos / (1 + pos.sum(1, keepdim=True))
        return grad_output * grad_sim / labels.numel(), None, None, None, None
