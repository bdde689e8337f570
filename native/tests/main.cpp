// All kernels without Python: the same from every instruction set, number of threads and cut of the
// stream, under sanitizers and on other processors (`make sanitize`, `make arm`).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../dynamic_head.h"
#include "../exact.h"
#include "../isa.h"
#include "../lists.h"
#include "../mixture.h"
#include "../network.h"
#include "../ngram.h"
#include "../oov.h"
#include "../search.h"
#include "../spelling.h"
#include "../threads.h"
#include "made_up.h"

using namespace unbounded;

namespace {

// What the datastore's integers are on the made-up stream below, on the first machine that ran it.
constexpr uint64_t kExpected = 13530271335262837415ull;

Result datastore(size_t) {
  constexpr size_t kWidth = 40;
  Random random;
  std::vector<float> mean(kWidth), axes(kWidth * kAxes, 0.0f), steps(kAxes, 0.0f);
  for (size_t i = 0; i < kWidth; ++i) axes[i * kAxes + i] = 1.0f, steps[i] = 0.25f;
  Lists lists(Quantizer(mean.data(), axes.data(), steps.data(), kWidth), {256, 8, 64, 1024});
  std::vector<int32_t> words;
  Result result;
  const double trust[4] = {0.4, 0.3, 0.2, 0.1};
  const Votes votes{true, 4.0f, 0.0f, 4}, together{true, 4.0f, 0.0f, 4, trust};
  while (lists.entries() < 6000) {
    size_t n = static_cast<size_t>(std::min<int64_t>(lists.room(), 1 + random.next() % 200));
    std::vector<float> keys = random.values(n * kWidth);
    std::vector<int64_t> targets = random.words(n, 50);
    Coded coded = encode(lists.quantizer(), keys.data(), n);
    result.integers(coded.codes);
    std::vector<int32_t> to;
    if (lists.entries() == 0) {
      to = lists.assign(coded);
    } else {
      size_t k = static_cast<size_t>(std::min<int64_t>(30, lists.entries()));
      Search search(lists, coded, static_cast<int64_t>(k), true, targets.data());
      std::vector<float> squared(n * k);
      std::vector<int64_t> positions(n * k);
      search.neighbours(squared.data(), positions.data());
      result.integers(squared);
      result.integers(positions);
      std::vector<double> shares(n * 4);
      search.score(votes, words.data(), shares.data());
      result.floats(shares);
      shares.resize(n);
      search.score(together, words.data(), shares.data());
      result.floats(shares);
      to = search.nearest_lists();
    }
    lists.append(coded.codes.data(), to.data(), targets.data(), n);
    // The same keys searched exactly.
    std::vector<int64_t> low(n, 0), high(n);
    std::vector<int32_t> own(targets.begin(), targets.end());
    for (size_t t = 0; t < n; ++t) high[t] = static_cast<int64_t>(t);
    std::vector<double> shares(n * 4);
    const Exact exact{keys.data(), n, keys.data(), kWidth, low.data(), high.data()};
    exact.score(20, votes, own.data(), targets.data(), shares.data());
    result.floats(shares);
    shares.resize(n);
    exact.score(20, together, own.data(), targets.data(), shares.data());
    result.floats(shares);
    words.insert(words.end(), targets.begin(), targets.end());
  }
  result.integers(lists.lengths);
  result.integers(lists.centroids);
  return result;
}

// Exact search of keys of any width, each query seeing those before it.
Result exact(size_t cut) {
  Result result;
  for (size_t width : {1, 7, 33, 96}) {
    Random random;
    constexpr size_t kRows = 150, kNearest = 12;
    const std::vector<float> keys = random.values(kRows * width);
    std::vector<int64_t> low(kRows), high(kRows);
    for (size_t t = 0; t < kRows; ++t) high[t] = int64_t(t), low[t] = std::max<int64_t>(high[t] - 100, 0);
    std::vector<float> squared(kRows * kNearest);
    std::vector<int64_t> numbers(kRows * kNearest);
    in_pieces(kRows, cut, [&](size_t start, size_t n) {
      Exact{&keys[start * width], n, keys.data(), width, &low[start], &high[start]}.neighbours(
          kNearest, &squared[start * kNearest], &numbers[start * kNearest]);
    });
    for (float& each : squared) each = std::isfinite(each) ? each : -1.0f;
    result.floats(squared);
  }
  return result;
}

Result network(size_t cut) {
  constexpr size_t kWords = 60, kIn = 9, kStreams = 2;
  Result result;
  for (Kind kind : {Kind::lstm, Kind::gru, Kind::elman})
    for (size_t units : {5, 64, 71}) {
      Random random;
      const size_t rows = Cell::gates_of(kind) * units;
      const auto input = random.values(rows * kIn), inner = random.values(rows * units, 0.2f);
      const auto bias = random.values(rows), second = random.values(rows);
      const Cell cell(kind, units, kIn, input.data(), inner.data(), bias.data(), second.data());
      const auto vectors = random.values(20 * kIn);
      const auto place = random.words(kWords, 20);
      std::vector<float> alone(cell.parts() * units), hidden(kWords * units);
      in_pieces(kWords, cut, [&](size_t start, size_t n) {
        const auto length = int64_t(n);
        cell.advance(vectors.data(), 20, &place[start], &length, 1, alone.data(), &hidden[start * units]);
      });
      result.floats(hidden);
      // The same words as two streams, and one that has none.
      std::vector<float> beside(cell.parts() * (kStreams + 1) * units), both(kWords * units);
      const int64_t lengths[] = {40, 0, 20};
      cell.advance(vectors.data(), 20, place.data(), lengths, kStreams + 1, beside.data(), both.data());
      if (!std::equal(both.begin(), both.begin() + 40 * units, hidden.begin())) result.numbers.push_back(NAN);
    }
  return result;
}

Result softmax(size_t cut) {
  constexpr size_t kRows = 53, kWidth = 37, kDirections = 13;
  Random random;
  const std::vector<int64_t> cutoffs{90, 140, 2300};
  std::vector<AdaptiveSoftmax::Cluster> clusters;
  for (size_t i = 0; i < 2; ++i) {
    const size_t inner = 11 - 4 * i, out = cutoffs[i + 1] - cutoffs[i];
    clusters.push_back({Linear(random.values(inner * kWidth).data(), inner, kWidth),
                        Linear(random.values(out * inner).data(), out, inner)});
  }
  const AdaptiveSoftmax output(Linear(random.values(92 * kWidth).data(), 92, kWidth), clusters, cutoffs);
  const auto hidden = random.values(kRows * kWidth), signals = random.values(kRows * kDirections);
  auto words = random.words(kRows, 2300);
  words[3] = -1, words[4] = 2300;
  std::vector<double> prob(kRows), share(kRows), shares(kRows), dense(kRows * output.size());
  std::vector<int64_t> column(kRows);
  std::vector<float> odds(kRows * output.columns());
  std::vector<float> change(kDirections * output.columns()), sums(change.size()), slope(change.size());
  const AdaptedHead adapted{kDirections, output.columns(), change.data(), sums.data(), slope.data()};
  size_t waiting = 0;
  in_pieces(kRows, cut, [&](size_t start, size_t n) {
    const float* states = &hidden[start * kWidth];
    float* first = &odds[start * output.columns()];
    output.score(states, n, &words[start], &prob[start], &share[start], &column[start], first);
    output.dense(states, n, &dense[start * output.size()]);
    waiting = adapted.score(first, &column[start], &signals[start * kDirections], n, waiting, 4, 0.1f, 0.01f,
                            &shares[start]);
  });
  Result result;
  result.integers(column);
  for (const auto& each : {prob, share, shares, dense}) result.floats(each);
  result.floats(odds), result.floats(change), result.floats(sums);
  for (size_t t = 0; t < kRows; ++t)
    if (words[t] >= 0 && words[t] < 2300 && std::fabs(dense[t * output.size() + words[t]] - prob[t]) > 1e-6)
      result.numbers.push_back(NAN);
  // Segments of 13 rows, whatever the cut: it learns from none but whole ones.
  DynamicHead dynamic(output);
  for (size_t start = 0; start < kRows; start += 13)
    dynamic.learn(&hidden[start * kWidth], std::min<size_t>(13, kRows - start), &words[start], {0.1f, 0.01f, 0.01f},
                  &prob[start]);
  result.floats(prob);
  for (size_t i = 0; i < dynamic.layers(); ++i) {
    std::vector<float> weight(dynamic.layer(i).in() * dynamic.layer(i).out());
    dynamic.layer(i).unpack(weight.data());
    result.floats(weight);
  }
  constexpr size_t kSteps = 6, kUnits = 21;
  auto gates = random.values(kSteps * 4 * kUnits), cells = random.values((kSteps + 1) * kUnits);
  std::vector<float> slopes(gates.size());
  network_kernels().lstm_backward(gates.data(), cells.data(), random.values(kSteps * kUnits).data(),
                                  random.values(4 * kUnits * kUnits).data(), kSteps, kUnits, slopes.data());
  result.floats(slopes);
  return result;
}

Result mixture(size_t cut) {
  constexpr size_t kRows = 70, kTold = 5;
  Result result;
  for (size_t experts : {1, 3, 9}) {
    Random random;
    const size_t own = 3 * experts + 1, signals = own + kTold;
    std::vector<double> table(kRows * experts), prob(kRows), plain(kRows * experts), gated(kRows), weights(plain.size());
    for (double& each : table) each = double(random.next() % 1000 + 1) / 4000.0;
    table[experts] = 1e-250;  // unlikely, not impossible
    auto told = random.values(kRows * kTold);
    told[7] = NAN;
    std::vector<double> by_rate(kRates * experts, 1.0 / double(experts)), trust(kRates, 1.0 / kRates);
    std::vector<double> scale(signals, 0.3), moments(2 * signals), owned(own, NAN);
    std::vector<float> tilt(experts * signals), squares(tilt.size(), 0.01f);
    int64_t seen = 0;
    const Gate gate{int64_t(experts), int64_t(own), int64_t(signals), scale.data(), &seen, moments.data(), owned.data(),
                    tilt.data(), squares.data()};
    Aligned<double> room(experts * kRateLanes);
    Aligned<float> gate_rows(size_t(gate_room(gate.experts, gate.signals)));
    in_pieces(kRows, cut, [&](size_t start, size_t n) {
      const double* rows = &table[start * experts];
      double* mixed = &plain[start * experts];
      mixture_kernels().online(rows, int64_t(n), gate.experts, by_rate.data(), trust.data(), &prob[start], mixed,
                               room.data());
      mixture_kernels().weigh(gate, &told[start * kTold], mixed, &weights[start * experts], gate_rows.data());
      mixture_kernels().gate(gate, rows, &told[start * kTold], mixed, int64_t(n), &gated[start],
                             &weights[start * experts], gate_rows.data());
    });
    for (const auto& each : {prob, gated, plain, weights, by_rate, trust, moments}) result.floats(each);
    result.floats(tilt);
  }
  return result;
}

template <int V>
Result ngram(size_t cut) {
  constexpr size_t kRows = 600;
  Random random;
  auto words = random.words(kRows, 12);
  std::vector<int32_t> heads((kOrders + 1) * kRows + 1), counts(8 * V * heads.size());
  std::vector<Node<V>> nodes(heads.size());
  std::vector<double> learned(Tree<V>::kAllKinds * 3, 1.0), probs(kRows), walked(kRows), asked(12);
  int64_t contexts[V][kOrders];
  const auto restart = [&] {
    for (auto& each : contexts) std::fill_n(each, kOrders, kNowhere), each[0] = 0;
  };
  restart();
  for (int view = 0; view < V; ++view) nodes[0].last[view] = kNone - 1 - view;
  Tree<V> tree{heads.data(), nodes.data(), reinterpret_cast<Counts*>(counts.data()), 1, V,
               reinterpret_cast<double(*)[3]>(learned.data()), contexts};
  in_pieces(kRows, cut, [&](size_t start, size_t n) { tree.read(&words[start], int64_t(n), 11, &probs[start]); });
  Said said[kOrders][V];
  tree.weigh(said);
  const std::vector<int64_t> every{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  tree.ask(every.data(), 12, 11, said, asked.data());
  in_pieces(kRows, cut, [&](size_t start, size_t n) { tree.walk(&words[start], int64_t(n), 11, &walked[start]); });
  Result result;
  for (const Node<V>& node : nodes) {
    result.integers(std::vector<int32_t>{node.parent, node.word, node.next});
    result.integers(std::vector<int32_t>(node.last, node.last + V));
  }
  result.integers(heads), result.integers(counts);
  result.floats(probs), result.floats(asked), result.floats(walked);
  // Chained again, every node is found where it was.
  std::vector<int32_t> again(heads.size());
  tree.heads = again.data();
  tree.chain_all();
  std::vector<double> twice(12);
  restart();
  tree.weigh(said);
  tree.ask(every.data(), 12, 11, said, twice.data());
  result.floats(twice);
  return result;
}

Result spelling(size_t) {
  Random random;
  uint64_t size = 1 << 10;
  std::vector<uint64_t> slots(size);
  std::vector<int64_t> counters(2);
  std::vector<float> weights(spelling_rows(8, false) * kSpellingContexts * kSpellingClasses, 0.3f);
  Speller speller{slots.data(), size, counters.data(),
                  reinterpret_cast<float(*)[kSpellingClasses]>(weights.data()), kSpellingContexts, 8};
  Result result;
  for (int word = 0; word < 60; ++word) {
    const size_t length = random.next() % 12;
    std::vector<uint8_t> letters(length + 1);
    for (uint8_t& each : letters) each = uint8_t("ab-z.9\xC3\xA9"[random.next() % 8]);
    const bool shut[13] = {true};
    while (2 * (uint64_t(counters[0]) + uint64_t(speller.places(int64_t(length)))) > size) {
      std::vector<uint64_t> grown(2 * size);
      move_slots(slots.data(), size, grown.data(), 2 * size);
      slots.swap(grown), size *= 2;
      speller.slots = slots.data(), speller.size = size;
    }
    for (bool learn : {false, true}) result.numbers.push_back(speller.spell(letters.data(), shut, int64_t(length), learn));
    ++counters[1];
  }
  result.integers(counters);
  return result;
}

Result oov(size_t) {
  constexpr size_t kSize = 40, kWidth = 7;
  Random random;
  std::vector<int64_t> features, ends;
  for (const char* word : {"a", "Zorble", "caf\xE9", "3,141"}) {
    const std::vector<uint32_t> letters(word, word + std::strlen(word));
    oov_features(letters.data(), int64_t(letters.size()), kSize, features);
    ends.push_back(int64_t(features.size()));
  }
  const OovWords words{features.data(), ends.data(), ends.size()};
  const std::vector<double> weights{1.0, 0.5, 0.0, 2.0};
  const auto given = random.values(ends.size() * kWidth), said = random.values(kSize * kWidth);
  const std::vector<double> vectors(given.begin(), given.end());
  std::vector<double> squares(kSize * kSize), products(kSize * kWidth);
  std::vector<float> out(ends.size() * kWidth);
  words.add_up(weights.data(), vectors.data(), kSize, kWidth, squares.data(), products.data());
  words.look_up(said.data(), kWidth, out.data());
  Result result;
  result.integers(features);
  result.floats(squares), result.floats(products), result.floats(out);
  return result;
}

// What was found elsewhere counts as if it had been found here, and of those as far the older do.
Result elsewhere(size_t) {
  const float keys[] = {0, 1, 2, 2, 3, 5}, query[] = {0};
  const int32_t words[] = {7, 8, 7, 8, 9, 7};
  const int64_t target[] = {7}, none[] = {0}, all[] = {6}, two[] = {2};
  Result result;
  for (size_t k : {1, 3, 4, 6, 9}) {
    double here, merged;
    float far;
    Exact{query, 1, keys, 1, none, all}.score(k, Votes{true, 1, 0, 1, nullptr}, words, target, &here);
    // The first four in two parts, in no order, and pads.
    const float even[] = {INFINITY, 4, 0}, odd[] = {4, 1};
    const uint32_t evens[] = {0, 1, 0}, odds[] = {1, 0};
    const Elsewhere found{{{even, evens, 3, 0}, {odd, odds, 2, 1}}, 2, 4};
    Exact{query, 1, keys + 4, 1, none, two}.score(k, Votes{true, 1, 0, 1, nullptr}, words, target, found, &merged, &far);
    if (merged != here) result.numbers.push_back(NAN);
    result.numbers.push_back(merged), result.numbers.push_back(k > 6 ? -1 : far);
  }
  return result;
}

bool throws_again() {
  try {
    in_parallel(100, 1, [](size_t start, size_t) { if (start == 60) throw std::runtime_error("one part failed"); });
    return false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

struct Area {
  const char* name;
  Result (*run)(size_t cut);
  bool same_bits;  // of its numbers, from any cut and number of threads
};

}  // namespace

int main() {
  constexpr Area kAreas[] = {{"datastore", datastore, false}, {"exact", exact, true},       {"network", network, true},
                             {"softmax", softmax, true},      {"mixture", mixture, true},   {"ngram", ngram<1>, true},     {"ngrams", ngram<2>, true},
                             {"spelling", spelling, true},    {"oov", oov, true},           {"elsewhere", elsewhere, true}};
  constexpr size_t kWhole = 1 << 20;
  int passed = 0, failed = 0;
  auto check = [&](bool holds, const std::string& what) {
    ++(holds ? passed : failed);
    if (!holds) std::printf("FAILED: %s\n", what.c_str());
  };
  for (const Area& area : kAreas) {
    set_isa("generic"), set_threads(1);
    const Result plain = area.run(kWhole);
    if (area.run == datastore) check(plain.hash == kExpected, "integers are those of every other machine");
    for (Isa isa : supported_isas()) {
      set_isa(isa_name(isa)), set_threads(1);
      const Result first = area.run(kWhole);
      for (auto [threads, cut] : {std::pair{1, kWhole}, {3, kWhole}, {1, size_t{7}}, {3, size_t{16}}}) {
        if (!area.same_bits && cut != kWhole) continue;
        set_threads(threads);
        const Result found = area.run(cut);
        const std::string where = std::string(area.name) + ", " + isa_name(isa) + ", " + std::to_string(threads) +
                                  " threads, pieces of " + std::to_string(cut);
        check(found.hash == plain.hash, "integers have the same bits: " + where);
        auto agree = [&](const Result& with, double tolerance) {
          return std::equal(found.numbers.begin(), found.numbers.end(), with.numbers.begin(), with.numbers.end(),
                            [&](double a, double b) {
                              return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b)) ||
                                     (!area.same_bits && std::isnan(a) && std::isnan(b));
                            });
        };
        check(agree(plain, 1e-5), "numbers are those of generic code: " + where);
        if (area.same_bits) check(agree(first, 0.0), "numbers have the same bits: " + where);
      }
    }
  }
  set_threads(3);
  check(throws_again(), "what one part throws is thrown again");
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
