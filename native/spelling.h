// A character model of words that learns as it reads: chances of bits, mixed by their odds.
//
// A word is written as its bytes and an end mark, and a byte as its bits, so that each step is a
// choice between two: end or go on, zero or one. What was seen in the same place before says how
// likely each choice is; a place is a choice in a context: the last bytes, the part of the word so
// far, its shape.
#pragma once

#include <cstdint>

namespace unbounded {

// Contexts of the last 0, 1, …, 5 bytes; of the letters since the last mark; of shape and length.
// The second edition has two more, the last 3 bytes and shape again, that know the last words only.
constexpr int kSpellingOrders = 6, kSpellingLasting = kSpellingOrders + 2, kSpellingContexts = kSpellingLasting + 2;

// How often a place was seen: never, once, twice, up to 5, up to 19, more.
constexpr int kSpellingClasses = 6;

// Kinds of symbols, and of none; places in a word that are told apart.
constexpr int kSpellingKinds = 6, kSpellingPlaces = 24;

// Rows of mixing weights, some of which are added up for each choice: one for each longest context
// that was seen; then, in the first edition, for each bit of a symbol and the end. In the second for
// each choice itself, for each place in the word, and for the kinds of the last two symbols.
constexpr int kSpellingLongest = kSpellingOrders + 1;
constexpr int spelling_rows(int bits, bool first) {
  return kSpellingLongest + (first ? 1 + bits : (1 << bits) + kSpellingPlaces + kSpellingKinds * kSpellingKinds);
}

struct Speller {
  uint64_t* slots;  // 32 bits of key, 22 of chance, 10 of count; 0 is empty
  uint64_t size;    // a power of two
  int64_t* counters;  // places in the table, words learned
  float (*weights)[kSpellingClasses];  // rows of so many contexts
  int contexts;
  int bits;         // of a symbol: 8, or fewer in tests

  // Memories go on with the edition that they began with.
  bool first() const { return contexts == kSpellingLasting; }

  // The logarithm of a word's probability; where `shut` is true it cannot end before that symbol.
  double spell(const uint8_t* word, const bool* shut, int64_t length, bool learn);

  // How many places a word of that length may add.
  int64_t places(int64_t length) const { return (1 + length) * (1 + bits) * contexts; }
};

// Puts every slot that is not empty into a larger table of empty ones.
void move_slots(const uint64_t* slots, uint64_t size, uint64_t* to, uint64_t room);

}  // namespace unbounded
