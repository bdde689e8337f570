// Whom to believe, learned row by row: row t is mixed with weights learned from the rows before t.
#pragma once

#include <cstdint>

#include "isa.h"

namespace unbounded {

// Learning rates tried side by side, 1/4, 1/8, …, and so many as whole registers hold.
constexpr int kRates = 11, kRateLanes = 16;

// Rows of signals are padded with zeros to whole registers.
constexpr int64_t padded(int64_t signals) { return (signals + 15) / 16 * 16; }

// The gate of a mixture as Python keeps it: `tilt` and `squares` have a row for each expert; the
// first `own` of all `signals` are the gate's own.
struct Gate {
  int64_t experts, own, signals;
  const double* scale;
  int64_t* seen;
  double *moments, *owned;
  float *tilt, *squares;
};

struct MixtureKernels {
  // Soft-Bayes for each rate and Bayes over them; how many rows were learned: all, or those before
  // the first row of zeros. `room` is for experts × kRateLanes, on a line of memory.
  int64_t (*online)(const double* table, int64_t rows, int64_t experts, double* by_rate,
                    double* trust, double* prob, double* weights, double* room);

  // One step of the gate a row: weigh, look, tilt toward who was right, and note who was.
  void (*gate)(const Gate& gate, const double* table, const float* context, const double* plain,
               int64_t rows, double* prob, double* weights, float* room);

  // The gate's weights for one row; changes nothing.
  void (*weigh)(const Gate& gate, const float* context, const double* plain, double* weights,
                float* room);
};

// Floats that the gate's kernels work in.
inline int64_t gate_room(int64_t experts, int64_t signals) {
  return padded(signals) * (2 * experts + 10) + 4 * padded(experts);
}

KERNELS(MixtureKernels, mixture)

inline const MixtureKernels& mixture_kernels() { return FOR_ISA(mixture); }

}  // namespace unbounded
