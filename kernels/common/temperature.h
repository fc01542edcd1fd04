// Operators that approach a hard one as their temperature goes to 0.
#pragma once

#include <limits>

#include "row_arguments.h"

namespace gradlint {

// The temperature in W: positive there too, so that 0 / temperature is 0.
template <class W>
W usable_temperature(const TemperatureArguments& arguments) {
  constexpr double least = std::numeric_limits<W>::min();
  return static_cast<W>(arguments.temperature < least ? least : arguments.temperature);
}

}  // namespace gradlint
