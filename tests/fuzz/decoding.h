#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stream/decoder.h"
#include "tests/fuzz/target.h"

/// What the targets of the decoders share.
namespace rivulet::fuzz {

/// A decoder that the configuration is right for.
std::unique_ptr<stream::Decoder> make_decoder(const stream::DecodeConfig& config);

/// One step over a record: the numbers of a row, the target last, or why there is none.
struct Step {
  std::vector<float> row;
  std::optional<DropReason> dropped;
  /// A NaN is equal to itself.
  bool operator==(const Step& other) const;
};

/// What a decoder may make of a row.
struct Allowed {
  std::uint32_t classes = 0;        ///< labels are below that; 0: any number
  std::size_t columns_missing = 0;  ///< the first that may be NaN, for somebody who knows a mean
};

/// Reads a record to its end and checks what every decoder promises: only finite numbers, NaN where it is
/// allowed, labels that are classes, words for every drop, an end after at most one step for each byte, and
/// the same again when the record is read a second time.
std::vector<Step> read_record(stream::Decoder& decoder, const Allowed& allowed, Input input);
std::vector<Step> read_record(stream::Decoder& decoder, std::uint32_t classes, Input input);

/// The rows among the steps, written by `write` and read again, must be the same rows.
void check_rows_survive(stream::Decoder& decoder, std::uint32_t classes, const std::vector<Step>& steps,
                        const std::function<std::string(const std::vector<float>&)>& write);

/// A number as text from which the same number is read.
std::string text_of_number(float x);

}  // namespace rivulet::fuzz
