// Trials of the emulation: programs that run a named piece of work in a chosen order of threads.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/launch.h"
#include "launch.h"

namespace gradlint::cpu {

using Floats = std::vector<float>;
using Trials = std::map<std::string, std::function<std::string()>>;

inline const Context context{};

// Small whole numbers, whose sums are exact.
inline float whole(int64_t i) { return static_cast<float>(i * 7 % 11 - 5); }

inline std::string compared(const Floats& got, const Floats& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
           std::to_string(expected[i]);
  }
  return "right";
}

// The arguments are a trial's name, and kind and seed of the order: prints what became of it.
inline int main_of(const Trials& trials, int count, char** arguments) {
  if (count != 4) return 2;
  emulation_order(std::atoi(arguments[2]), std::strtoull(arguments[3], nullptr, 10));
  std::string result;
  try {
    result = trials.at(arguments[1])();
  } catch (const std::runtime_error& error) {
    result = error.what();
  }
  std::puts(result.c_str());
  return 0;
}

}  // namespace gradlint::cpu
