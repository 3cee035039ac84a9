#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stream/decoder.h"
#include "tests/fuzz/target.h"

/// Shared by the targets of decoders.
namespace rivulet::fuzz {

/// A decoder for a valid configuration.
std::unique_ptr<stream::Decoder> make_decoder(const stream::DecodeConfig& config);

/// One step over a record: the values of a row, the target last, or a drop with its reason.
struct Step {
  std::vector<float> row;
  std::optional<DropReason> dropped;
  /// A NaN equals itself.
  bool operator==(const Step& other) const;
};

/// Permitted values of a row.
struct Allowed {
  std::uint32_t classes = 0;        ///< labels are below that; 0: any number
  std::size_t columns_missing = 0;  ///< the first ones that may be NaN, for fill with a mean
};

/// Reads a record to its end and checks every decoder's guarantees: finite values, NaN only where permitted,
/// labels within the classes, a text for every drop, no more steps than bytes, and the same result when read
/// again.
std::vector<Step> read_record(stream::Decoder& decoder, const Allowed& allowed, Input input);
std::vector<Step> read_record(stream::Decoder& decoder, std::uint32_t classes, Input input);

/// The rows among the steps, written by `write` and decoded again, must be equal.
void check_rows_survive(stream::Decoder& decoder, std::uint32_t classes, const std::vector<Step>& steps,
                        const std::function<std::string(const std::vector<float>&)>& write);

/// A text from which the same number is read.
std::string text_of_number(float x);

}  // namespace rivulet::fuzz
