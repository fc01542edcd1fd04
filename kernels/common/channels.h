// Sums over each channel of a dense tensor (batch, channels, inner).
//
// Where a channel's elements are long runs in memory, the runs are rows; else the tensor is a
// matrix of `batch` rows, whose columns are summed. Either way partial sums are left as
// [channel][k][a][b], and a second launch adds them up.
//
// An operator of these sums, Op, has: T; In operands in[In], dense; K sums, of the type Sum, of
// the K terms(channel, shift, in, out), with `shift` one of the elements of the first operand that
// are summed; Running, how a thread sums; and finish(shift, count, sums, out), called with each
// partial sum of `count` terms.
#pragma once

#include "columns.h"
#include "rows.h"

namespace gradlint::GRADLINT_SPACE {

constexpr int64_t short_run = 32;      // below it, columns (heuristic: a lane of a warp for each)
constexpr int64_t longest_run = 4096;  // elements that a team sums

struct ChannelPlan {
  int64_t batch, channels, inner;
  bool by_columns;
  ColumnPlan columns;
  int64_t run;   // elements of a row
  int64_t a, b;  // partial sums of each channel

  GRADLINT_BOTH int64_t parts() const { return a * b; }  // of each channel

  // Where the part [a][b] of the k-th of K sums over a channel is.
  GRADLINT_BOTH int64_t at(int64_t channel, int K, int k, int64_t part) const {
    return (channel * K + k) * parts() + part;
  }

  // How many elements are behind the part [a][b].
  GRADLINT_BOTH int64_t behind(int64_t at_a, int64_t at_b) const {
    const int64_t part = by_columns ? columns.stretch : run;
    const int64_t left = by_columns ? batch - at_a * part : inner - at_b * part;
    return left < part ? left : part;
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
    plan.a = plan.columns.splits;
    plan.b = inner;
  } else {
    constexpr int64_t whole = 8;  // elements of the longest pack
    const int64_t least = (inner + longest_run - 1) / longest_run;
    plan.run = ((inner + least - 1) / least + whole - 1) / whole * whole;
    if (plan.run > inner) plan.run = inner;
    plan.a = batch;
    plan.b = (inner + plan.run - 1) / plan.run;
  }
  return plan;
}

template <class Op>
struct ChannelRows {
  using T = typename Op::T;
  using W = Wide<T>;
  RowPlan rows;
  ChannelPlan plan;
  Op op;
  W* partials;

  GRADLINT_BOTH void operator()(const Block& block) const {
    rows.each_row(block, [&](const Team& team, int64_t row, int64_t length) {
      const bool active = length > 0;
      const int64_t run = active ? row % plan.b : 0, above = active ? row / plan.b : 0;
      const int64_t sample = above / plan.channels, channel = above % plan.channels;
      const int64_t start = above * plan.inner + run * plan.run;
      if (active) length = plan.behind(sample, run);
      const T* operands[Op::In];
      for (int k = 0; k < Op::In; ++k) operands[k] = op.in[k] + start;
      const W absent[Op::In] = {};
      const W shift = widened(operands[0][0]);
      const RowWalk<T, Op::In> walk(team, length, rows.packed, operands, absent);
      using Sum = typename Op::Sum;
      Sum sums[Op::K];
      walk.sums(sums, [&](int64_t, const W(&in)[Op::In], Sum(&out)[Op::K]) {
        op.terms(channel, shift, in, out);
      });
      if (team.lane > 0 || !active) return;
      W finished[Op::K];
      op.finish(shift, length, sums, finished);
      for (int k = 0; k < Op::K; ++k) {
        partials[plan.at(channel, Op::K, k, sample * plan.b + run)] = finished[k];
      }
    });
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
    op.terms(column / plan.inner, widened(op.in[0][first * columns + column]), in, out);
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
  RowPlan rows = plan_rows<T>(plan.batch * plan.channels * plan.b, plan.run, {}, long_lanes);
  rows.packed = plan.inner % Pack<T>::size == 0 && plan.run % Pack<T>::size == 0;
  for (const T* operand : op.in) rows.packed = rows.packed && packable<T>(0, {operand});
  launch(context, rows.blocks(), rows.threads, 0, ChannelRows<Op>{rows, plan, op, partials});
}

}  // namespace gradlint::GRADLINT_SPACE
