// All twins for the CPU, from the same sources.
#include "device.cu"
