"""Geometry operators on meshes, points, curves and rotations."""

import math

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class VertexNormals(Function):
    """Area-weighted normals at the vertices of a batch of meshes with shared faces.

    vertices: (batch, count, 3); faces: (faces, 3) integer. With ``unit`` the normals have
    length one, and a vertex without area gets zero with a zero gradient.
    """

    @staticmethod
    def _faces(vertices, faces):
        batch, count, _ = vertices.shape
        shift = torch.arange(batch, device=faces.device).view(-1, 1, 1) * count
        corner = (faces + shift).reshape(-1, 3)
        flat = vertices.reshape(-1, 3)
        base = flat[corner[:, 0]]
        e1, e2 = flat[corner[:, 1]] - base, flat[corner[:, 2]] - base
        area = torch.linalg.cross(e1, e2)
        total = torch.zeros_like(flat)
        for c in range(3):
            total = total.index_add(0, corner[:, c], area)
        return corner, e1, e2, total

    @staticmethod
    def forward(ctx, vertices, faces, unit=True):
        if vertices.dim() != 3 or vertices.shape[2] != 3 or faces.shape[1] != 3:
            raise ValueError("vertices must be (batch, count, 3) and faces (faces, 3)")
        _, _, _, total = VertexNormals._faces(vertices, faces)
        if unit:
            length = total.norm(dim=1, keepdim=True)
            total = total / length.masked_fill(length == 0, 1.0)
        ctx.save_for_backward(vertices, faces)
        ctx.unit = unit
        return total.view(vertices.shape)

    @staticmethod
    def backward(ctx, grad):
        vertices, faces = ctx.saved_tensors
        corner, e1, e2, total = VertexNormals._faces(vertices, faces)
        grad = grad.view(-1, 3)
        if ctx.unit:
            square = total.square().sum(1, keepdim=True)
            some = square > 0
            length = torch.where(some, square, torch.ones_like(square)).sqrt()
            normal = total / length
            grad = (grad - normal * (grad * normal).sum(1, keepdim=True)) / length * some
        d_area = grad[corner].sum(1)
        d1, d2 = torch.linalg.cross(e2, d_area), torch.linalg.cross(d_area, e1)
        out = torch.zeros_like(total)
        for c, part in enumerate((-d1 - d2, d1, d2)):
            out = out.index_add(0, corner[:, c], part)
        return out.view(vertices.shape), None, None


class RodriguesMatrix(Function):
    """Rotation matrices (..., 3, 3) from rotation vectors (..., 3), smooth at zero."""

    @staticmethod
    def _series(x, first, step):
        out = torch.zeros_like(x)
        for k in range(11, -1, -1):
            out = out * x + first(k) * (-1) ** k / math.factorial(2 * k + step)
        return out

    @staticmethod
    def _values(x):
        small = x < 1.0
        safe = torch.where(small, torch.ones_like(x), x)
        angle = safe.sqrt()
        near = torch.where(small, x, torch.zeros_like(x))
        series = RodriguesMatrix._series
        a = torch.where(small, series(near, lambda k: 1, 1), angle.sin() / angle)
        b = torch.where(small, series(near, lambda k: 1, 2), (1 - angle.cos()) / safe)
        return a, b

    @staticmethod
    def _slopes(x):
        angle = x.sqrt()
        a = (angle.cos() - angle.sin() / angle) / (2 * x)
        b = (angle.sin() / angle - 2 * (1 - angle.cos()) / x) / (2 * x)
        return a, b

    @staticmethod
    def _skew(v):
        x, y, z = v.unbind(-1)
        o = torch.zeros_like(x)
        return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).view(*v.shape, 3)

    @staticmethod
    def forward(ctx, vector):
        if vector.shape[-1] != 3:
            raise ValueError("rotation vectors have three entries")
        x = vector.square().sum(-1)[..., None, None]
        a, b = RodriguesMatrix._values(x)
        eye = torch.eye(3, dtype=vector.dtype, device=vector.device)
        outer = vector.unsqueeze(-1) * vector.unsqueeze(-2)
        ctx.save_for_backward(vector)
        return eye + a * RodriguesMatrix._skew(vector) + b * (outer - x * eye)

    @staticmethod
    def backward(ctx, grad):
        (vector,) = ctx.saved_tensors
        x = vector.square().sum(-1, keepdim=True)
        a, b = RodriguesMatrix._values(x)
        da, db = RodriguesMatrix._slopes(x)
        turn = torch.stack(
            [
                grad[..., 2, 1] - grad[..., 1, 2],
                grad[..., 0, 2] - grad[..., 2, 0],
                grad[..., 1, 0] - grad[..., 0, 1],
            ],
            -1,
        )
        trace = grad.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
        both = ((grad + grad.mT) @ vector.unsqueeze(-1)).squeeze(-1)
        on_skew = (turn * vector).sum(-1, keepdim=True)
        on_square = 0.5 * (both * vector).sum(-1, keepdim=True) - x * trace
        out = a * turn + b * (both - 2 * trace * vector)
        return out + 2 * vector * (da * on_skew + db * on_square)


class RigidAlign(Function):
    """Proper rotation and shift that best carry source points to target points.

    source, target: (points, 3); weights: (points,) or None. Returns the rotation (3, 3)
    and the shift (3,) with ``target ~ source @ rotation.T + shift``. Mirrored clouds are
    allowed. Differentiable once.
    """

    @staticmethod
    def forward(ctx, source, target, weights=None):
        if source.shape != target.shape or source.dim() != 2 or source.shape[1] != 3:
            raise ValueError("source and target must be (points, 3)")
        w = torch.ones_like(source[:, 0]) if weights is None else weights
        w = (w / w.sum()).unsqueeze(1)
        cs, ct = (w * source).sum(0), (w * target).sum(0)
        moment = (w * (target - ct)).t() @ (source - cs)
        left, size, right = torch.linalg.svd(moment)
        side = torch.ones_like(size)
        side[2] = torch.sign(torch.linalg.det(left) * torch.linalg.det(right))
        rotation = (left * side) @ right
        if float(size[1] + side[2] * size[2]) <= 1e-12 * float(size[0]):
            raise ValueError("the points do not fix a rotation")
        shift = ct - rotation @ cs
        ctx.save_for_backward(source, target, weights, rotation, size, right)
        return rotation, shift

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_rotation, grad_shift):
        source, target, weights, rotation, size, right = ctx.saved_tensors
        w = torch.ones_like(source[:, 0]) if weights is None else weights
        total = w.sum()
        w = (w / total).unsqueeze(1)
        cs, ct = (w * source).sum(0), (w * target).sum(0)
        s, t = source - cs, target - ct
        grad_rotation = grad_rotation - torch.outer(grad_shift, cs)
        pair = size.unsqueeze(0) + size.unsqueeze(1)
        pair.fill_diagonal_(1.0)
        inner = right @ rotation.t() @ grad_rotation @ right.t() / pair
        inner = right.t() @ inner @ right
        d_moment = rotation @ (inner - inner.t())
        d_cs = -rotation.t() @ grad_shift
        need = ctx.needs_input_grad
        d_source = w * (t @ d_moment + d_cs) if need[0] else None
        d_target = w * (s @ d_moment.t() + grad_shift) if need[1] else None
        d_weights = None
        if weights is not None and need[2]:
            pull = (t * (s @ d_moment.t())).sum(1) + t @ grad_shift + s @ d_cs
            d_weights = (pull - (w.squeeze(1) * pull).sum()) / total
        return d_source, d_target, d_weights


class PolygonMoments(Function):
    """Signed area (batch,) and centroid (batch, 2) of closed polygons (batch, corners, 2)."""

    @staticmethod
    def forward(vertices):
        if vertices.dim() != 3 or vertices.shape[1] < 3 or vertices.shape[2] != 2:
            raise ValueError("polygons must be (batch, corners, 2) with three corners or more")
        after = vertices.roll(-1, 1)
        cross = vertices[..., 0] * after[..., 1] - after[..., 0] * vertices[..., 1]
        area = 0.5 * cross.sum(1)
        if bool((area == 0).any()):
            raise ValueError("a polygon without area has no centroid")
        centroid = ((vertices + after) * cross.unsqueeze(2)).sum(1) / (6 * area).unsqueeze(1)
        return area, centroid

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, *output)

    @staticmethod
    def backward(ctx, grad_area, grad_centroid):
        vertices, area, centroid = ctx.saved_tensors
        after = vertices.roll(-1, 1)
        cross = vertices[..., 0] * after[..., 1] - after[..., 0] * vertices[..., 1]
        pull = grad_centroid / (6 * area).unsqueeze(1)
        g_area = grad_area - (grad_centroid * centroid).sum(1) / area
        g_cross = 0.5 * g_area.unsqueeze(1) + ((vertices + after) * pull.unsqueeze(1)).sum(2)
        before, g_before = vertices.roll(1, 1), g_cross.roll(1, 1)
        weight = cross + cross.roll(1, 1)
        out = torch.empty(vertices.shape, device=vertices.device)
        out[..., 0] = g_cross * after[..., 1] - g_before * before[..., 1]
        out[..., 1] = g_before * before[..., 0] - g_cross * after[..., 0]
        return out + weight.unsqueeze(2) * pull.unsqueeze(1)


class TrimmedChamfer(Function):
    """Symmetric nearest-neighbour distance of two clouds with far pairs cut off.

    a: (n, dim), b: (m, dim). Squared distances above ``trim ** 2`` count as ``trim ** 2``.
    Returns the loss and, without gradient, the nearest index each way.
    """

    @staticmethod
    def forward(ctx, a, b, trim=math.inf, reduction="mean"):
        if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[1]:
            raise ValueError("clouds must be (points, dim) with one dim")
        if reduction not in ("mean", "sum"):
            raise ValueError("reduction must be mean or sum")
        with torch.no_grad():
            square = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(2)
            to_b, near_b = square.min(1)
            to_a, near_a = square.min(0)
        ctx.trim_sq = trim * trim
        ctx.scale = (1 / len(a), 1 / len(b)) if reduction == "mean" else (1.0, 1.0)
        ctx.save_for_backward(a, b, near_b, near_a)
        ctx.mark_non_differentiable(near_b, near_a)
        loss = ctx.scale[0] * to_b.clamp(max=ctx.trim_sq).sum()
        return loss + ctx.scale[1] * to_a.clamp(max=ctx.trim_sq).sum(), near_b, near_a

    @staticmethod
    def backward(ctx, grad, _b, _a):
        a, b, near_b, near_a = ctx.saved_tensors
        gap_a, gap_b = a - b[near_b], b - a[near_a]
        within_a = gap_a.square().sum(1, keepdim=True) <= ctx.trim_sq
        pull_a = 2 * grad * ctx.scale[0] * gap_a * within_a
        pull_b = 2 * grad * ctx.scale[1] * gap_b
        d_a = d_b = None
        if ctx.needs_input_grad[0]:
            d_a = pull_a.index_add(0, near_a, -pull_b)
        if ctx.needs_input_grad[1]:
            d_b = pull_b.index_add(0, near_b, -pull_a)
        return d_a, d_b, None, None


class SegmentDistance(Function):
    @staticmethod
    def _nearest(points, start, end):
        along = end - start
        square = along.square().sum(-1, keepdim=True)
        safe = torch.where(square > 0, square, torch.ones_like(square))
        t = (((points - start) * along).sum(-1, keepdim=True) / safe).clamp(0.0, 1.0)
        return t, points - (start + t * along)

    @staticmethod
    def forward(ctx, points, start, end, squared=False):
        if points.shape != start.shape or points.shape != end.shape:
            raise ValueError("points, start and end must have one shape")
        _, gap = SegmentDistance._nearest(points, start, end)
        out = gap.square().sum(-1)
        ctx.save_for_backward(points, start, end)
        ctx.squared = squared
        return out if squared else out.sqrt()

    @staticmethod
    def backward(ctx, grad):
        points, start, end = ctx.saved_tensors
        t, gap = SegmentDistance._nearest(points, start, end)
        grad = grad.unsqueeze(-1)
        if ctx.squared:
            pull = 2 * grad * gap
        else:
            square = gap.square().sum(-1, keepdim=True)
            off = square > 0
            length = torch.where(off, square, torch.ones_like(square)).sqrt()
            pull = grad * off * gap / length
        need = ctx.needs_input_grad
        return (
            pull if need[0] else None,
            -t * pull if need[1] else None,
            -(1 - t) * pull if need[2] else None,
            None,
        )


class ShortSlerp(Function):
    """Interpolates unit quaternions (..., 4) along the shorter arc at t (...)."""

    @staticmethod
    def _blend(t: Tensor, c: Tensor):
        """Weight sin(t a) / sin(a) with cos(a) = c, and its slopes in c and in t."""
        near = c > 0.9
        x = torch.where(near, 0.5 * (1 - c), torch.zeros_like(c))
        factor, factor_t, power = torch.ones_like(t), torch.zeros_like(t), torch.ones_like(c)
        tail = torch.zeros_like(t * c)
        value, value_x, value_t = tail + 1, tail, tail
        for k in range(1, 16):
            factor_t = factor_t * (k * k - t * t) - 2 * t * factor
            factor = factor * (k * k - t * t)
            scale = 1.0 / (math.gamma(k + 1.5) / math.gamma(1.5) * math.factorial(k))
            value_x = value_x + scale * k * factor * power
            power = power * x
            value = value + scale * factor * power
            value_t = value_t + scale * factor_t * power
        angle = torch.acos(torch.where(near, torch.zeros_like(c), c))
        sine = angle.sin()
        far = torch.sin(t * angle) / sine
        far_c = (far * angle.cos() - t * torch.cos(t * angle)) / sine**2
        far_t = angle * torch.cos(t * angle) / sine
        return (
            torch.where(near, t * value, far),
            torch.where(near, -0.5 * t * value_x, far_c),
            torch.where(near, value + t * value_t, far_t),
        )

    @staticmethod
    def forward(ctx, q0: Tensor, q1: Tensor, t: Tensor) -> Tensor:
        if q0.shape != q1.shape or q0.shape[-1] != 4 or t.shape != q0.shape[:-1]:
            raise ValueError("quaternions must be (..., 4) and t (...)")
        ctx.save_for_backward(q0, q1, t)
        c = (q0 * q1).sum(-1, keepdim=True)
        side = torch.where(c < 0, -1.0, 1.0).to(q0.dtype)
        t = t.unsqueeze(-1)
        w0 = ShortSlerp._blend(1 - t, side * c)[0]
        w1 = ShortSlerp._blend(t, side * c)[0]
        return w0 * q0 + w1 * side * q1

    @staticmethod
    def backward(ctx, grad):
        q0, q1, t = ctx.saved_tensors
        c = (q0 * q1).sum(-1, keepdim=True)
        side = torch.where(c < 0, -1.0, 1.0).to(q0.dtype)
        t = t.unsqueeze(-1)
        w0, w0_c, w0_t = ShortSlerp._blend(1 - t, side * c)
        w1, w1_c, w1_t = ShortSlerp._blend(t, side * c)
        on0 = (grad * q0).sum(-1, keepdim=True)
        on1 = side * (grad * q1).sum(-1, keepdim=True)
        d_c = w0_c * on0 + w1_c * on1
        d_q0 = w0 * grad + side * d_c * q1 if ctx.needs_input_grad[0] else None
        d_q1 = w1 * side * grad + d_c * q0 if ctx.needs_input_grad[1] else None
        d_t = (w1_t * on1 - w0_t * on0).squeeze(-1) if ctx.needs_input_grad[2] else None
        return d_q0, d_q1, d_t


class RationalBezier(Function):
    """Points of a Bezier curve with one positive weight per control point, or none."""

    @staticmethod
    def _basis(params, order):
        rows = [torch.ones_like(params)]
        for _ in range(order):
            up = [(1 - params) * rows[0]]
            up += [(1 - params) * rows[i] + params * rows[i - 1] for i in range(1, len(rows))]
            rows = up + [params * rows[-1]]
        return torch.stack(rows, 1)

    @staticmethod
    def _slope(params, order):
        if order == 0:
            return torch.zeros_like(params).unsqueeze(1)
        lower = RationalBezier._basis(params, order - 1)
        edge = torch.zeros_like(lower[:, :1])
        return order * (torch.cat([edge, lower], 1) - torch.cat([lower, edge], 1))

    @staticmethod
    def _shares(control, params, weights):
        basis = RationalBezier._basis(params, len(control) - 1)
        if weights is None:
            return basis, torch.ones_like(params).unsqueeze(1)
        mass = (basis @ weights).unsqueeze(1)
        return basis * weights / mass, mass

    @staticmethod
    def forward(control, params, weights=None):
        if control.dim() != 2 or params.dim() != 1:
            raise ValueError("control must be (points, dim) and params a vector")
        if weights is not None and bool((weights <= 0).any()):
            raise ValueError("weights must be positive")
        return RationalBezier._shares(control, params, weights)[0] @ control

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)
        ctx.save_for_forward(*inputs, output)

    @staticmethod
    def backward(ctx, grad):
        control, params, weights, curve = ctx.saved_tensors
        share, mass = RationalBezier._shares(control, params, weights)
        d_control = d_params = d_weights = None
        if ctx.needs_input_grad[0]:
            d_control = share.t() @ grad
        pull = (grad @ control.t() - (grad * curve).sum(1, keepdim=True)) / mass
        if ctx.needs_input_grad[1]:
            slope = RationalBezier._slope(params, len(control) - 1)
            if weights is not None:
                slope = slope * weights
            d_params = (pull * slope).sum(1)
        if weights is not None and ctx.needs_input_grad[0]:
            d_weights = (pull * RationalBezier._basis(params, len(control) - 1)).sum(0)
        return d_control, d_params, d_weights

    @staticmethod
    def jvp(ctx, t_control, t_params, t_weights=None):
        control, params, weights, curve = ctx.saved_tensors
        share, mass = RationalBezier._shares(control, params, weights)
        out = torch.zeros_like(curve)
        if t_control is not None:
            out = out + share @ t_control
        drift = torch.zeros_like(share)
        if t_params is not None:
            slope = RationalBezier._slope(params, len(control) - 1)
            drift = drift + t_params.unsqueeze(1) * (slope if weights is None else slope * weights)
        if t_weights is not None:
            drift = drift + RationalBezier._basis(params, len(control) - 1) * t_weights
        return out + (drift @ control - drift.sum(1, keepdim=True) * curve) / mass


class _Smooth(Function):
    @staticmethod
    def forward(ctx, x, edges, degree, amount, rounds):
        ctx.save_for_backward(edges, degree)
        ctx.amount = amount
        ctx.rounds = rounds
        for _ in range(rounds):
            x = (1 - amount) * x + amount * _Smooth._spread(x, edges) / degree
        return x

    @staticmethod
    def _spread(x, edges):
        out = torch.zeros_like(x).index_add(-2, edges[:, 0], x.index_select(-2, edges[:, 1]))
        return out.index_add(-2, edges[:, 1], x.index_select(-2, edges[:, 0]))

    @staticmethod
    def backward(ctx, grad):
        edges, degree = ctx.saved_tensors
        for _ in range(ctx.rounds):
            spread = _Smooth._spread(grad / degree, edges)
            grad = grad.mul_(1 - ctx.amount).add_(spread, alpha=ctx.amount)
        return grad, None, None, None, None


class NeighbourSmoother(nn.Module):
    """Moves the vertices (..., count, dim) of a graph towards the mean of their neighbours.

    edges: (edges, 2) integer, each undirected edge once. A vertex without edges shrinks by
    ``1 - amount`` in each round.
    """

    def __init__(self, edges: Tensor, count: int, amount: float = 0.5, rounds: int = 2):
        super().__init__()
        if rounds < 1:
            raise ValueError("rounds must be at least one")
        degree = torch.zeros(count, dtype=torch.float64)
        degree = degree.index_add(0, edges.reshape(-1), torch.ones(edges.numel()).double())
        self.register_buffer("edges", edges)
        self.register_buffer("degree", degree.clamp(min=1).unsqueeze(1))
        self.amount = amount
        self.rounds = rounds

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] != len(self.degree):
            raise ValueError("one row per vertex")
        return _Smooth.apply(x, self.edges, self.degree.to(x.dtype), self.amount, self.rounds)


class _Splat(Function):
    @staticmethod
    def _corners(points, size, lower, upper):
        scale = (torch.tensor(size, dtype=points.dtype, device=points.device) - 1) / (upper - lower)
        place = (points - lower) * scale
        base = place.detach().floor()
        frac, base = place - base, base.long()
        for code in range(8):
            bits = torch.tensor([code >> 2 & 1, code >> 1 & 1, code & 1], device=points.device)
            cell = base + bits
            limit = torch.tensor(size, device=points.device)
            valid = ((cell >= 0) & (cell < limit)).all(1)
            cell = torch.minimum(cell.clamp(min=0), limit - 1)
            index = (cell[:, 0] * size[1] + cell[:, 1]) * size[2] + cell[:, 2]
            sign = (2 * bits - 1).to(points.dtype)
            parts = torch.where(bits.bool(), frac, 1 - frac)
            yield index, valid.to(points.dtype), parts, sign * scale

    @staticmethod
    def forward(ctx, points, features, size, lower, upper):
        grid = features.new_zeros(size[0] * size[1] * size[2], features.shape[1])
        for index, valid, parts, _ in _Splat._corners(points, size, lower, upper):
            share = parts.prod(1) * valid
            grid = grid.index_add(0, index, share.unsqueeze(1) * features)
        ctx.save_for_backward(points, features)
        ctx.box = (size, lower, upper)
        return grid.view(*size, -1)

    @staticmethod
    def backward(ctx, grad):
        points, features = ctx.saved_tensors
        size, lower, upper = ctx.box
        flat = grad.reshape(-1, features.shape[1])
        d_points = torch.zeros_like(points)
        d_features = torch.zeros_like(features)
        for index, valid, parts, slope in _Splat._corners(points, size, lower, upper):
            taken = flat[index]
            share = parts.prod(1) * valid
            d_features = d_features + share.unsqueeze(1) * taken
            match = (taken * features).sum(1)
            x, y, z = parts.unbind(1)
            others = torch.stack([y * z, x * z, x * y], 1)
            d_points = d_points + match.unsqueeze(1) * others * slope
        need = ctx.needs_input_grad
        return d_points if need[0] else None, d_features if need[1] else None, None, None, None


class TrilinearVoxels(nn.Module):
    """Spreads point features over the eight voxels around each point; what falls beyond is lost."""

    def __init__(self, size=(4, 4, 4), lower=0.0, upper=1.0):
        super().__init__()
        if len(size) != 3 or min(size) < 2:
            raise ValueError("size needs three numbers of at least two")
        self.size = tuple(size)
        self.lower = lower
        self.upper = upper

    def forward(self, points, features):
        if points.shape[1] != 3 or len(points) != len(features):
            raise ValueError("points must be (count, 3) with one feature row each")
        return _Splat.apply(points, features, self.size, self.lower, self.upper)
