// Codes in inverted lists that are split as they grow: no training, no pause.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codes.h"
#include "growable.h"

namespace unbounded {

// Entries (code, position) in lists, chains of chunks; the centroid of a list is itself a code.
//
// A list that has outgrown 0.7 sqrt(entries) is split in two, so lists follow the keys wherever
// these drift. Lists are split each time `split_every` entries have come, in large datastores up to
// four times as many, and at no other time: in between a search looks into the same lists however
// the stream is cut into blocks.
class Lists {
 public:
  struct Settings {
    int64_t split_every;
    int64_t candidates;  // entries looked at for each neighbour asked for
    int64_t fewest;      // and for however few: one list alone often misses the very nearest
    int64_t stretches;   // from so many usual stretches between splits on they are twice as long
  };
  Lists(Quantizer quantizer, const Settings& settings);

  const Settings settings;

  const Quantizer& quantizer() const { return quantizer_; }
  int64_t entries() const { return entries_; }
  int64_t count() const { return static_cast<int64_t>(lengths.size()); }
  int64_t bytes() const;
  // How many entries may come until lists are split.
  int64_t room() const;

  // The list with the nearest centroid for each key, the older of two as near.
  std::vector<int32_t> assign(const Coded& coded) const;
  // Append a block for which there is room, each entry to its list; then split lists if it is due.
  // `words` are those of the entries, or null where nobody votes.
  void append(uint32_t* codes, const int32_t* to, const int64_t* words, size_t n);
  // Tag all entries anew; words by position.
  void retag(const int32_t* words);

  // Distances of a tile of queries to all centroids, rows of `stride`: chunks() * kChunk.
  void to_centroids(const Coded& coded, size_t first, int many, float* out) const;
  size_t stride() const { return centroids.size() / kCentroidChunkWords * kChunk; }

  Slabs<uint32_t, kChunkWords> chunks;
  Slabs<uint16_t, kChunk> tags;  // of the entries of each chunk
  std::vector<int32_t> next;  // the chunk behind each
  std::vector<int32_t> heads, tails;
  std::vector<int64_t> lengths, settled;  // settled: what lengths were when lists were last split
  std::vector<uint32_t> centroids;
  int64_t free = -1;  // the first of the chunks that were given back

  // Become lists with those arrays; `entries` follow from the lengths.
  void restore();

 private:
  void push(int64_t list, const uint32_t* code, uint16_t tag);
  void split_long_lists();
  void split(int64_t list);
  void take_apart(int64_t list, std::vector<uint32_t>& codes, std::vector<uint16_t>& tagged);

  Quantizer quantizer_;
  int64_t entries_ = 0;
};

// Put a code of `words` into slot `slot` of a chunk, or take it out.
inline void write_code(const uint32_t* code, int words, uint32_t* chunk, int64_t slot) {
  uint32_t* at = chunk + slot / kGroup * kGroup * words + slot % kGroup;
  for (int word = 0; word < words; ++word) at[word * kGroup] = code[word];
}

inline void read_code(const uint32_t* chunk, int64_t slot, int words, uint32_t* code) {
  const uint32_t* at = chunk + slot / kGroup * kGroup * words + slot % kGroup;
  for (int word = 0; word < words; ++word) code[word] = at[word * kGroup];
}

}  // namespace unbounded
