// Neighbours vote for the word that followed them, the nearer the more.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codes.h"

namespace unbounded {

// A kernel K(sqrt(sharpness) d / theta), or several side by side, each twice as sharp as the one
// before. Theta is the bandwidth, or if that is 0 the distance to the furthest neighbour.
struct Votes {
  bool gaussian;
  float sharpness, bandwidth;
  int kernels;
};

// Each kernel's share of the votes for the target, from candidates of which the nearest, up to
// `last`, vote. Where no weight is left (all at the edge of the kernel) the nearest alone vote.
// Not a number where there is nobody.
inline void count_votes(const CodeKernels& kernels, const Votes& votes, Ballot ballot, double* shares) {
  if (ballot.count == 0) {
    for (int j = 0; j < votes.kernels; ++j) shares[j] = NAN;
    return;
  }
  uint32_t nearest = kInfinity;
  for (size_t i = 0; i < ballot.count; ++i)
    nearest = ballot.bits[i] < nearest ? ballot.bits[i] : nearest;
  float furthest = as_float(ballot.last_bits);
  float theta = votes.bandwidth > 0 ? votes.bandwidth * votes.bandwidth : furthest;
  float scale = votes.sharpness / (theta > 0 ? theta : 1.0f);
  ballot.gaussian = votes.gaussian;
  ballot.nearest = as_float(nearest);
  ballot.scale = votes.gaussian ? scale / 2 : scale;
  ballot.kernels = votes.kernels;
  double hits[8], totals[8];
  kernels.vote(ballot, hits, totals);
  if (!(totals[0] > 0)) {
    ballot.gaussian = true, ballot.scale = 0;
    ballot.last_bits = nearest, ballot.last_position = ~kHit;
    kernels.vote(ballot, hits, totals);
  }
  for (int j = 0; j < votes.kernels; ++j) shares[j] = totals[j] > 0 ? hits[j] / totals[j] : 0;
}

// What each of k neighbours counts when the kernels are trusted so: their shares, mixed. Nothing for
// those at infinity.
inline void mix_weights(const Votes& votes, const float* squared, size_t k, const double* trust, double* mixed) {
  double nearest = INFINITY, furthest = 0, total = 0;
  for (size_t i = 0; i < k; ++i)
    if (std::isfinite(squared[i])) {
      nearest = std::fmin(nearest, squared[i]);
      furthest = std::fmax(furthest, squared[i]);
    }
  double theta = votes.bandwidth > 0 ? static_cast<double>(votes.bandwidth) * votes.bandwidth : furthest;
  double scale = votes.sharpness / (theta > 0 ? theta : 1.0);
  std::vector<double> weights(k);
  for (size_t i = 0; i < k; ++i) {
    if (!std::isfinite(squared[i])) continue;
    weights[i] = votes.gaussian ? std::exp((nearest - squared[i]) * (scale / 2)) : std::fmax(1 - squared[i] * scale, 0);
    total += weights[i];
  }
  for (size_t i = 0; i < k && !(total > 0); ++i) weights[i] = std::isfinite(squared[i]) && squared[i] == nearest;
  for (int j = 0; j < votes.kernels; ++j) {
    total = 0;
    for (double each : weights) total += each;
    for (size_t i = 0; i < k; ++i) {
      mixed[i] += total > 0 ? trust[j] * weights[i] / total : 0;
      weights[i] *= weights[i];
    }
  }
}

}  // namespace unbounded
