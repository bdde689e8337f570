// The recurrent network and its output layer, frozen: packed weights, and kernels over them.
//
// Every sum is one chain over the inputs in their order, with lanes across outputs: what comes out
// depends neither on how many rows are computed together nor on who computes them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "growable.h"
#include "isa.h"

namespace unbounded {

// Outputs that lie side by side in packed weights, and units of a cell that do.
constexpr size_t PANEL = 32, UNITS = 64;

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
  float* packed() { return packed_.data(); }
  // Rows as torch has them.
  void unpack(float* weight) const;
  // All outputs for each row of x.
  void multiply(const float* x, size_t rows, float* y) const;

 private:
  size_t in_ = 0, out_ = 0;
  Aligned<float> packed_, bias_;
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
  // y[r][i] = sum of errors[r][o] * weight[o][i], for inputs first to last; errors are zero behind
  // the last output.
  void (*multiply_back)(const Weights& weights, size_t first, size_t last, const float* errors,
                        size_t stride, size_t rows, float* y, size_t y_stride);
  // One panel's step of Adagrad, with one sum for each output, on the slope errors[r][o] * x[r][i];
  // `slope` is room for a panel.
  void (*train)(float* packed, size_t in, const float* errors, size_t stride, const float* x,
                size_t x_stride, size_t rows, float* sums, float rate, float calm, float* slope);
  // The slope of every gate of an LSTM before its squashing, from the last step to the first.
  void (*lstm_backward)(const float* gates, float* cells, const float* slope,
                        const float* inner, size_t steps, size_t units, float* slopes);
};

KERNELS(NetworkKernels, network)

inline const NetworkKernels& network_kernels() { return FOR_ISA(network); }

// A recurrent cell: one step of a stream after the other, several streams side by side.
class Cell {
 public:
  // Weights as torch has them: gates_of(kind) * units rows of `in` and of `units`, and two biases.
  Cell(Kind kind, size_t units, size_t in, const float* input, const float* inner, const float* input_bias,
       const float* inner_bias);
  static size_t gates_of(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
  size_t units() const { return units_; }
  size_t in() const { return input_.in(); }
  size_t parts() const { return kind_ == Kind::lstm ? 2 : 1; }

  // Streams one after another: word t reads row place[t] of the vectors; `state` is (parts, streams,
  // units) and changes in place, `hidden` a row of units for each word.
  void advance(const float* vectors, size_t different, const int64_t* place, const int64_t* lengths, size_t streams,
               float* state, float* hidden) const;

 private:
  Kind kind_;
  size_t gates_, units_, panels_;
  Linear input_;
  Aligned<float> weights_, bias_;  // [panel][unit in][gate][UNITS], [panel][gate][UNITS]
};

// The softmax of a cluster's words as its logits come, CHUNK at a time: they are never all there at once.
constexpr size_t CHUNK = 2048;
struct ClusterSoftmax {
  double top = -INFINITY, sum = 0.0, picked = 0.0;
  // Makes the logits from `begin` on odds whose largest is one, and gives the logit of that one.
  double add(float* logits, size_t columns, size_t begin, size_t word);
  double prob() const { return std::exp(picked - top) / sum; }
};

// Frequent words and clusters under one softmax; each cluster's words under one of their own.
class AdaptiveSoftmax {
 public:
  // A cluster's states are made narrow first.
  struct Cluster {
    Linear narrow, wide;
  };
  AdaptiveSoftmax(Linear head, std::vector<Cluster> clusters, std::vector<int64_t> cutoffs)
      : head_(std::move(head)), clusters_(std::move(clusters)), cutoffs_(std::move(cutoffs)) {}
  size_t in() const { return head_.in(); }
  size_t columns() const { return head_.out(); }
  size_t size() const { return size_t(cutoffs_.back()); }
  const std::vector<int64_t>& cutoffs() const { return cutoffs_; }
  // A word's cluster, 0 for a frequent one, and its column in the first softmax; -1 for a word that is none of them.
  struct Place {
    size_t cluster;
    int64_t column;
  };
  Place place(int64_t word) const;
  // The first softmax, then what makes states narrow and what makes them words, cluster by cluster.
  std::vector<Linear*> layers();

  // For each word: its probability, that of its column in the first softmax, that column (-1 for a
  // word beyond the vocabulary), and unless null all odds of the first softmax, the largest one.
  void score(const float* hidden, size_t rows, const int64_t* words, double* prob, double* share, int64_t* column,
             float* odds) const;

  // The probability of every word, for each row.
  void dense(const float* hidden, size_t rows, double* out) const;

 private:
  Linear head_;
  std::vector<Cluster> clusters_;
  std::vector<int64_t> cutoffs_;
};

// The first softmax of a frozen output layer plus a change that learns: a step of Adagrad every so
// many words. All three arrays are (directions, columns).
struct AdaptedHead {
  size_t directions, columns;
  float *change, *sums, *slope;

  // What each row's column has once the odds are moved by the change, as a share of all; a row of
  // column -1 is a word that the network does not know. With `every`, learns them too: the slope is
  // added up row by row, and after every so many rows a step is taken. `waiting` is how many have
  // come since the last one, and is handed back.
  size_t score(const float* odds, const int64_t* column, const float* signals, size_t rows, size_t waiting,
               size_t every, float rate, float calm, double* shares) const;
};

}  // namespace unbounded
