// The entry points of all kernels, for the CPU (namespace cpu) and for CUDA (namespace cuda).
#pragma once

#include "common/arrays.h"
#include "common/matrices.h"
#include "common/roi.h"
#include "common/row_arguments.h"
#include "common/scores.h"

namespace gradlint::cpu {
#include "entries.h"
}

namespace gradlint::cuda {
#include "entries.h"
}
