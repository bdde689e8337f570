// The recurrent network and its output layer, frozen: packed weights, and kernels over them.
//
// Every sum is one chain over the inputs in their order, with lanes across outputs: what comes out
// depends neither on how many rows are computed together nor on who computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "isa.h"

namespace unbounded {

// Outputs that lie side by side in packed weights, and units of a cell that do.
constexpr size_t PANEL = 32, UNITS = 64;

// Floats that begin where a line of the cache does: no load of a whole vector touches two.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const LineAllocator&) const { return true; }
};
using Floats = std::vector<float, LineAllocator<float>>;

// The weights of a matrix product as kernels see them: panel by panel, input by input, PANEL outputs
// each, with zeros at the end; and a bias.
struct Weights {
  const float *packed, *bias;
  size_t in, out;
};

// Weights that own their memory.
class Linear {
 public:
  Linear() = default;
  // Rows are outputs, as torch has them; without a bias it is zero.
  Linear(const float* weight, size_t out, size_t in, const float* bias = nullptr);
  size_t in() const { return in_; }
  size_t out() const { return out_; }
  size_t panels() const { return (out_ + PANEL - 1) / PANEL; }
  Weights weights() const { return {packed_.data(), bias_.data(), in_, out_}; }

 private:
  size_t in_ = 0, out_ = 0;
  Floats packed_, bias_;
};

enum class Kind { elman, gru, lstm };

// One step's places of one stream; for units that do not fill a panel the rest is scratch.
struct Stream {
  const float* input;   // what the word says to each gate, [panel][gate][UNITS]
  const float* before;  // the state before, one float a unit
  float* cell;          // an LSTM's own, padded; changed in place
  float* after;         // the state after
};

struct NetworkKernels {
  // y[r][o] = bias[o] + sum of x[r][i] * weight[o][i], for the outputs of panels first to last.
  void (*multiply)(const Weights& weights, size_t first, size_t last, const float* x,
                   size_t x_stride, size_t rows, float* y, size_t y_stride);
  // One panel of units of a cell, one step of several streams; weights [unit in][gate][UNITS].
  void (*step)(Kind kind, const float* weights, const float* bias, size_t units, size_t panel,
               const Stream* streams, size_t count);
  // Makes logits odds whose largest is one; gives that logit and the sum of the odds.
  void (*odds)(float* logits, size_t columns, float& top, float& sum);
  // Odds times e to the moves (signals times change, [direction][column]); gives their sum.
  float (*move)(const float* odds, const float* signals, const float* change, size_t directions,
                size_t columns, float* moved);
  // Adds errors[r][c] * signals[r][d] to slope[d][c], row after row, for columns first to last.
  void (*learn)(const float* errors, const float* signals, size_t rows, size_t directions,
                size_t columns, size_t first, size_t last, float* slope);
  // Adagrad over elements first to last; the slope becomes zero.
  void (*adagrad)(float* change, float* sums, float* slope, size_t first, size_t last, float share,
                  float rate, float calm);
  // The slope of every gate of an LSTM before its squashing, from the last step to the first.
  void (*lstm_backward)(const float* gates, float* cells, const float* slope,
                        const float* inner, size_t steps, size_t units, float* slopes);
};

KERNELS(NetworkKernels, network)

inline const NetworkKernels& network_kernels() { return FOR_ISA(network); }

}  // namespace unbounded
