import torch
from torch import nn


class _DINO(torch.autograd.Function):
    @staticmethod
    def forward(ctx, student, log_temp, teacher, center, teacher_temp):
        ctx.save_for_backward(student, log_temp, teacher)
        ctx.center, ctx.teacher_temp = center.clone(), teacher_temp
        target = torch.softmax((teacher - center) / teacher_temp, -1)
        return -(target * torch.log_softmax(student * torch.exp(-log_temp), -1)).sum(-1).mean()

    @staticmethod
    def backward(ctx, grad):
        student, log_temp, teacher = ctx.saved_tensors
        target = torch.softmax((teacher - ctx.center) / ctx.teacher_temp, -1)
        inv = torch.exp(-log_temp)
        dz = grad / student.size(0) * (torch.softmax(student * inv, -1) - target)
        dlog_temp = -(dz * student * inv).sum().reshape(log_temp.shape)
        return dz * inv, dlog_temp, None, None, None


class DINOLoss(nn.Module):
    """Self-distillation with a centred teacher; student and teacher (B, K) logits.

    The student temperature is trained. The centre is updated by every call in training mode;
    nothing flows to the teacher.
    """

    def __init__(self, out_dim, teacher_temp=0.04, center_momentum=0.9):
        super().__init__()
        self.log_temp = nn.Parameter(torch.tensor(-2.3))
        self.register_buffer("center", torch.zeros(out_dim))
        self.teacher_temp, self.center_momentum = teacher_temp, center_momentum

    def forward(self, student, teacher):
        teacher = teacher.detach()
        loss = _DINO.apply(student, self.log_temp, teacher, self.center, self.teacher_temp)
        if self.training:
            with torch.no_grad():
                self.center.mul_(self.center_momentum).add_(teacher.mean(0), alpha=1 - self.center_momentum)
        return loss
