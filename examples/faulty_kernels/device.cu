// All twins for CUDA: faulty as they are, and mended.
#define TWIN faulty
#define FIXED 0
#include "all.h"
#undef TWIN
#undef FIXED
#define TWIN mended
#define FIXED 1
#include "all.h"
