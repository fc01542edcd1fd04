// gumbel_softmax: y = softmax((l + e) / t) for each row of logits l and of noise e, with t > 0
// (Jang, Gu and Poole 2017, arXiv:1611.01144, equation 2; Maddison, Mnih and Teh 2017,
// arXiv:1611.00712). Hard: y is 1 at the first of the largest l + e and 0 elsewhere, and takes the
// gradient of the soft y, straight through (Jang, section 2.2).
//
// backward, with y the soft one: l and e both get (y / t)·(g − ⟨g, y⟩)
//
// The double backward is of that as a function of g and y; y goes on to l and e by the backward.
// With c the gradient of the backward's result:
//   g gets (y / t)·(c − ⟨c, y⟩)
//   y gets (c·(g − ⟨g, y⟩) − g·⟨c, y⟩) / t
//
// A row with infinity, NaN or nothing but −∞ in l + e is NaN, as in torch.softmax.
#include "common/walk_rows.h"
#include "common/temperature.h"
#include "kernels.h"

namespace gradlint::GRADLINT_SPACE {

template <class T, bool Held>
struct GumbelSoftmax {
  using W = Wide<T>;
  static constexpr int most_threads = row_block<T, Held>;
  RowPlan plan;
  const T* logits;
  const T* noise;
  T* y;
  W temperature;
  bool hard;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const W rate = 1 / temperature;
    const auto body = [&](const Team&, int64_t row, const auto& walk) {
      const W largest = walk.max([](int64_t, const W(&in)[2]) { return in[0] + in[1]; });
      if (hard) {
        choose(walk, row * plan.length, largest);
        return;
      }
      // The difference first: it is 0 at the largest, at any temperature.
      W total[1];
      walk.sums(total, [=](int64_t, const W(&in)[2], W(&out)[1]) {
        out[0] = math::exp_for<T>((in[0] + in[1] - largest) * rate);
      });
      const W share = math::inverse(total[0]);
      walk.template map<1>({y}, row * plan.length, [=](int64_t, const W(&in)[2], W(&out)[1]) {
        out[0] = math::exp_for<T>((in[0] + in[1] - largest) * rate) * share;
      });
    };
    walk_rows<T, Held, 2>(plan, block, {logits, noise}, {0, 0}, body);
  }

 private:
  template <class Walk>
  GRADLINT_BOTH void choose(const Walk& walk, int64_t start, W largest) const {
    const auto chosen =
        walk.first_where([=](const W(&in)[2]) { return in[0] + in[1] == largest; });
    const W wrong = largest - largest;  // NaN where the soft row is
    walk.template map<1>({y}, start, [=](auto position, const W(&)[2], W(&out)[1]) {
      out[0] = position == chosen ? 1 + wrong : wrong;
    });
  }
};

template <class T, bool Held>
struct GumbelSoftmaxBackward {
  using W = Wide<T>;
  static constexpr int most_threads = row_block<T, Held>;
  RowPlan plan;
  const T* grad_output;
  const T* y;
  T* grad;
  W temperature;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const W rate = 1 / temperature;
    const auto body = [&](const Team&, int64_t row, const auto& walk) {
      W inner[1];
      walk.sums(inner, [](int64_t, const W(&in)[2], W(&out)[1]) { out[0] = in[0] * in[1]; });
      const W mean = inner[0];
      walk.template map<1>({grad}, row * plan.length, [=](int64_t, const W(&in)[2], W(&out)[1]) {
        out[0] = in[1] * (in[0] - mean) * rate;
      });
    };
    walk_rows<T, Held, 2>(plan, block, {grad_output, y}, {0, 0}, body);
  }
};

// Read twice: what is held would cost one more kernel for each dtype.
template <class T>
struct GumbelSoftmaxBackwardBackward {
  using W = Wide<T>;
  static constexpr int most_threads = row_block<T, false>;
  RowPlan plan;
  const T* c;
  const T* grad_output;
  const T* y;
  T* grad_grad_output;
  T* grad_y;
  W temperature;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const W rate = 1 / temperature;
    const auto body = [&](const Team&, int64_t row, const auto& walk) {
      W inner[2];
      walk.sums(inner, [](int64_t, const W(&in)[3], W(&out)[2]) {
        out[0] = in[1] * in[2];
        out[1] = in[0] * in[2];
      });
      const W gy = inner[0], cy = inner[1];
      walk.template map<2>({grad_grad_output, grad_y}, row * plan.length,
                           [=](int64_t, const W(&in)[3], W(&out)[2]) {
                             out[0] = in[2] * (in[0] - cy) * rate;
                             out[1] = (in[0] * (in[1] - gy) - in[1] * cy) * rate;
                           });
    };
    walk_rows<T, false, 3>(plan, block, {c, grad_output, y}, {0, 0, 0}, body);
  }
};

void gumbel_softmax(const Context& context, const TemperatureArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    launch_rows<GumbelSoftmax, T, 2>(
        context, plan_rows<T>(a.rows, a.length, {a.in[0], a.in[1], a.out[0]}),
        static_cast<const T*>(a.in[0]), static_cast<const T*>(a.in[1]), static_cast<T*>(a.out[0]),
        usable_temperature<Wide<T>>(a), a.hard);
  });
}

void gumbel_softmax_backward(const Context& context, const TemperatureArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    launch_rows<GumbelSoftmaxBackward, T, 2>(
        context, plan_rows<T>(a.rows, a.length, {a.in[0], a.in[1], a.out[0]}),
        static_cast<const T*>(a.in[0]), static_cast<const T*>(a.in[1]), static_cast<T*>(a.out[0]),
        usable_temperature<Wide<T>>(a));
  });
}

void gumbel_softmax_backward_backward(const Context& context, const TemperatureArguments& a) {
  with_dtype(a.dtype, [&](auto type) {
    using T = decltype(type);
    const RowPlan plan = plan_rows<T>(
        a.rows, a.length, {a.in[0], a.in[1], a.in[2], a.out[0], a.out[1]}, long_lanes);
    launch_walk<T, 3, GumbelSoftmaxBackwardBackward<T>>(
        context, plan, static_cast<const T*>(a.in[0]), static_cast<const T*>(a.in[1]),
        static_cast<const T*>(a.in[2]), static_cast<T*>(a.out[0]), static_cast<T*>(a.out[1]),
        usable_temperature<Wide<T>>(a));
  });
}

}  // namespace gradlint::GRADLINT_SPACE
