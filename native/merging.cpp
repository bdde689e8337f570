// One row of neighbors out of two, each of them nearest first.
#include <cmath>

#include "arrays.h"

namespace unbounded {
namespace {

template <class Place>
struct Found {
  const float* squared;
  const int32_t* words;
  const Place* places;
  size_t size;
};

void merge(Found<int64_t> mine, Found<uint32_t> theirs, const int64_t* table, size_t known, int64_t step,
           int64_t first, float* __restrict out, int32_t* __restrict words, int64_t* __restrict at) {
  const size_t k = mine.size;
  size_t i = 0, j = 0, slot = 0;
  // What is there comes first: the rest is at no position, or infinitely far.
  while (mine.size && mine.places[mine.size - 1] < 0) --mine.size;
  while (theirs.size && !(theirs.squared[theirs.size - 1] < INFINITY)) --theirs.size;
  const auto place = [&](size_t n) { return int64_t(theirs.places[n]) * step + first; };
  const auto word = [&](size_t n) {
    if (size_t(theirs.words[n]) >= known) require(false, "a word beyond its shard's table");
    return int32_t(table[theirs.words[n]]);
  };
  for (; slot < k && i < mine.size && j < theirs.size; ++slot) {
    // Without branches: which of the two is nearer is anybody's guess.
    const float far = mine.squared[i], far2 = theirs.squared[j];
    const int64_t place2 = place(j), take = -int64_t((far2 < far) | ((far2 == far) & (place2 < mine.places[i])));
    const int32_t both[2] = {mine.words[i], word(j)};
    const float fars[2] = {far, far2};
    out[slot] = fars[-take];
    words[slot] = both[-take];
    at[slot] = (take & place2) | (~take & mine.places[i]);
    j -= take, i += 1 + take;
  }
  for (; slot < k && j < theirs.size; ++slot, ++j)
    out[slot] = theirs.squared[j], words[slot] = word(j), at[slot] = place(j);
  for (; slot < k; ++slot, ++i)
    out[slot] = mine.squared[i], words[slot] = mine.words[i], at[slot] = mine.places[i];
}

}  // namespace

void bind_merging(nb::module_& m) {
  // Of two as near the one at the lower position. What is taken in: entry e is at position
  // step · e + first, word w is table[w].
  m.def("merge_neighbors", [](nb::handle squared_, nb::handle words_, nb::handle places_,
                              nb::handle squared2_, nb::handle entries2_, nb::handle words2_,
                              nb::handle table_, int64_t step, int64_t first, nb::handle out_,
                              nb::handle out_words_, nb::handle out_at_) {
    Array<const float, 2> squared(squared_, "squared"), squared2(squared2_, "squared2");
    Array<const int32_t, 2> words(words_, "words");
    Array<const int64_t, 2> places(places_, "positions");
    Array<const uint32_t, 2> entries2(entries2_, "entries");
    Array<const int32_t, 2> words2(words2_, "words2");
    Array<const int64_t, 1> table(table_, "table");
    Array<float, 2> out(out_, "out");
    Array<int32_t, 2> out_words(out_words_, "out words");
    Array<int64_t, 2> out_at(out_at_, "out positions");
    const auto like = [](const auto& a, const auto& b) {
      return a.size(0) == b.size(0) && a.size(1) == b.size(1);
    };
    require(like(words, squared) && like(places, squared) && like(out, squared) &&
                like(out_words, squared) && like(out_at, squared) && like(entries2, squared2) &&
                like(words2, squared2) && squared2.size() == squared.size(),
            "neighbors that are not of the same rows and columns");
    nb::gil_scoped_release free;
    for (size_t t = 0; t < out.size(); ++t)
      merge({squared.row(t), words.row(t), places.row(t), out.size(1)},
            {squared2.row(t), words2.row(t), entries2.row(t), squared2.size(1)}, table.data(),
            table.size(), step, first, out.row(t), out_words.row(t), out_at.row(t));
  });
}

}  // namespace unbounded
