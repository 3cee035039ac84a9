#pragma once
#include "stream/decoder/text_keys.h"

namespace rivulet::stream {

inline constexpr Key json_keys[] = {
    {.name = "decode.json.features",
     .type = KeyType::texts,
     .text = "[]",
     .help = "paths of the features: a.b, a[2], a[0:3] (end excluded)",
     .sample = "#[\"temp\", \"vibration.rms\", \"current[0:3]\"]"},
    {.name = "decode.json.target",
     .type = KeyType::text,
     .text = "\"\"",
     .help = "path to the target: a number; with classes: an integer from 0, or one of decode.json.classes",
     .sample = "#\"label\""},
    {.name = "decode.json.classes",
     .type = KeyType::texts,
     .text = "[]",
     .help = "labels (text, true or false), in the order of their classes from 0; sets model.classes",
     .sample = "#[\"ok\", \"fault\"]"},
    shape_key("decode.json.shape"),
    scale_key("decode.json.scale"),
    shift_key("decode.json.shift"),
    decimal_key("decode.json.decimal", "decimal separator of numbers in strings: . or ,"),
    where_key(
        "decode.json.where",
        "PATH = VALUE: selects the rows with this value at the path; others are excluded without an error"),
    missing_key("decode.json.missing"),
    fill_key("decode.json.fill"),
};

}  // namespace rivulet::stream
