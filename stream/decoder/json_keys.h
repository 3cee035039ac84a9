#pragma once
#include "stream/decoder/text_keys.h"

namespace rivulet::stream {

inline constexpr Key json_keys[] = {
    {.name = "decode.json.features",
     .type = KeyType::texts,
     .text = "[]",
     .help = "paths to numbers: a.b, a[2], a[0:3] (without the end)",
     .sample = "#[\"temp\", \"vibration.rms\", \"current[0:3]\"]"},
    {.name = "decode.json.target",
     .type = KeyType::text,
     .text = "\"\"",
     .help = "path to the label: a number; classes: a whole number from 0 on, or one of decode.json.classes",
     .sample = "#\"label\""},
    {.name = "decode.json.classes",
     .type = KeyType::texts,
     .text = "[]",
     .help = "labels that are text, true or false: the first is class 0; model.classes follows",
     .sample = "#[\"ok\", \"fault\"]"},
    shape_key("decode.json.shape"),
    scale_key("decode.json.scale"),
    shift_key("decode.json.shift"),
    decimal_key("decode.json.decimal", ". or , of numbers in texts"),
    where_key("decode.json.where",
              "PATH = VALUE: only rows with this text there; others are left out, and are no errors"),
    missing_key("decode.json.missing"),
    fill_key("decode.json.fill"),
};

}  // namespace rivulet::stream
