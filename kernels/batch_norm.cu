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
// Mean and variance: each part of a channel has its sums of x − s and (x − s)², s one of its own
// elements, which give the part's mean and Σ(x − mean)²; those are joined as in Chan, Golub and
// LeVeque 1983, "Algorithms for computing the sample variance", The American Statistician 37(3),
// equations 2.1 and 3.1. As s is one of m elements, (s − mean)² is at most m times their variance,
// and what sums lose is multiplied by as much where s is the one outlier among m, some thousands.
// Sums are therefore double: they lose m·2⁻⁵³, beside the memory's time at no cost. x − s is
// rounded to the wide type, which changes the variance by at most a relative 2√m·2⁻²⁴ in float.
//
// In float32 and 16 bits, Σ(x − mean)² over a part must not overflow float, as from |x − mean| of
// about 10¹⁸ on; PyTorch's own operator has a limit there too.
#include <type_traits>

#include "common/by_channel.h"
#include "common/channels.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T_>
struct Moments {
  using T = T_;
  using W = Wide<T>;
  using Sum = double;
  using Running = std::conditional_t<std::is_same_v<W, double>, Total<double>, PlainTotal<double>>;
  static constexpr int In = 1, K = 2;
  const T* in[In];

  GRADLINT_BOTH void terms(int64_t, W shift, const W (&in)[In], Sum (&out)[K]) const {
    out[0] = in[0] - shift;
    out[1] = out[0] * out[0];
  }

  // The part's mean and Σ(x − mean)².
  GRADLINT_BOTH void finish(W shift, int64_t count, const Sum (&sums)[K], W (&out)[K]) const {
    const Sum beyond = sums[0] / static_cast<Sum>(count);
    const Sum squares = sums[1] - sums[0] * beyond;
    out[0] = static_cast<W>(shift + beyond);
    out[1] = static_cast<W>(squares < 0 ? 0 : squares);
  }
};

// Σ g and Σ g·n
template <class T_>
struct GradientSums {
  using T = T_;
  using W = Wide<T>;
  using Sum = W;
  using Running = Total<W>;
  static constexpr int In = 2, K = 2;
  const T* in[In];  // x, g
  const W* mean;
  const W* rstd;

  GRADLINT_BOTH void terms(int64_t channel, W, const W (&in)[In], W (&out)[K]) const {
    out[0] = in[1];
    out[1] = in[1] * ((in[0] - mean[channel]) * rstd[channel]);
  }

  GRADLINT_BOTH void finish(W, int64_t, const W (&sums)[K], W (&out)[K]) const {
    for (int k = 0; k < K; ++k) out[k] = sums[k];
  }
};

// Σ g, Σ g·n, Σ u, Σ u·n, Σ u·g
template <class T_>
struct SecondSums {
  using T = T_;
  using W = Wide<T>;
  using Sum = W;
  using Running = Total<W>;
  static constexpr int In = 3, K = 5;
  const T* in[In];  // x, g, u
  const W* mean;
  const W* rstd;

  GRADLINT_BOTH void terms(int64_t channel, W, const W (&in)[In], W (&out)[K]) const {
    const W n = (in[0] - mean[channel]) * rstd[channel];
    out[0] = in[1];
    out[1] = in[1] * n;
    out[2] = in[2];
    out[3] = in[2] * n;
    out[4] = in[2] * in[1];
  }

  GRADLINT_BOTH void finish(W, int64_t, const W (&sums)[K], W (&out)[K]) const {
    for (int k = 0; k < K; ++k) out[k] = sums[k];
  }
};

constexpr int channel_threads = 128;

// mean and rstd of each channel, from the means and squares of its parts.
template <class W>
struct JoinMoments {
  ChannelPlan plan;
  const W* partials;
  W* mean;
  W* rstd;
  W eps;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t channel = block.index, parts = plan.parts();
    const W count = static_cast<W>(plan.batch * plan.inner), base = at(channel, 0, 0);
    Total<W> beyond;
    for (int64_t part = block.thread; part < parts; part += block.threads) {
      beyond.add(behind(part) * (at(channel, part, 0) - base));
    }
    const W middle = base + block.sum(beyond.value()) / count;
    Total<W> squares;
    for (int64_t part = block.thread; part < parts; part += block.threads) {
      const W away = at(channel, part, 0) - middle;
      squares.add(at(channel, part, 1) + behind(part) * away * away);
    }
    const W variance = block.sum(squares.value()) / count;
    if (block.thread > 0) return;
    mean[channel] = middle;
    rstd[channel] = 1 / math::sqrt(variance + eps);
  }

 private:
  GRADLINT_BOTH W at(int64_t channel, int64_t part, int k) const {
    return partials[plan.at(channel, 2, k, part)];
  }

  GRADLINT_BOTH W behind(int64_t part) const {
    return static_cast<W>(plan.behind(part / plan.b, part % plan.b));
  }
};

// means[channel][k] = Σ of the partial sums / count
template <class W>
struct ChannelMeans {
  ChannelPlan plan;
  const W* partials;
  W* means;

  GRADLINT_BOTH void operator()(const Block& block) const {
    Total<W> total;
    for (int64_t part = block.thread; part < plan.parts(); part += block.threads) {
      total.add(partials[block.index * plan.parts() + part]);
    }
    const W sum = block.sum(total.value());
    if (block.thread == 0) means[block.index] = sum / static_cast<W>(plan.batch * plan.inner);
  }
};

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
