#pragma once
#include <string>

#include "stream/decoder.h"

/// Decoder settings for tests without a configuration.
namespace rivulet::testing {

/// Adds the keys' defaults for settings that `config` lacks.
inline stream::DecodeConfig with_decode_defaults(stream::DecodeConfig config) {
  for (const char* key : {"decode.raw.label", "decode.raw.features"})
    if (!config.settings.has<std::string>(key)) config.settings.set(key, std::string("u8"));
  if (!config.settings.has<std::string>("decode.csv.delimiter"))
    config.settings.set("decode.csv.delimiter", std::string(","));
  if (!config.settings.has<Settings::Texts>("decode.csv.columns"))
    config.settings.set("decode.csv.columns", Settings::Texts{});
  return config;
}

inline void set_raw(Settings& settings, const std::string& label, const std::string& features) {
  settings.set("decode.raw.label", label);
  settings.set("decode.raw.features", features);
}

}  // namespace rivulet::testing
