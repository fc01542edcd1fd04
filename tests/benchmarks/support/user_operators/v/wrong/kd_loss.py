import torch
import torch.nn.functional as F


class DistillKL(torch.autograd.Function):
    """T^2 KL(teacher || student), averaged over the batch (Hinton et al.)."""

    @staticmethod
    def forward(student, teacher, T):
        ls, lt = F.log_softmax(student / T, 1), F.log_softmax(teacher / T, 1)
        return T * T * (lt.exp() * (lt - ls)).sum() / student.size(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        student, teacher, T = inputs
        ctx.T = T
        ctx.save_for_backward(student, teacher)

    @staticmethod
    def backward(ctx, grad):
        student, teacher = ctx.saved_tensors
        T = ctx.T
        ls, lt = F.log_softmax(student / T, 1), F.log_softmax(teacher / T, 1)
        grad = grad * T * T / student.size(0)
        gs = gt = None
        if ctx.needs_input_grad[0]:
            gs = grad * (ls.exp() - lt.exp())
        if ctx.needs_input_grad[1]:
            diff = lt - ls
            gt = grad * lt.exp() * (diff - (lt.exp() * diff).sum(1, keepdim=True))
        return gs, gt, None
