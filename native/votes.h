// Neighbours vote for the word that followed them, the nearer the more.
#pragma once

#include <algorithm>
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
  float nearest = INFINITY, furthest = 0;
  for (size_t i = 0; i < k; ++i) {
    nearest = squared[i] < nearest ? squared[i] : nearest;
    furthest = squared[i] > furthest && squared[i] < INFINITY ? squared[i] : furthest;
  }
  const double theta = votes.bandwidth > 0 ? double(votes.bandwidth) * votes.bandwidth : furthest;
  const double scale = votes.sharpness / (theta > 0 ? theta : 1.0);
  std::vector<double> weights(k);
  double total = 0;
  for (size_t i = 0; i < k; ++i) {
    if (!(squared[i] < INFINITY)) continue;
    weights[i] = votes.gaussian ? std::exp((double(nearest) - squared[i]) * (scale / 2))
                                : std::max(1 - squared[i] * scale, 0.0);
    total += weights[i];
  }
  for (size_t i = 0; i < k && !(total > 0); ++i) weights[i] = squared[i] < INFINITY && squared[i] == nearest;
  for (int j = 0; j < votes.kernels; ++j) {
    total = 0;
    for (double each : weights) total += each;
    const double part = total > 0 ? trust[j] / total : 0;
    for (size_t i = 0; i < k; ++i) {
      mixed[i] += part * weights[i];
      weights[i] *= weights[i];
    }
  }
}

}  // namespace unbounded
