// layer_norm: y = n·w + b, for each row x of length L, with
//   n = (x − μ)·r, μ = ⟨x⟩, r = 1/√(⟨(x − μ)²⟩ + ε), ⟨·⟩ the mean over the row
// (Ba, Kiros and Hinton 2016, arXiv:1607.06450, section 3). w and b may be absent: 1 and 0.
//
// backward, with a = g·w and P(v) = v − ⟨v⟩ − n·⟨v·n⟩:
//   x gets r·P(a), w gets Σ g·n over the rows, b gets Σ g over the rows
//
// double backward, with u, p, q the gradients of the gradients of x, w and b:
//   g gets w·r·P(u) + n·p + q
//   w gets Σ g·r·P(u) over the rows
//   x gets r·P(z) − r²·n·(⟨u·a⟩ − ⟨u⟩⟨a⟩ − ⟨u·n⟩⟨a·n⟩), z = g·p − r·(⟨a·n⟩·u + ⟨u·n⟩·a)
// These are the derivatives of F = Σ u·r·P(a) + p·Σ g·n + q·Σ g. In F, u·P(a) = a·P(u); z is ∂F/∂n
// at a fixed r; and dn = r·P(dx), dr = −r²·⟨n·dx⟩, both exact with ε > 0.
//
// In float32, and in bfloat16, Σ(x − μ)² over a row must not overflow float, as from |x − μ| of
// about 10¹⁸ on: there n is 0 or NaN, as it is of PyTorch's own operator.
//
// The backward reads x and g once where rows are held: their team sums the columns on the way.
#include "common/columns.h"
#include "common/row_columns.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T>
struct LayerNorm {
  using W = Wide<T>;

  explicit LayerNorm(const LayerNormArguments& a)
      : length(a.length),
        x(static_cast<const T*>(a.x)),
        weight(static_cast<const T*>(a.weight)),
        bias(static_cast<const T*>(a.bias)),
        grad_output(static_cast<const T*>(a.grad_output)),
        u(static_cast<const T*>(a.grad_grad_x)),
        p(static_cast<const T*>(a.grad_grad_weight)),
        q(static_cast<const T*>(a.grad_grad_bias)),
        mean(static_cast<W*>(a.mean)),
        rstd(static_cast<W*>(a.rstd)),
        y(static_cast<T*>(a.y)),
        grad_x(static_cast<T*>(a.grad_x)),
        grad_grad_output(static_cast<T*>(a.grad_grad_output)),
        eps(static_cast<W>(a.eps)) {}

  int64_t length;
  const T *x, *weight, *bias, *grad_output, *u, *p, *q;
  W *mean, *rstd;
  T *y, *grad_x, *grad_grad_output;
  W eps;
};

template <class T, bool Held>
struct LayerNormForward {
  using W = Wide<T>;
  static constexpr int most_threads = row_block<T, Held>;
  RowPlan plan;
  LayerNorm<T> op;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const W length = static_cast<W>(plan.length), share = 1 / length;
    const auto body = [&](const Team& team, int64_t row, const auto& walk) {
      W total[1];
      walk.sums(total, [](int64_t, const W(&in)[3], W(&out)[1]) { out[0] = in[0]; });
      // The quotient to its last place: rows of one value have that mean.
      const W near = total[0] * share, mean = near + math::fma(-near, length, total[0]) * share;
      walk.sums(total, [mean](int64_t, const W(&in)[3], W(&out)[1]) {
        out[0] = (in[0] - mean) * (in[0] - mean);
      });
      const W rstd = math::inverse_root(total[0] * share + op.eps);
      const auto normalized = [=](int64_t, const W(&in)[3], W(&out)[1]) {
        out[0] = (in[0] - mean) * rstd * in[1] + in[2];
      };
      walk.template map<1>({op.y}, row * plan.length, normalized);
      if (team.lane == 0 && row < plan.rows) {
        op.mean[row] = mean;
        op.rstd[row] = rstd;
      }
    };
    walk_rows<T, Held, 1>(plan, block, {op.x, op.weight, op.bias}, {0, 1, 0}, body);
  }
};

// Where Columns, rows are held, and each block leaves the sums of g·n and g over its rows in
// `partials`.
template <class T, bool Held, bool Columns>
struct LayerNormBackward {
  using W = Wide<T>;
  static constexpr int most_threads = row_block<T, Held>;
  RowPlan plan;
  LayerNorm<T> op;
  W* partials;

  GRADLINT_BOTH void operator()(const Block& block) const {
    RowColumns<T, 2> columns;
    const W share = 1 / static_cast<W>(plan.length);
    const auto body = [&](const Team&, int64_t row, const auto& walk) {
      const bool inside = row < plan.rows;
      const W mean = inside ? op.mean[row] : 0, rstd = inside ? op.rstd[row] : 0;
      W means[2];  // of a and a·n
      walk.sums(means, [=](int64_t, const W(&in)[3], W(&out)[2]) {
        out[0] = in[1] * in[2];
        out[1] = out[0] * ((in[0] - mean) * rstd);
      });
      const W a = means[0] * share, an = means[1] * share;
      const auto gradient = [=](int64_t, const W(&in)[3], W(&out)[1]) {
        out[0] = rstd * (in[1] * in[2] - a - (in[0] - mean) * rstd * an);
      };
      walk.template map<1>({op.grad_x}, row * plan.length, gradient);
      if constexpr (Columns) {
        walk.add_columns(columns.sums, [=](const W(&in)[3], W(&out)[2]) {
          out[0] = in[1] * ((in[0] - mean) * rstd);
          out[1] = in[1];
        });
      }
    };
    walk_rows<T, Held, 2>(plan, block, {op.x, op.grad_output, op.weight}, {0, 0, 1}, body);
    if constexpr (Columns) columns.store(plan, block, partials);
  }
};

template <class T, bool Held>
using LayerNormBackwardOfRows = LayerNormBackward<T, Held, false>;

// Leaves ⟨u⟩ and ⟨u·n⟩ of each row in `projected` for the gradient of the weight. Six operands are
// more than registers hold: they are read twice.
template <class T>
struct LayerNormBackwardBackward {
  using W = Wide<T>;
  static constexpr int most_threads = row_block<T, false>;
  RowPlan plan;
  LayerNorm<T> op;
  W* projected;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const auto body = [&](const Team& team, int64_t row, const auto& walk) {
      const bool inside = row < plan.rows;
      const W mean = inside ? op.mean[row] : 0, rstd = inside ? op.rstd[row] : 0;
      W means[7];
      walk.sums(means, [=](int64_t, const W(&in)[6], W(&out)[7]) {
        const W n = (in[0] - mean) * rstd, u = in[2], a = in[1] * in[3], gp = in[1] * in[4];
        out[0] = u;
        out[1] = u * n;
        out[2] = a;
        out[3] = a * n;
        out[4] = u * a;
        out[5] = gp;
        out[6] = gp * n;
      });
      for (W& sum : means) sum /= static_cast<W>(plan.length);
      const W u = means[0], un = means[1], a = means[2], an = means[3];
      const W z = means[5] - rstd * (an * u + un * a), zn = means[6] - 2 * rstd * an * un;
      const W slope = rstd * rstd * (means[4] - u * a - un * an);
      const auto gradients = [=](int64_t, const W(&in)[6], W(&out)[2]) {
        const W n = (in[0] - mean) * rstd;
        out[0] = in[3] * rstd * (in[2] - u - n * un) + n * in[4] + in[5];
        const W at = in[1] * in[4] - rstd * (an * in[2] + un * in[1] * in[3]);
        out[1] = rstd * (at - z - n * zn) - slope * n;
      };
      walk.template map<2>({op.grad_grad_output, op.grad_x}, row * plan.length, gradients);
      if (team.lane == 0 && inside) {
        projected[2 * row] = u;
        projected[2 * row + 1] = un;
      }
    };
    walk_rows<T, false, 3>(plan, block, {op.x, op.grad_output, op.u, op.weight, op.p, op.q},
                           {0, 0, 0, 1, 0, 0}, body);
  }
};

// The terms of the gradients of weight and bias: g·n and g; in the double backward, where u is
// given, of weight alone: g·r·P(u)
template <class T>
struct LayerNormAffineTerms {
  using W = Wide<T>;
  LayerNorm<T> op;
  const W* projected;

  GRADLINT_BOTH void operator()(int64_t, int64_t row, int64_t column, W (&out)[2]) const {
    const int64_t at = row * op.length + column;
    const W g = widened(op.grad_output[at]), rstd = op.rstd[row];
    W factor = (widened(op.x[at]) - op.mean[row]) * rstd;
    if (op.u != nullptr) {
      factor = rstd * (widened(op.u[at]) - projected[2 * row] - factor * projected[2 * row + 1]);
    }
    out[0] = g * factor;
    out[1] = g;
  }
};

template <class T>
void sum_affine(const Context& context, const LayerNormArguments& a, Wide<T>* workspace) {
  using W = Wide<T>;
  const ColumnPlan plan = plan_columns(context, a.rows, a.length, false);
  W* const partials = workspace + 2 * a.rows;
  launch_columns<W, 2>(context, plan, LayerNormAffineTerms<T>{LayerNorm<T>(a), workspace},
                       StorePartials<W, 2>{partials, a.length});
  total_columns<T>(context, plan.splits, a.length, partials, static_cast<T*>(a.grad_weight),
                   static_cast<T*>(a.grad_bias));
}

void layer_norm_forward(const Context& context, const LayerNormArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    launch_rows<LayerNormForward, T, 1>(
        context, plan_rows<T>(a.rows, a.length, {a.x, a.weight, a.bias, a.y}), LayerNorm<T>(a));
  });
}

template <class T>
RowPlan plan_backward(const LayerNormArguments& a) {
  return plan_rows<T>(a.rows, a.length, {a.x, a.grad_output, a.weight, a.grad_x});
}

// The plan of rows that are held and whose columns are summed on the way.
template <class T>
RowPlan plan_with_columns(const Context& context, const LayerNormArguments& a) {
  const RowPlan plan = plan_backward<T>(a);
  // One wave: what the blocks leave is small beside the rows.
  return in_waves<LayerNormBackward<T, true, true>>(
      context, plan, 1, RowColumns<T, 2>::most_steps, RowColumns<T, 2>::memory(plan));
}

void layer_norm_workspace(const Context& context, const LayerNormArguments& a, int64_t& elements) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    // Of the double backward too, and of whichever way the backward goes.
    const int64_t splits = plan_columns(context, a.rows, a.length, false).splits;
    const int64_t held = plan_backward<T>(a).held ? plan_with_columns<T>(context, a).blocks() : 0;
    const int64_t again = splits * a.length + a.rows;
    elements = 2 * (again > held * a.length ? again : held * a.length);
  });
}

void layer_norm_backward(const Context& context, const LayerNormArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    using W = Wide<T>;
    W* const workspace = static_cast<W*>(a.workspace);
    const bool affine = a.grad_weight != nullptr || a.grad_bias != nullptr;
    if (affine && plan_backward<T>(a).held) {
      const RowPlan plan = plan_with_columns<T>(context, a);
      launch(context, plan.blocks(), plan.threads, RowColumns<T, 2>::memory(plan),
             LayerNormBackward<T, true, true>{plan, LayerNorm<T>(a), workspace});
      total_columns<T>(context, plan.blocks(), a.length, workspace,
                       static_cast<T*>(a.grad_weight), static_cast<T*>(a.grad_bias));
      return;
    }
    if (a.grad_x != nullptr) {
      launch_rows<LayerNormBackwardOfRows, T, 2>(context, plan_backward<T>(a), LayerNorm<T>(a),
                                              workspace);
    }
    if (affine) sum_affine<T>(context, a, workspace);
  });
}

void layer_norm_backward_backward(const Context& context, const LayerNormArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    using W = Wide<T>;
    W* const workspace = static_cast<W*>(a.workspace);
    const RowPlan plan =
        plan_rows<T>(a.rows, a.length,
                     {a.x, a.grad_output, a.weight, a.grad_grad_x, a.grad_grad_weight,
                      a.grad_grad_bias, a.grad_grad_output, a.grad_x},
                     long_lanes);
    launch_walk<T, 3, LayerNormBackwardBackward<T>>(context, plan, LayerNorm<T>(a), workspace);
    if (a.grad_weight != nullptr) sum_affine<T>(context, a, workspace);
  });
}

}  // namespace gradlint::GRADLINT_SPACE
