// Sums over each channel of a dense tensor (batch, channels, inner).
//
// Where a channel's elements are long runs in memory, the runs are rows; else the tensor is a
// matrix of `batch` rows, whose columns are summed. Either way partial sums are left as
// [channel][k][a][b], and a second launch adds them up.
//
// An operator of these sums, Op, has: T; In operands in[In], dense; K sums, of the type Sum;
// Running, how a thread sums; of(channel, shift), whose terms(in, out) gives the K terms of a
// position, with `shift` one of the elements of the first operand that are summed; and
// finish(shift, count, sums, out), called with each partial sum of `count` terms.
#pragma once

#include "columns.h"
#include "rows.h"

namespace gradlint::GRADLINT_SPACE {

constexpr int64_t short_run = 32;  // below it, columns (heuristic: a lane of a warp for each)

#ifdef GRADLINT_DEVICE
constexpr int channel_sum_threads = 256;
constexpr int channel_unrolled = 4;  // 16-byte accesses in flight for each operand (heuristic)
constexpr int64_t least_part = 8192;   // elements: 32 for each thread, more than it costs to join
                                       // the threads (heuristic)
#else
constexpr int channel_sum_threads = 1;
constexpr int channel_unrolled = 1;
constexpr int64_t least_part = 8192;  // more than it costs to hand out a part (heuristic)
#endif
constexpr int64_t longest_run = 65536;  // elements of a sample that are one part

struct ChannelPlan {
  int64_t batch, channels, inner;
  bool by_columns;
  ColumnPlan columns;
  int64_t samples, run;  // of a part: so many samples, so many elements of each
  int64_t a, b;          // partial sums of each channel

  GRADLINT_BOTH int64_t parts() const { return a * b; }  // of each channel

  // Where the part [a][b] of the k-th of K sums over a channel is.
  GRADLINT_BOTH int64_t at(int64_t channel, int K, int k, int64_t part) const {
    return (channel * K + k) * parts() + part;
  }

  // How many of the samples, or of the elements of one, are in a part.
  GRADLINT_BOTH int64_t samples_of(int64_t at_a) const {
    const int64_t left = batch - at_a * samples;
    return left < samples ? left : samples;
  }

  GRADLINT_BOTH int64_t run_of(int64_t at_b) const {
    const int64_t left = inner - at_b * run;
    return left < run ? left : run;
  }

  // How many elements are behind the part [a][b].
  GRADLINT_BOTH int64_t behind(int64_t at_a, int64_t at_b) const {
    return by_columns ? samples_of(at_a) : samples_of(at_a) * run_of(at_b);
  }
};

inline ChannelPlan plan_channels(const Context& context, int64_t batch, int64_t channels,
                                 int64_t inner) {
  ChannelPlan plan{};
  plan.batch = batch;
  plan.channels = channels;
  plan.inner = inner;
  plan.by_columns = inner < short_run;
  if (plan.by_columns) {
    plan.columns = plan_columns(context, batch, channels * inner, false);
    plan.samples = plan.columns.stretch;
    plan.a = plan.columns.splits;
    plan.b = inner;
    return plan;
  }
  constexpr int64_t whole = 8;  // elements of the longest pack
  plan.run = (inner < longest_run ? inner : longest_run);
  if (plan.run < inner) plan.run = plan.run / whole * whole;
  plan.b = (inner + plan.run - 1) / plan.run;
#ifdef GRADLINT_DEVICE
  constexpr int64_t waves = 32;  // blocks for each multiprocessor: the last ones are a small share
  const int64_t blocks = device::processors(context) * waves;
#else
  constexpr int64_t blocks = 256;  // for any number of cores (heuristic)
#endif
  const int64_t wanted = blocks / (channels * plan.b > 0 ? channels * plan.b : 1) + 1;
  plan.samples = (batch + wanted - 1) / wanted;
  if (plan.samples * plan.run < least_part) plan.samples = least_part / plan.run + 1;
  if (plan.samples > batch) plan.samples = batch > 0 ? batch : 1;
  plan.a = (batch + plan.samples - 1) / plan.samples;
  return plan;
}

// Each block sums one part of one channel: its threads go through the packs of the part's samples,
// one sample after the other, and join their sums once.
template <class Op>
struct ChannelRows {
  using T = typename Op::T;
  using W = Wide<T>;
  using Sum = typename Op::Sum;
  static constexpr int most_threads = channel_sum_threads;
  ChannelPlan plan;
  Op op;
  bool packed;  // samples are whole packs, and aligned
  W* partials;

  GRADLINT_BOTH void operator()(const Block& block) const {
    const int64_t part = block.index % plan.parts(), channel = block.index / plan.parts();
    const int64_t at_b = part % plan.b, at_a = part / plan.b;
    const int64_t start =
        (at_a * plan.samples * plan.channels + channel) * plan.inner + at_b * plan.run;
    const int64_t samples = plan.samples_of(at_a), run = plan.run_of(at_b);
    const W shift = widened(op.in[0][start]);
    const auto terms = op.of(channel, shift);
    typename Op::Running totals[Op::K];
    if (packed) {
      walk<Pack<T>::size>(block, start, samples, run, terms, totals);
    } else {
      walk<1>(block, start, samples, run, terms, totals);
    }
    Sum sums[Op::K];
    for (int k = 0; k < Op::K; ++k) sums[k] = block.sum(totals[k].value());
    if (block.thread > 0) return;
    W finished[Op::K];
    op.finish(shift, samples * run, sums, finished);
    for (int k = 0; k < Op::K; ++k) partials[plan.at(channel, Op::K, k, part)] = finished[k];
  }

 private:
  // A thread's place: how far from `start`, and which of the packs of a sample.
  struct Place {
    int64_t offset;
    int pack;
  };

  // Width elements are read at once. The thread's next place is found without a division.
  template <int Width, class Terms>
  GRADLINT_BOTH void walk(const Block& block, int64_t start, int64_t samples, int64_t run,
                          const Terms& terms, typename Op::Running (&totals)[Op::K]) const {
    const int packs = static_cast<int>(run / Width);
    const int64_t apart = plan.channels * plan.inner;  // from one sample to the next
    const int up = block.threads / packs, along = block.threads % packs;
    const int64_t step = up * apart + along * Width, carry = apart - int64_t{packs} * Width;
    Place at{start + block.thread / packs * apart + block.thread % packs * Width,
             block.thread % packs};
    const auto advance = [&] {
      at.offset += step;
      at.pack += along;
      if (at.pack >= packs) {
        at.pack -= packs;
        at.offset += carry;
      }
    };
    const int64_t count = samples * packs, stride = block.threads;
    int64_t i = block.thread;
    for (; i + (channel_unrolled - 1) * stride < count; i += channel_unrolled * stride) {
      add<Width, channel_unrolled>(at, advance, terms, totals);
    }
    for (; i < count; i += stride) add<Width, 1>(at, advance, terms, totals);
  }

  template <int Width, int Count, class Advance, class Terms>
  GRADLINT_BOTH void add(const Place& at, const Advance& advance, const Terms& terms,
                         typename Op::Running (&totals)[Op::K]) const {
    W in[Count][Op::In][Width];
    if constexpr (Width == 1) {
      GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
        for (int k = 0; k < Op::In; ++k) in[p][k][0] = widened(op.in[k][at.offset]);
        advance();
      }
    } else {
      Words words[Count][Op::In];
      GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
        for (int k = 0; k < Op::In; ++k) words[p][k] = read_words(op.in[k] + at.offset);
        advance();
      }
      GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
        for (int k = 0; k < Op::In; ++k) widen_pack<T>(words[p][k], in[p][k]);
      }
    }
    GRADLINT_UNROLLED for (int p = 0; p < Count; ++p) {
      // A pack is summed plainly first: so few terms lose little, and what a running sum does to
      // lose less is done once a pack.
      Sum sums[Op::K];
      GRADLINT_UNROLLED for (int j = 0; j < Width; ++j) {
        W one[Op::In];
        Sum out[Op::K];
        for (int k = 0; k < Op::In; ++k) one[k] = in[p][k][j];
        terms.terms(one, out);
        for (int k = 0; k < Op::K; ++k) sums[k] = j == 0 ? out[k] : sums[k] + out[k];
      }
      for (int k = 0; k < Op::K; ++k) totals[k].add(sums[k]);
    }
  }
};

template <class Op>
struct ColumnTerms {
  using W = Wide<typename Op::T>;
  ChannelPlan plan;
  Op op;

  GRADLINT_BOTH void operator()(int64_t first, int64_t row, int64_t column,
                                typename Op::Sum (&out)[Op::K]) const {
    const int64_t columns = plan.columns.columns;
    W in[Op::In];
    for (int k = 0; k < Op::In; ++k) in[k] = widened(op.in[k][row * columns + column]);
    op.of(column / plan.inner, widened(op.in[0][first * columns + column])).terms(in, out);
  }
};

template <class Op>
struct StoreColumnSums {
  using W = Wide<typename Op::T>;
  ChannelPlan plan;
  Op op;
  W* partials;

  GRADLINT_BOTH void operator()(int64_t split, int64_t count, int64_t column,
                                const typename Op::Sum (&sums)[Op::K]) const {
    W finished[Op::K];
    const int64_t columns = plan.columns.columns, first = split * plan.columns.stretch;
    op.finish(widened(op.in[0][first * columns + column]), count, sums, finished);
    const int64_t channel = column / plan.inner, within = column - channel * plan.inner;
    for (int k = 0; k < Op::K; ++k) {
      partials[plan.at(channel, Op::K, k, split * plan.b + within)] = finished[k];
    }
  }
};

// Leaves the partial sums of `op` in `partials`.
template <class Op>
void sum_channels(const Context& context, const ChannelPlan& plan, const Op& op,
                  Wide<typename Op::T>* partials) {
  using T = typename Op::T;
  if (plan.by_columns) {
    launch_columns<typename Op::Sum, Op::K, typename Op::Running>(
        context, plan.columns, ColumnTerms<Op>{plan, op}, StoreColumnSums<Op>{plan, op, partials});
    return;
  }
  bool packed = plan.inner % Pack<T>::size == 0;
  for (const T* operand : op.in) packed = packed && packable<T>(0, {operand});
  launch(context, plan.batch > 0 ? plan.channels * plan.parts() : 0, channel_sum_threads, 0,
         ChannelRows<Op>{plan, op, packed, partials});
}

}  // namespace gradlint::GRADLINT_SPACE
