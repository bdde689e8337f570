#include "spelling.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace unbounded {
namespace {

constexpr int kContexts = kSpellingContexts, kLasting = kSpellingLasting, kOrders = kSpellingOrders;

// A place seen n times moves by 1 / (n + kDelta) of the way to what comes; what it is seen more often
// than kMost does not count, so that it never stops moving; kFew of the contexts of the last words.
constexpr double kDelta = 1.4;
constexpr int64_t kMost = 255, kFew = 4;

// Step of the mixing weights, how many times as large it begins, and after how many words half of
// that is gone; by edition.
constexpr double kRate[] = {0.002, 0.0006}, kEarly[] = {10.0, 15.0}, kSoon[] = {1000.0, 150.0};

// No choice is surer than this many nats of odds.
constexpr float kSharpest = 14.0f;

constexpr int64_t kWhole = (1 << 22) - 1;
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr uint64_t kBefore = 256, kOutside = 257;  // what stands before the first byte, and before that

// The log odds of a chance kept in 12 bits.
const std::array<float, 4096> kStretch = [] {
  std::array<float, 4096> odds;
  for (int i = 0; i < 4096; ++i) odds[i] = float(std::log((i + 0.5) / (4095.5 - i)));
  return odds;
}();

uint64_t scramble(uint64_t value) {
  value = (value + 1) * kGolden;
  value = (value ^ value >> 32) * 0xD6E8FEB86659FD93;
  return value ^ value >> 32;
}

// Digit, point or comma, beyond ASCII, letter, any other mark.
enum Kind : uint64_t { digit = 1, point, beyond, letter, mark };

Kind kind_of(uint8_t symbol) {
  if (symbol >= '0' && symbol <= '9') return digit;
  if (symbol == ',' || symbol == '.') return point;
  if (symbol >= 128) return beyond;
  return symbol >= 'a' && symbol <= 'z' ? letter : mark;
}

// What has been written so far: the part since the last mark, so that "nissan" in "renault-nissan" is
// spelled as any word, and the shape, in which a run of letters is as good as one.
struct SoFar {
  uint64_t part = 0, shape = 0, last = 0, before = 0;

  void go_on(uint8_t symbol) {
    const Kind kind = kind_of(symbol);
    before = last;
    part = kind == point || kind == mark ? 0 : scramble(part + symbol);
    if (kind != letter || last != kind) shape = scramble(shape + kind);
    last = kind;
  }
};

// The contexts of the symbol at a place of a word, as numbers.
void contexts_at(const uint8_t* word, int64_t at, const SoFar& so_far, int contexts, uint64_t* out) {
  uint64_t number = out[0] = 0;
  for (int64_t back = 1; back < kOrders; ++back) {
    const uint64_t symbol = at >= back ? word[at - back] : at + 1 == back ? kBefore : kOutside;
    out[back] = number = scramble(number + symbol);
  }
  out[kOrders] = so_far.part;
  out[kOrders + 1] = out[kLasting + 1] = so_far.shape * 31 + uint64_t(std::min<int64_t>(at, 20));
  out[kLasting] = out[3];
  for (int i = 0; i < contexts; ++i) out[i] = scramble(out[i] * contexts + i);
}

// Where a place is in the table, or the empty slot where it would be.
uint64_t find(const uint64_t* slots, uint64_t size, uint64_t key) {
  uint64_t at = key & (size - 1);
  while (slots[at] && slots[at] >> 32 != key) at = (at + 1) & (size - 1);
  return at;
}

int class_of(int64_t times) {
  if (times < 3) return int(times);
  return times < 6 ? 3 : times < 20 ? 4 : 5;
}

// Choices that follow each other lie beside each other: a line of 64 bytes has three bits.
uint64_t key_of(uint64_t context, uint64_t node, int level) {
  const int above = level > 3 ? (level - 1) % 3 : 0;
  const uint64_t group = level > 3 ? node >> above : 0;
  const uint64_t within = level > 3 ? uint64_t(1) << above | (node & ((1 << above) - 1)) : node;
  return std::max<uint64_t>((context + group) * kGolden >> 35 << 3 | within, 1);
}

// A place that has seen one choice more.
uint64_t moved(uint64_t slot, int choice, int64_t most) {
  const auto times = int64_t(slot & 1023);
  auto chance = int64_t(slot >> 10 & kWhole);
  chance += int64_t(double(choice * kWhole - chance) / (double(times) + kDelta));
  return slot >> 32 << 32 | uint64_t(chance) << 10 | uint64_t(std::min(times + 1, most));
}

// One word's way through the table.
struct Way {
  Speller& speller;
  bool learn;
  double rate;
  uint64_t contexts[kContexts];
  int sets[4], used;  // rows of weights; the first two are the choice's own

  // Whom to believe depends on where in the word it is, and after what.
  void stand(int64_t at, const SoFar& so_far) {
    const int places = kSpellingLongest + (1 << speller.bits);
    sets[2] = places + int(std::min<int64_t>(at, kSpellingPlaces - 1));
    sets[3] = places + kSpellingPlaces + int(so_far.last * kSpellingKinds + so_far.before);
  }

  // The chance of a choice.
  double choose(uint64_t node, int level, int choice) {
    uint64_t places[kContexts];
    float odds[kContexts];
    int classes[kContexts], longest = 0;
    const int count = speller.contexts;
    for (int i = 0; i < count; ++i) {
      const uint64_t key = key_of(contexts[i], node, level);
      places[i] = find(speller.slots, speller.size, key);
      uint64_t& slot = speller.slots[places[i]];
      odds[i] = 0.0f, classes[i] = i * kSpellingClasses;
      if (slot) {
        odds[i] = kStretch[slot >> 20 & 4095];
        classes[i] += class_of(int64_t(slot & 1023));
        if (i <= kOrders) longest = i;
      } else if (learn) {
        slot = key << 32 | uint64_t(1) << 31;
        speller.counters[0] += 1;
      }
    }
    // And on the longest context that was seen, and on which choice or, once, which bit it is.
    sets[0] = longest, sets[1] = kSpellingLongest + (speller.first() ? level : int(node));
    float* rows[4];
    for (int set = 0; set < used; ++set) rows[set] = speller.weights[sets[set] * count];
    float total = 0.0f;
    for (int i = 0; i < count; ++i) {
      float weight = rows[0][classes[i]] + rows[1][classes[i]];
      for (int set = 2; set < used; ++set) weight += rows[set][classes[i]];
      total += weight * odds[i];
    }
    total = std::min(std::max(total, -kSharpest), kSharpest);
    const double chance = 1.0 / (1.0 + std::exp(-double(total)));
    if (learn) {
      const auto step = float((choice - chance) * rate);
      for (int i = 0; i < count; ++i) {
        for (int set = 0; set < used; ++set) rows[set][classes[i]] += step * odds[i];
        uint64_t& slot = speller.slots[places[i]];
        slot = moved(slot, choice, i < kLasting ? kMost : kFew);
      }
    }
    return choice ? chance : 1.0 - chance;
  }

  // Ask for the lines of memory that a symbol will need.
  void prefetch(int symbol) const {
    for (int i = 0; i < speller.contexts; ++i)
      for (int level = 1; level <= speller.bits; level += 3) {
        const uint64_t node = (1 << (level - 1)) | symbol >> (speller.bits - level + 1);
        __builtin_prefetch(speller.slots + (key_of(contexts[i], node, level) & (speller.size - 1)));
      }
  }
};

}  // namespace

double Speller::spell(const uint8_t* word, const bool* shut, int64_t length, bool learn) {
  const int edition = first() ? 0 : 1;
  const double early = kEarly[edition] / (1.0 + double(counters[1]) / kSoon[edition]);
  Way way{*this, learn, kRate[edition] * (1.0 + early), {}, {}, first() ? 2 : 4};
  SoFar so_far;
  double logprob = 0.0;
  for (int64_t at = 0; at <= length; ++at) {
    contexts_at(word, at, so_far, contexts, way.contexts);
    way.stand(at, so_far);
    const bool ends = at == length;
    if (!ends) way.prefetch(word[at]);
    // Where no word may end there is nothing to choose, and nothing to learn. The chances of one
    // symbol are above e^-14 each: their product cannot vanish.
    double chance = ends || !shut[at] ? way.choose(0, 0, ends) : 1.0;
    uint64_t node = 1;
    for (int level = 1; !ends && level <= bits; ++level) {
      const int choice = word[at] >> (bits - level) & 1;
      chance *= way.choose(node, level, choice);
      node = 2 * node + choice;
    }
    logprob += std::log(chance);
    if (!ends) so_far.go_on(word[at]);
  }
  return logprob;
}

void move_slots(const uint64_t* slots, uint64_t size, uint64_t* to, uint64_t room) {
  for (uint64_t i = 0; i < size; ++i)
    if (slots[i]) to[find(to, room, slots[i] >> 32)] = slots[i];
}

}  // namespace unbounded
