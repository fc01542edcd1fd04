import torch
import torch.nn.functional as F


class DistillKL(torch.autograd.Function):
    """T^2 * KL(teacher || student) averaged over the unmasked tokens.

    student, teacher: (B, S, V) logits, mask: (B, S).  No gradient for the teacher.
    """

    @staticmethod
    def forward(ctx, student, teacher, mask, T):
        ls = F.log_softmax(student / T, dim=-1)
        lt = F.log_softmax(teacher / T, dim=-1)
        kl = (lt.exp() * (lt - ls)).sum(-1)
        mask = mask.to(student.dtype)
        ctx.save_for_backward(student, teacher, mask)
        ctx.T = T
        return T * T * (kl * mask).sum() / mask.sum()

    @staticmethod
    def backward(ctx, grad_output):
        student, teacher, mask = ctx.saved_tensors
        T = ctx.T
        p = torch.softmax(student.float() / T, dim=-1)
        q = torch.softmax(teacher.float() / T, dim=-1)
        w = (mask / mask.sum()).unsqueeze(-1)
        return grad_output * T * (p - q) * w, None, None, None
