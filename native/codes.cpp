#include "codes.h"

#include <algorithm>
#include <cmath>

#include "threads.h"

namespace unbounded {

Quantizer::Quantizer(const float* mean, const float* axes, const float* steps, size_t width)
    : mean_(mean, mean + width), axes_(width * kPadded), steps_(steps, steps + kAxes) {
  for (size_t i = 0; i < width; ++i)
    std::copy(axes + i * kAxes, axes + (i + 1) * kAxes, axes_.begin() + i * kPadded);
}

namespace {

// The nearest of 2 * half levels along an axis; adds the square of the place it stands for.
uint32_t level_of(float along, float step, int half, float& length) {
  int level = half;
  if (step > 0) {
    double place = std::floor(along / step) + half;
    level = static_cast<int>(std::min(std::max(place, 0.0), 2.0 * half - 1));
  }
  float place = (static_cast<float>(level) - (static_cast<float>(half) - 0.5f)) * step;
  length += place * place;
  return static_cast<uint32_t>(level);
}

// Axes 0 to 3 of a word are in the low halves of its bytes, 4 to 7 in the high ones.
int shift_of(int axis) { return 8 * (axis % 4) + 4 * ((axis / 4) % 2); }

}  // namespace

void Quantizer::encode(const float* along, uint32_t* code) const {
  std::fill(code, code + kLength, 0u);
  float length = 0;
  for (int axis = 0; axis < kAxes; ++axis)
    code[axis / 8] |= level_of(along[axis], steps_[axis], 8, length) << shift_of(axis);
  code[kLength] = as_bits(length);
}

void Quantizer::encode_centroid(const float* along, uint32_t* code) const {
  std::fill(code, code + kCentroidWords, 0u);
  float length = 0;
  for (int axis = 0; axis < kAxes; ++axis)
    code[axis / 4] |= level_of(along[axis], steps_[axis] / 16.0f, 128, length) << (8 * (axis % 4));
  code[kCentroidWords - 1] = as_bits(length);
}

void Quantizer::quantize_query(const float* along, int8_t* query, float* offset, float* scale,
                               float* total) const {
  float largest = 0, length = 0, sum = 0;
  for (int axis = 0; axis < kAxes; ++axis) {
    largest = std::max(largest, std::fabs(along[axis] * steps_[axis]));
    length += along[axis] * along[axis];
  }
  float unit = largest / 127.0f;
  for (int axis = 0; axis < kAxes; ++axis) {
    query[axis] = 0;
    if (unit > 0) query[axis] = static_cast<int8_t>(std::rint(along[axis] * steps_[axis] / unit));
    sum += static_cast<float>(query[axis]);
  }
  // The sum of q x with x = (level - 7.5) * step, for a centroid (level - 127.5) * step / 16.
  *offset = length + 15.0f * unit * sum;
  *scale = 2.0f * unit;
  *total = 0.9375f * unit * sum;
}

void Quantizer::decode(const uint32_t* code, float* along) const {
  for (int axis = 0; axis < kAxes; ++axis) {
    uint32_t level = (code[axis / 8] >> shift_of(axis)) & 15;
    along[axis] = (static_cast<float>(level) - 7.5f) * steps_[axis];
  }
}

Coded encode(const Quantizer& quantizer, const float* keys, size_t n) {
  Coded coded(n);
  const auto& kernels = code_kernels();
  in_parallel(n, 256, [&](size_t start, size_t stop) {
    float along[kPadded];
    for (size_t t = start; t < stop; ++t) {
      kernels.project(keys + t * quantizer.width(), quantizer.mean(), quantizer.axes(),
                      quantizer.width(), along);
      quantizer.encode(along, &coded.codes[t * kWords]);
      quantizer.quantize_query(along, &coded.queries[t * kAxes], &coded.offsets[t],
                               &coded.scales[t], &coded.totals[t]);
    }
  });
  return coded;
}

}  // namespace unbounded
