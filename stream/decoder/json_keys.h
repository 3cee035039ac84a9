#pragma once
#include "core/settings.h"
#include "stream/decoder/decimal.h"
#include "stream/decoder/fill.h"
#include "stream/decoder/where.h"

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
    {.name = "decode.json.shape",
     .type = KeyType::integers,
     .text = "[]",
     .help = "empty = one axis",
     .least = 1,
     .most = 1e7,
     .sample = "#[]"},
    {.name = "decode.json.scale",
     .type = KeyType::numbers,
     .text = "\"auto\"",
     .help = "mean 0 and deviation 1, measured in training; or x * scale + shift, [one each]",
     .choices = "auto",
     .sample = "#\"auto\""},
    {.name = "decode.json.shift",
     .type = KeyType::numbers,
     .text = "0.0",
     .help =
         "added in 64 bits, also with scale \"auto\": for numbers like 1e8 + 0.5, which 32 bits cannot hold",
     .sample = "#0.0"},
    {.name = "decode.json.decimal",
     .type = KeyType::text,
     .text = "\".\"",
     .help = ". or , of numbers in texts",
     .fits = is_decimal_sign,
     .form = decimal_form,
     .sample = "#\".\""},
    {.name = "decode.json.where",
     .type = KeyType::text,
     .text = "\"\"",
     .help = "PATH = VALUE: only rows with this text there; others are left out, and are no errors",
     .fits = is_where,
     .form = where_form,
     .sample = "#\"type = reading\""},
    {.name = "decode.json.missing",
     .type = KeyType::numbers,
     .text = "[]",
     .help = "numbers that mean that there is no value, as records have them",
     .sample = "#[-999]"},
    {.name = "decode.json.fill",
     .type = KeyType::text,
     .text = "\"mean\"",
     .help = "mean | last | drop | a number: what a feature without a value becomes; drop: its row is "
             "dropped, as without scale \"auto\"",
     .fits = is_fill,
     .form = fill_form,
     .or_number = true,
     .sample = "#\"mean\""},
};

}  // namespace rivulet::stream
