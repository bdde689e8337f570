// A copy of the output layer that goes on training, over states that stay frozen.
//
// Below it an adapter, x = h + A h with A zero at first, learns as well. As the states are not its
// own there is no way back through time, and nothing to remember of a stream but the weights.
#pragma once

#include "network.h"

namespace unbounded {

class DynamicHead {
 public:
  // How fast the layer and its adapter learn; `calm` is added to the roots of Adagrad's sums.
  struct Pace {
    float rate, adapter, calm;
  };
  explicit DynamicHead(AdaptiveSoftmax softmax);
  DynamicHead(const DynamicHead&) = delete;
  const AdaptiveSoftmax& softmax() const { return softmax_; }

  // What the output layer reads of each state.
  void adapt(const float* hidden, size_t rows, float* x) const;

  // The probability of each word under the weights as they are, then one step on the mean surprise.
  void learn(const float* hidden, size_t rows, const int64_t* words, Pace pace, double* prob);

  // The adapter, then the output layer's: weights as torch has them, and Adagrad's sum of each row.
  size_t layers() const { return sums_.size(); }
  const Linear& layer(size_t i) const { return *layers_[i]; }
  const Aligned<float>& sums(size_t i) const { return sums_[i]; }
  void load(size_t i, const float* weight, const float* sums);

 private:
  // One layer's step from the errors of its outputs; gives the slope of its inputs, unless null.
  void step(size_t layer, const float* errors, const float* x, size_t rows, float rate, float calm, float* slope);

  AdaptiveSoftmax softmax_;
  Linear adapter_;
  std::vector<Linear*> layers_;
  std::vector<Aligned<float>> sums_;
};

}  // namespace unbounded
