// batch_norm: y = n = (x − μ)·r for each channel of x (N, C, *), with μ = ⟨x⟩ and
//   r = 1/√(⟨(x − μ)²⟩ + ε), ⟨·⟩ the mean over the batch and all axes behind the channel's
// (Ioffe and Szegedy 2015, arXiv:1502.03167, algorithm 1, without scale and shift).
//
// backward, with P(v) = v − ⟨v⟩ − n·⟨v·n⟩: x gets r·P(g)
//
// double backward, with u the gradient of the gradient of x:
//   g gets r·P(u)
//   x gets r·P(z) − r²·n·(⟨u·g⟩ − ⟨u⟩⟨g⟩ − ⟨u·n⟩⟨g·n⟩), z = −r·(⟨g·n⟩·u + ⟨u·n⟩·g)
// as in layer_norm.cu, with rows that are channels and without weight and bias.
//
// How the sums over a channel are joined, and what they lose, is said in common/batch_norm_sums.h.
#include "common/by_channel.h"
#include "common/batch_norm_sums.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

// y from x
template <class T_>
struct Normalize {
  using T = T_;
  using W = Wide<T>;
  static constexpr int In = 1, Out = 1;
  const T* in[In];
  T* out[Out];
  const W* mean;
  const W* rstd;
  const W* means;
  int64_t channels;

  struct Channel {
    W mean, rstd;
    GRADLINT_BOTH void apply(const W (&in)[In], W (&out)[Out]) const {
      out[0] = (in[0] - mean) * rstd;
    }
  };

  GRADLINT_BOTH Channel of(int64_t c) const { return {mean[c], rstd[c]}; }
};

// The gradient of x from x and g
template <class T_>
struct NormalizeBackward {
  using T = T_;
  using W = Wide<T>;
  static constexpr int In = 2, Out = 1;
  const T* in[In];
  T* out[Out];
  const W* mean;
  const W* rstd;
  const W* means;
  int64_t channels;

  struct Channel {
    W mean, rstd, g, gn;
    GRADLINT_BOTH void apply(const W (&in)[In], W (&out)[Out]) const {
      out[0] = rstd * (in[1] - g - (in[0] - mean) * rstd * gn);
    }
  };

  GRADLINT_BOTH Channel of(int64_t c) const {
    return {mean[c], rstd[c], means[2 * c], means[2 * c + 1]};
  }
};

// The gradients of g and x from x, g and u
template <class T_>
struct NormalizeBackwardBackward {
  using T = T_;
  using W = Wide<T>;
  static constexpr int In = 3, Out = 2;
  const T* in[In];
  T* out[Out];
  const W* mean;
  const W* rstd;
  const W* means;
  int64_t channels;

  struct Channel {
    W mean, rstd, gn, u, un, z, zn, slope;
    GRADLINT_BOTH void apply(const W (&in)[In], W (&out)[Out]) const {
      const W n = (in[0] - mean) * rstd;
      out[0] = rstd * (in[2] - u - n * un);
      out[1] = rstd * (-rstd * (gn * in[2] + un * in[1]) - z - n * zn) - slope * n;
    }
  };

  GRADLINT_BOTH Channel of(int64_t c) const {
    const W* const of = means + 5 * c;
    const W r = rstd[c], g = of[0], gn = of[1], u = of[2], un = of[3], ug = of[4];
    return {mean[c], r,                          gn,
            u,       un,                         -r * (gn * u + un * g),
            -2 * r * gn * un, r * r * (ug - u * g - un * gn)};
  }
};

// The means of what Op sums, in the workspace: first the partial sums, then those.
template <class Op>
Wide<typename Op::T>* mean_channels(const Context& context, const ChannelPlan& plan, const Op& op,
                                    void* workspace) {
  using W = Wide<typename Op::T>;
  W* const partials = static_cast<W*>(workspace);
  W* const means = partials + Op::K * plan.channels * plan.parts();
  sum_channels(context, plan, op, partials);
  launch(context, Op::K * plan.channels, channel_threads, 0,
         ChannelMeans<W>{plan, partials, means});
  return means;
}

ChannelPlan plan_of(const Context& context, const BatchNormArguments& a) {
  return plan_channels(context, a.batch, a.channels, a.inner);
}

void batch_norm_workspace(const Context& context, const BatchNormArguments& a, int terms,
                          int64_t& elements) {
  elements = terms * a.channels * (plan_of(context, a).parts() + 1);
}

void batch_norm_forward(const Context& context, const BatchNormArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    using W = Wide<T>;
    const ChannelPlan plan = plan_of(context, a);
    const T* const x = static_cast<const T*>(a.x);
    W *const mean = static_cast<W*>(a.mean), *const rstd = static_cast<W*>(a.rstd);
    W* const partials = static_cast<W*>(a.workspace);
    sum_channels(context, plan, Moments<T>{{x}}, partials);
    launch(context, a.channels, channel_threads, 0,
           JoinMoments<W>{plan, partials, mean, rstd, static_cast<W>(a.eps)});
    map_channels(context, plan,
                 Normalize<T>{{x}, {static_cast<T*>(a.y)}, mean, rstd, nullptr, a.channels});
  });
}

void batch_norm_backward(const Context& context, const BatchNormArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    using W = Wide<T>;
    const ChannelPlan plan = plan_of(context, a);
    const T *const x = static_cast<const T*>(a.x), *const g = static_cast<const T*>(a.grad_output);
    const W *const mean = static_cast<W*>(a.mean), *const rstd = static_cast<W*>(a.rstd);
    const W* const means =
        mean_channels(context, plan, GradientSums<T>{{x, g}, mean, rstd}, a.workspace);
    map_channels(context, plan,
                 NormalizeBackward<T>{
                     {x, g}, {static_cast<T*>(a.grad_x)}, mean, rstd, means, a.channels});
  });
}

void batch_norm_backward_backward(const Context& context, const BatchNormArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    using W = Wide<T>;
    const ChannelPlan plan = plan_of(context, a);
    const T *const x = static_cast<const T*>(a.x), *const g = static_cast<const T*>(a.grad_output),
                   *const u = static_cast<const T*>(a.grad_grad_x);
    const W *const mean = static_cast<W*>(a.mean), *const rstd = static_cast<W*>(a.rstd);
    const W* const means =
        mean_channels(context, plan, SecondSums<T>{{x, g, u}, mean, rstd}, a.workspace);
    map_channels(context, plan,
                 NormalizeBackwardBackward<T>{
                     {x, g, u},
                     {static_cast<T*>(a.grad_grad_output), static_cast<T*>(a.grad_x)},
                     mean,
                     rstd,
                     means,
                     a.channels});
  });
}

}  // namespace gradlint::GRADLINT_SPACE
