// One row of neighbours out of two, each of them nearest first.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace unbounded {

// Squared distances and places of one row.
template <class Place>
struct Found {
  const float* squared;
  const Place* places;
  size_t size;
};

// The nearest of both, as many as `mine` has room for; of two as near the one at the lower position.
// Of what is taken in, entry e is at position step * e + first.
inline void merge(Found<int64_t> mine, Found<uint32_t> theirs, int64_t step, int64_t first, float* __restrict out,
                  int64_t* __restrict at) {
  const size_t k = mine.size;
  size_t i = 0, j = 0, slot = 0;
  // What is there comes first: the rest is at no position, or infinitely far.
  while (mine.size && mine.places[mine.size - 1] < 0) --mine.size;
  while (theirs.size && !(theirs.squared[theirs.size - 1] < INFINITY)) --theirs.size;
  const auto place = [&](size_t n) { return int64_t(theirs.places[n]) * step + first; };
  for (; slot < k && i < mine.size && j < theirs.size; ++slot) {
    // Without branches: which of the two is nearer is anybody's guess.
    const float far = mine.squared[i], far2 = theirs.squared[j];
    const int64_t place2 = place(j), take = -int64_t((far2 < far) | ((far2 == far) & (place2 < mine.places[i])));
    const float fars[2] = {far, far2};
    out[slot] = fars[-take];
    at[slot] = (take & place2) | (~take & mine.places[i]);
    j -= take, i += 1 + take;
  }
  for (; slot < k && j < theirs.size; ++slot, ++j) out[slot] = theirs.squared[j], at[slot] = place(j);
  for (; slot < k; ++slot, ++i) out[slot] = mine.squared[i], at[slot] = mine.places[i];
}

}  // namespace unbounded
