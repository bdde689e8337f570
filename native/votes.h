// Neighbours vote for the word that followed them, the nearer the more.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codes.h"
#include "growable.h"

namespace unbounded {

// The target's part of what the candidates up to `last` count, in doubles. Not a number where there
// is nobody.
inline double mixed_share(const CodeKernels& kernels, const Votes& votes, const Ballot& ballot) {
  float* squared = scratch<float, 1>(ballot.count);
  double *mixed = scratch<double>(ballot.count), found = 0;
  std::vector<size_t> hits;
  size_t n = 0;
  for (size_t i = 0; i < ballot.count; ++i) {
    const uint32_t bits = ballot.bits[i], said = ballot.positions[i], at = said & ~kHit;
    const bool votes_too = bits < ballot.last_bits || (bits == ballot.last_bits && at <= ballot.last_position);
    // Words lie anywhere in memory: only those of which the tag is right are looked at.
    if (votes_too && said & kHit &&
        (at < ballot.known ? ballot.words[at] : ballot.own_words[at - ballot.known]) == ballot.target)
      hits.push_back(n);
    squared[n] = as_float(bits), n += votes_too;
  }
  if (n == 0) return NAN;
  kernels.mix(votes, squared, n, mixed);
  for (size_t i : hits) found += mixed[i];
  return found;
}

// Each kernel's share of the votes for the target, from candidates of which the nearest, up to
// `last`, vote. Where no weight is left (all at the edge of the kernel) the nearest alone vote.
// Not a number where there is nobody. With `trust`, what they say together.
inline void count_votes(const CodeKernels& kernels, const Votes& votes, Ballot ballot, double* shares) {
  if (votes.trust) {
    *shares = mixed_share(kernels, votes, ballot);
    return;
  }
  if (ballot.count == 0) {
    for (int j = 0; j < votes.kernels; ++j) shares[j] = NAN;
    return;
  }
  uint32_t nearest, most;
  kernels.range(ballot.bits, ballot.count, &nearest, &most);
  float furthest = as_float(ballot.last_bits);
  float theta = votes.bandwidth > 0 ? votes.bandwidth * votes.bandwidth : furthest;
  float scale = votes.sharpness / (theta > 0 ? theta : 1.0f);
  ballot.gaussian = votes.gaussian;
  ballot.nearest = as_float(nearest);
  ballot.scale = votes.gaussian ? scale / 2 : scale;
  ballot.kernels = votes.kernels;
  ballot.room = scratch<uint32_t, 1>(2 * (ballot.count + 16));
  double hits[8], totals[8];
  kernels.vote(ballot, hits, totals);
  if (!(totals[0] > 0)) {
    ballot.gaussian = true, ballot.scale = 0;
    ballot.last_bits = nearest, ballot.last_position = ~kHit;
    kernels.vote(ballot, hits, totals);
  }
  for (int j = 0; j < votes.kernels; ++j) shares[j] = totals[j] > 0 ? hits[j] / totals[j] : 0;
}

}  // namespace unbounded
