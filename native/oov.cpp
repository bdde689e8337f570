// Vectors of out-of-vocabulary words: what the network would read, guessed from the spelling.
#include <algorithm>
#include <cmath>

#include "arrays.h"
#include "threads.h"

namespace unbounded {
namespace {

// Prefixes, suffixes, runs of three and four letters, shape, length and number of digits.
enum Feature : uint64_t { prefix = 1, suffix, run, shape, length, digits };
constexpr int64_t kPrefixes = 4, kSuffixes = 5, kLongest = 12;
constexpr uint32_t kEdge = 0;

uint64_t mix(uint64_t key, uint64_t letter) {
  key = (key ^ letter) * 0xBF58476D1CE4E5B9;
  return key ^ key >> 29;
}

bool is_digit(uint32_t letter) { return letter >= '0' && letter <= '9'; }

// Digits alike, capitals alike, other letters alike; signs as they are.
uint32_t class_of(uint32_t letter) {
  if (is_digit(letter)) return '0';
  if (letter >= 'A' && letter <= 'Z') return 'A';
  return (letter >= 'a' && letter <= 'z') || letter > 127 ? 'a' : letter;
}

// Hashes what is to be seen of a word into one of `size` features each; how many there are.
int64_t features_of(const uint32_t* word, int64_t n, uint64_t size, int64_t* out) {
  int64_t used = 0;
  const auto add = [&](uint64_t key) { out[used++] = int64_t(key % size); };
  uint64_t key = mix(prefix, 0);
  for (int64_t i = 0; i < std::min(kPrefixes, n); ++i) add(key = mix(key, word[i]));
  key = mix(suffix, 0);
  for (int64_t i = 0; i < std::min(kSuffixes, n); ++i) add(key = mix(key, word[n - 1 - i]));
  for (int64_t many = 3; many < 5; ++many)
    for (int64_t first = -1; first < n + 2 - many; ++first) {
      key = mix(run, many);
      for (int64_t i = first; i < first + many; ++i) key = mix(key, i >= 0 && i < n ? word[i] : kEdge);
      add(key);
    }
  int64_t found = 0;
  key = mix(shape, 0);
  for (int64_t i = 0; i < n; ++i) {
    found += is_digit(word[i]);
    if (!i || class_of(word[i]) != class_of(word[i - 1])) key = mix(key, class_of(word[i]));
  }
  add(key);
  add(mix(mix(length, 0), std::min(n, kLongest)));
  add(mix(mix(digits, 0), std::min(found, kLongest)));
  return used;
}

// The features of each word, one word after another, and where each word's end.
struct Features {
  Features(nb::handle features_, nb::handle ends_, size_t size)
      : features(features_, "features"), ends(ends_, "ends") {
    int64_t begin = 0;
    for (size_t i = 0; i < ends.size(); begin = ends[i++])
      if (ends[i] <= begin) require(false, "a word without features");
    require(size_t(begin) == features.size(), "ends must end with the number of features");
    for (size_t i = 0; i < features.size(); ++i)
      if (features[i] < 0 || size_t(features[i]) >= size)
        require(false, "feature " + std::to_string(features[i]) + " of " + std::to_string(size));
  }

  int64_t begin(size_t i) const { return i ? ends[i - 1] : 0; }

  Array<const int64_t, 1> features, ends;
};

}  // namespace

void bind_oov(nb::module_& m) {
  m.def("oov_features", [](nb::handle letters_, nb::handle lengths_, int64_t size, nb::handle features_,
                           nb::handle ends_) {
    Array<const uint32_t, 1> letters(letters_, "letters");
    Array<const int64_t, 1> lengths(lengths_, "lengths");
    Array<int64_t, 1> features(features_, "features"), ends(ends_, "ends");
    int64_t left = int64_t(letters.size());
    for (size_t i = 0; i < lengths.size(); left -= lengths[i++])
      require(lengths[i] >= 0 && lengths[i] <= left, "lengths that are not those of all letters");
    require(left == 0, "lengths that are not those of all letters");
    // A word of n letters has at most 2 n - 1 runs of three and four with its two edges.
    require(size > 0 && ends.size() == lengths.size() &&
                features.size() >= 2 * letters.size() + (kPrefixes + kSuffixes + 3) * lengths.size(),
            "no room for all features; 2 for each letter and 12 for each word are needed");
    nb::gil_scoped_release free;
    int64_t used = 0;
    const uint32_t* word = letters.data();
    for (size_t i = 0; i < lengths.size(); word += lengths[i++])
      ends[i] = used += features_of(word, lengths[i], uint64_t(size), features.data() + used);
    return used;
  });
  m.def("oov_add_up", [](nb::handle features_, nb::handle ends, nb::handle weights_, nb::handle apart_,
                         nb::handle squares_, nb::handle products_) {
    Array<const double, 1> weights(weights_, "weights");
    Array<const double, 2> apart(apart_, "apart");
    Array<double, 2> squares(squares_, "squares"), products(products_, "products");
    const Features words(features_, ends, squares.size());
    const size_t width = apart.size(1);
    require(squares.size(1) == squares.size() && products.size() == squares.size() &&
                products.size(1) == width && apart.size() == words.ends.size() &&
                weights.size() == words.ends.size(),
            "words, weights, vectors and sums do not fit together");
    nb::gil_scoped_release free;
    // The two sums of a weighted least squares: features by features, features by vectors. Each part
    // has features of its own and goes through all words.
    in_parallel(squares.size(), (squares.size() + 15) / 16, [&](size_t start, size_t stop) {
      for (size_t i = 0; i < words.ends.size(); ++i) {
        const int64_t *mine = words.features.data() + words.begin(i), *end = words.features.data() + words.ends[i];
        const double share = weights[i] / double(end - mine), scale = weights[i] / std::sqrt(double(end - mine));
        if (!(weights[i] > 0.0)) continue;
        for (const int64_t* a = mine; a < end; ++a) {
          if (size_t(*a) < start || size_t(*a) >= stop) continue;
          for (const int64_t* b = mine; b < end; ++b) squares.row(*a)[*b] += share;
          for (size_t j = 0; j < width; ++j) products.row(*a)[j] += scale * apart.row(i)[j];
        }
      }
    });
  });
  m.def("oov_look_up", [](nb::handle features_, nb::handle ends, nb::handle weights_, nb::handle out_) {
    Array<const float, 2> weights(weights_, "weights");
    Array<float, 2> out(out_, "out");
    const Features words(features_, ends, weights.size());
    require(out.size() == words.ends.size() && out.size(1) == weights.size(1),
            "rows of vectors that are not those of the words");
    nb::gil_scoped_release free;
    // Word by word, so that its neighbors do not matter.
    for (size_t i = 0; i < out.size(); ++i) {
      const auto scale = float(1.0 / std::sqrt(double(words.ends[i] - words.begin(i))));
      float* row = out.row(i);
      for (int64_t at = words.begin(i); at < words.ends[i]; ++at) {
        const float* said = weights.row(words.features[at]);
        for (size_t j = 0; j < out.size(1); ++j) row[j] += scale * said[j];
      }
    }
  });
}

}  // namespace unbounded
