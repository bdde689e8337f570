// What the network does with vectors of floats; only for files `*_kernels.cpp`.
#pragma once

#include <cstddef>
#include <cstring>

#include "lanes.h"

namespace unbounded::ISA {
namespace {

typedef Floats V;
typedef int32_t I __attribute__((vector_size(kBytes)));
constexpr size_t LANES = kFloats;

inline V load(const float* from) { return load<V>(from); }
inline V all(float x) { return x - V{}; }

inline float largest(V v) {
  float found = v[0];
  for (size_t i = 1; i < LANES; ++i) found = v[i] > found ? v[i] : found;
  return found;
}

// e to the x, to 2e-7 of it; x is held between -87 and 88, where floats can say it.
inline V exp(V x) {
  x = min(max(x, all(-87.0f)), all(88.0f));
  const V magic = all(12582912.0f);  // adding it rounds to a whole number
  const V n = (x * 1.44269504f + magic) - magic;
  V r = fma(n, all(-0.693359375f), x);
  r = fma(n, all(2.12194440e-4f), r);
  V p = all(1.9875691500e-4f);
  p = fma(p, r, all(1.3981999507e-3f));
  p = fma(p, r, all(8.3334519073e-3f));
  p = fma(p, r, all(4.1665795894e-2f));
  p = fma(p, r, all(1.6666665459e-1f));
  p = fma(p, r, all(5.0000001201e-1f));
  p = fma(p, r * r, r + 1.0f);
  const I power = (__builtin_convertvector(n, I) + 127) << 23;
  V scale;
  std::memcpy(&scale, &power, sizeof scale);
  return p * scale;
}

inline V sigmoid(V x) { return 1.0f / (1.0f + exp(-x)); }
inline V tanh(V x) { return 2.0f / (1.0f + exp(-2.0f * x)) - 1.0f; }

}  // namespace
}  // namespace unbounded::ISA
