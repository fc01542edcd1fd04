// Rows that their teams hold in registers: each lane has a few packs of the row.
#pragma once

#include "row_plan.h"
#include "row_reductions.h"

namespace gradlint::GRADLINT_SPACE {

// The packs of a row that a lane holds, of In operands, as they are in memory; 0 beyond the row.
template <class T, int In>
struct HeldPacks {
  static constexpr int size = Pack<T>::size;
  static constexpr int count = held_slots<T> / size;
  Words at[In][count] = {};

  // Reads operand k of the row that starts at `row`.
  GRADLINT_BOTH void load(const Team& team, int length, int k, const T* row) {
    GRADLINT_UNROLLED for (int pack = 0; pack < count; ++pack) {
      const int offset = (pack * team.lanes + team.lane) * size;
      if (offset < length) at[k][pack] = read_words(row + offset);
    }
  }

  GRADLINT_BOTH void fill(int k, T value) {
    for (int pack = 0; pack < count; ++pack) at[k][pack] = words_of(filled_pack(value));
  }
};

// One row of In operands that is held; what RowWalk is for any other. Bodies are called for packs
// beyond the row too, whose results are dropped: a branch would cost more.
template <class T, int In>
class HeldRow {
 public:
  using W = Wide<T>;

  GRADLINT_BOTH HeldRow(const Team& team, int length, const HeldPacks<T, In>& packs)
      : team_(team), length_(length) {
    GRADLINT_UNROLLED for (int k = 0; k < In; ++k) {
      GRADLINT_UNROLLED for (int pack = 0; pack < count; ++pack) {
        widen_pack<T>(packs.at[k][pack], at_[k][pack]);
      }
    }
  }

  // totals[k] = Σ over the row of terms[k], where body(position, in, terms) gives the terms.
  template <int K, class Body>
  GRADLINT_BOTH void sums(W (&totals)[K], const Body& body) const {
    for (int k = 0; k < K; ++k) totals[k] = 0;
    GRADLINT_UNROLLED for (int pack = 0; pack < count; ++pack) {
      W parts[K][size];
      GRADLINT_UNROLLED for (int j = 0; j < size; ++j) {
        W in[In], terms[K];
        take(pack, j, in);
        body(first(pack) + j, in, terms);
        for (int k = 0; k < K; ++k) parts[k][j] = terms[k];
      }
      GRADLINT_UNROLLED for (int k = 0; k < K; ++k) {
        const W sum = sum_of_pack(parts[k]);
        totals[k] += inside(pack) ? sum : 0;
      }
    }
    team_.sum(totals);
  }

  // The maximum over the row of body(position, in); −∞ of an empty one.
  template <class Body>
  GRADLINT_BOTH W max(const Body& body) const {
    W largest = -static_cast<W>(INFINITY);
    GRADLINT_UNROLLED for (int pack = 0; pack < count; ++pack) {
      W of_pack = -static_cast<W>(INFINITY);
      GRADLINT_UNROLLED for (int j = 0; j < size; ++j) {
        W in[In];
        take(pack, j, in);
        of_pack = math::larger(body(first(pack) + j, in), of_pack);
      }
      largest = inside(pack) ? math::larger(of_pack, largest) : largest;
    }
    return team_.max(largest);
  }

  // The first position where body(in) holds, the same in each lane; where it does nowhere, one
  // beyond the row.
  template <class Body>
  GRADLINT_BOTH int first_where(const Body& body) const {
    int slot = count * size;  // with positions and packs beyond the row, which come last
    GRADLINT_UNROLLED for (int at = count * size - 1; at >= 0; --at) {
      W in[In];
      take(at / size, at % size, in);
      if (body(in)) slot = at;
    }
    return -team_.max(-(first(slot / size) + slot % size));
  }

  // Writes body(position, in, out) to `outputs` from `start` on; null ones are left out.
  template <int Out, class Body>
  GRADLINT_BOTH void map(T* const (&outputs)[Out], int64_t start, const Body& body) const {
    GRADLINT_UNROLLED for (int pack = 0; pack < count; ++pack) {
      W results[Out][size];
      GRADLINT_UNROLLED for (int j = 0; j < size; ++j) {
        W in[In], out[Out];
        take(pack, j, in);
        body(first(pack) + j, in, out);
        for (int k = 0; k < Out; ++k) results[k][j] = out[k];
      }
      if (!inside(pack)) continue;
      GRADLINT_UNROLLED for (int k = 0; k < Out; ++k) {
        if (outputs[k] == nullptr) continue;
        write_words(outputs[k] + start + first(pack), narrow_pack<T>(results[k]));
      }
    }
  }

  // Adds the terms of each position, body(in, terms), to those that the lane has for the column.
  template <int K, class Body>
  GRADLINT_BOTH void add_columns(W (&columns)[K][held_slots<T>], const Body& body) const {
    if (length_ == 0) return;
    GRADLINT_UNROLLED for (int pack = 0; pack < count; ++pack) {
      GRADLINT_UNROLLED for (int j = 0; j < size; ++j) {
        W in[In], terms[K];
        take(pack, j, in);
        body(in, terms);
        for (int k = 0; k < K; ++k) columns[k][pack * size + j] += terms[k];
      }
    }
  }

 private:
  static constexpr int size = Pack<T>::size;
  static constexpr int count = held_slots<T> / size;

  GRADLINT_BOTH int first(int pack) const { return (pack * team_.lanes + team_.lane) * size; }

  GRADLINT_BOTH bool inside(int pack) const { return first(pack) < length_; }

  GRADLINT_BOTH void take(int pack, int j, W (&in)[In]) const {
    for (int k = 0; k < In; ++k) in[k] = at_[k][pack][j];
  }

  const Team& team_;
  int length_;
  W at_[In][count][size];
};

}  // namespace gradlint::GRADLINT_SPACE
