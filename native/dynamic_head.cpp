#include "dynamic_head.h"

#include <algorithm>

#include "threads.h"

namespace unbounded {
namespace {

// What one thread takes at a time.
constexpr size_t PANELS = 4, INPUTS = 32;

size_t padded(const Linear& layer) { return layer.panels() * PANEL; }

// All outputs of a few rows, with zeros behind the last; until the next ones are asked for.
float* outputs(const Linear& layer, const float* x, size_t rows) {
  const size_t stride = padded(layer);
  float* y = scratch<float, 2>(rows * stride);
  in_parallel(layer.panels(), PANELS, [&](size_t first, size_t last) {
    network_kernels().multiply(layer.weights(), first, last, x, layer.in(), rows, y + first * PANEL, stride);
  });
  for (size_t r = 0; r < rows; ++r) std::fill(y + r * stride + layer.out(), y + (r + 1) * stride, 0.0f);
  return y;
}

void scale(float* row, size_t columns, float by) {
  for (size_t c = 0; c < columns; ++c) row[c] *= by;
}

}  // namespace

DynamicHead::DynamicHead(AdaptiveSoftmax softmax) : softmax_(std::move(softmax)) {
  const std::vector<float> nothing(softmax_.in() * softmax_.in());
  adapter_ = Linear(nothing.data(), softmax_.in(), softmax_.in());
  layers_ = softmax_.layers();
  layers_.insert(layers_.begin(), &adapter_);
  for (const Linear* layer : layers_) sums_.emplace_back(padded(*layer));
}

void DynamicHead::load(size_t i, const float* weight, const float* sums) {
  Linear& layer = *layers_[i];
  layer = Linear(weight, layer.out(), layer.in());
  std::copy_n(sums, layer.out(), sums_[i].data());
}

void DynamicHead::adapt(const float* hidden, size_t rows, float* x) const {
  adapter_.multiply(hidden, rows, x);
  for (size_t i = 0; i < rows * softmax_.in(); ++i) x[i] += hidden[i];
}

void DynamicHead::step(size_t which, const float* errors, const float* x, size_t rows, float rate, float calm,
                       float* slope) {
  // What lies below is told with the weights as they were.
  Linear& layer = *layers_[which];
  const auto& kernels = network_kernels();
  const size_t in = layer.in(), stride = padded(layer);
  if (slope)
    in_parallel(in, INPUTS, [&](size_t first, size_t last) {
      kernels.multiply_back(layer.weights(), first, last, errors, stride, rows, slope, (in + PANEL - 1) / PANEL * PANEL);
    });
  in_parallel(layer.panels(), PANELS, [&](size_t first, size_t last) {
    for (size_t panel = first; panel < last; ++panel)
      kernels.train(layer.packed() + panel * in * PANEL, in, errors + panel * PANEL, stride, x, in, rows,
                    sums_[which].data() + panel * PANEL, rate, calm, scratch<float>(in * PANEL));
  });
}

void DynamicHead::learn(const float* hidden, size_t rows, const int64_t* words, Pace pace, double* prob) {
  const size_t width = softmax_.in(), wide = padded(adapter_);
  const auto& cutoffs = softmax_.cutoffs();
  const float share = 1.0f / float(rows);
  Aligned<float> x(rows * width), slope(rows * wide);
  adapt(hidden, rows, x.data());

  // The rows of each cluster; those of frequent words are the first, OOV words are nowhere.
  std::vector<std::vector<size_t>> members(cutoffs.size());
  std::vector<int64_t> column(rows);
  for (size_t r = 0; r < rows; ++r) {
    const auto at = softmax_.place(words[r]);
    column[r] = at.column;
    if (at.column >= 0) members[at.cluster].push_back(r);
  }
  const Linear& head = *layers_[1];
  float* errors = outputs(head, x.data(), rows);
  in_parallel(rows, 4, [&](size_t first, size_t last) {
    for (size_t r = first; r < last; ++r) {
      float top, sum, *row = errors + r * padded(head);
      network_kernels().odds(row, head.out(), top, sum);
      prob[r] = column[r] < 0 ? 0.0 : double(row[column[r]]) / double(sum);
      // An OOV word is a word of the segment that says nothing.
      scale(row, head.out(), column[r] < 0 ? 0.0f : share / sum);
      if (column[r] >= 0) row[column[r]] -= share;
    }
  });
  step(1, errors, x.data(), rows, pace.rate, pace.calm, slope.data());

  for (size_t cluster = 1; cluster < cutoffs.size(); ++cluster) {
    const auto& member = members[cluster];
    const size_t many = member.size(), narrow = 2 * cluster, own = narrow + 1;
    if (many == 0) continue;
    const Linear& layer = *layers_[own];
    Aligned<float> here(many * width), inner(many * layer.in()), below(many * wide);
    for (size_t i = 0; i < many; ++i) std::copy_n(x.data() + member[i] * width, width, here.data() + i * width);
    layers_[narrow]->multiply(here.data(), many, inner.data());
    errors = outputs(layer, inner.data(), many);
    in_parallel(many, 1, [&](size_t i, size_t) {
      float* row = errors + i * padded(layer);
      const size_t word = words[member[i]] - cutoffs[cluster - 1], columns = layer.out();
      ClusterSoftmax softmax;
      std::vector<double> tops;
      for (size_t at = 0; at < columns; at += CHUNK)
        tops.push_back(softmax.add(row + at, std::min(CHUNK, columns - at), at, word));
      prob[member[i]] *= softmax.prob();
      for (size_t at = 0; at < columns; at += CHUNK)
        scale(row + at, std::min(CHUNK, columns - at),
              float(share * std::exp(tops[at / CHUNK] - softmax.top) / softmax.sum));
      row[word] -= share;
    });
    Aligned<float> narrowed(many * padded(*layers_[narrow]));
    step(own, errors, inner.data(), many, pace.rate, pace.calm, narrowed.data());
    step(narrow, narrowed.data(), here.data(), many, pace.rate, pace.calm, below.data());
    for (size_t i = 0; i < many; ++i)
      for (size_t k = 0; k < width; ++k) slope[member[i] * wide + k] += below[i * wide + k];
  }
  step(0, slope.data(), hidden, rows, pace.adapter, pace.calm, nullptr);
}

}  // namespace unbounded
