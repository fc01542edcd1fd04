import torch
from torch import Tensor
from torch.autograd import Function


class JSDDistill(Function):
    """Generalised Jensen-Shannon distillation, mean over rows. student, teacher (T, V) logits.

    beta 0 is KL(teacher || student), beta 1 is KL(student || teacher), between them
    beta KL(teacher || m) + (1 - beta) KL(student || m), m = beta teacher + (1 - beta) student.
    """

    @staticmethod
    def forward(ctx, student: Tensor, teacher: Tensor, beta: float) -> Tensor:
        ctx.beta = beta
        ctx.save_for_backward(student, teacher)
        ls, lt = student.log_softmax(-1), teacher.log_softmax(-1)
        ps, pt = ls.exp(), lt.exp()
        if beta == 0:
            loss = pt * (lt - ls)
        elif beta == 1:
            loss = ps * (ls - lt)
        else:
            lm = (beta * pt + (1 - beta) * ps).log()
            loss = beta * pt * (lt - lm) + (1 - beta) * ps * (ls - lm)
        return loss.sum() / student.size(0)

    @staticmethod
    def backward(ctx, g: Tensor):
        student, teacher = ctx.saved_tensors
        beta = ctx.beta
        ls, lt = student.log_softmax(-1), teacher.log_softmax(-1)
        ps, pt = ls.exp(), lt.exp()
        g = g / student.size(0)
        if beta == 0:
            a = lt - ls
            return g * (ps - pt), g * pt * (a - (pt * a).sum(-1, keepdim=True)), None
        if beta == 1:
            a = ls - lt
            return g * ps * (a - (ps * a).sum(-1, keepdim=True)), g * (pt - ps), None
        lm = (beta * pt + (1 - beta) * ps).log()
        a, b = (1 - beta) * (ls - lm), beta * (lt - lm)
        ds = ps * (a - (ps * a).sum(-1, keepdim=True))
        dt = pt * (b - (pt * b).sum(-1, keepdim=True))
        return g * ds, g * dt, None
