import torch
import torch.nn.functional as F


class DistillKL(torch.autograd.Function):
    """T^2 KL(teacher_T || student_T), averaged over the batch.  Both sides may be trained
    (mutual learning).  weight: optional (N,) sample weights, constants."""

    @staticmethod
    def forward(ctx, student, teacher, T=4.0, weight=None):
        assert student.shape == teacher.shape and student.dim() == 2
        assert T > 0
        ctx.save_for_backward(student, teacher, weight)
        ctx.T = T
        ls, lt = F.log_softmax(student / T, 1), F.log_softmax(teacher / T, 1)
        kl = (lt.exp() * (lt - ls)).sum(1)
        if weight is not None:
            kl = kl * weight
        return T * T * kl.mean()

    @staticmethod
    def backward(ctx, grad_output):
        student, teacher, weight = ctx.saved_tensors
        T = ctx.T
        ls, lt = F.log_softmax(student / T, 1), F.log_softmax(teacher / T, 1)
        ps, pt = ls.exp(), lt.exp()
        scale = grad_output * T / student.shape[0]
        if weight is not None:
            scale = scale * weight[:, None]
        grad_student = grad_teacher = None
        if ctx.needs_input_grad[0]:
            grad_student = scale * (ps - pt)
        if ctx.needs_input_grad[1]:
            diff = lt - ls
            grad_teacher = scale * pt * (diff - (pt * diff).sum(1, keepdim=True))
        return grad_student, grad_teacher, None, None
