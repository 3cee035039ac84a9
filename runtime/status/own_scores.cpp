#include "runtime/status/own_scores.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rivulet::runtime {
namespace {

using Json = nlohmann::ordered_json;

std::optional<double> share(std::uint64_t part, std::uint64_t of) {
  if (of == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(of);
}

Json known(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> number(const Json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

Json classes_json(const OwnScores& scores) {
  Json out = Json::array();
  for (std::size_t c = 0; c < scores.classes.size(); ++c) {
    const ClassCounts& counts = scores.classes[c];
    if (counts.rows == 0 && counts.predicted == 0) continue;
    out.push_back({{"class", scores.names[c]},
                   {"rows", counts.rows},
                   {"predicted", counts.predicted},
                   {"right", counts.right},
                   {"recall", known(counts.recall())},
                   {"precision", known(counts.precision())}});
  }
  return out;
}

/// Returns the mean of both, weighted by rows; nullopt if either is missing.
std::optional<double> mean_of(const std::optional<double>& a, std::uint64_t rows_a,
                              const std::optional<double>& b, std::uint64_t rows_b) {
  if (!a || !b) return std::nullopt;
  const auto of_a = static_cast<double>(rows_a);
  const auto of_b = static_cast<double>(rows_b);
  return (*a * of_a + *b * of_b) / (of_a + of_b);
}

/// Matches classes by name: each device lists only those that occur.
void add_classes(OwnScores& sum, const OwnScores& one) {
  std::vector<std::string>& names = sum.names;
  for (std::size_t c = 0; c < one.classes.size(); ++c) {
    const std::string& name = one.names[c];
    const auto at = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (at == names.size()) {
      names.push_back(name);
      sum.classes.emplace_back();
    }
    sum.classes[at].rows += one.classes[c].rows;
    sum.classes[at].predicted += one.classes[c].predicted;
    sum.classes[at].right += one.classes[c].right;
  }
}

/// Returns whether all classes are listed: a device lists only the first ones.
bool lists_all(const OwnScores& scores) {
  std::uint64_t rows = 0;
  for (const ClassCounts& c : scores.classes) rows += c.rows;
  return rows == scores.rows;
}

/// `sum` has the classes of both. The largest class is known if both agree on it, or if both list all
/// classes.
void find_largest(OwnScores& sum, const OwnScores& a, const OwnScores& b) {
  sum.largest_share = std::nullopt;
  if (!a.largest_share || !b.largest_share) return;
  if (a.largest_class == b.largest_class) {
    sum.largest_share = mean_of(a.largest_share, a.rows, b.largest_share, b.rows);
    return;
  }
  const auto largest = std::ranges::max_element(sum.classes, {}, &ClassCounts::rows);
  if (!lists_all(sum) || largest == sum.classes.end()) return;
  sum.largest_share = share(largest->rows, sum.rows);
  sum.largest_class = sum.names[static_cast<std::size_t>(largest - sum.classes.begin())];
}

}  // namespace

std::optional<double> ClassCounts::recall() const {
  return share(right, rows);
}

std::optional<double> ClassCounts::precision() const {
  return share(right, predicted);
}

std::string to_json(const OwnScores& scores) {
  Json out;
  out["rows"] = scores.rows;
  out["loss"] = scores.loss;  // NaN becomes null
  out["accuracy"] = known(scores.accuracy);
  out["largest_class"] = scores.largest_share ? Json(scores.largest_class) : Json(nullptr);
  out["largest_class_share"] = known(scores.largest_share);
  out["classes"] = classes_json(scores);
  out["mean_absolute_error"] = known(scores.mean_absolute_error);
  out["r2"] = known(scores.r2);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);  // a class name may contain any bytes
}

OwnScores own_scores_from(const std::string& json) {
  const Json in = Json::parse(json);
  OwnScores out;
  in.at("rows").get_to(out.rows);
  out.loss = number(in.at("loss")).value_or(out.loss);
  out.accuracy = number(in.at("accuracy"));
  out.largest_share = number(in.at("largest_class_share"));
  if (out.largest_share) in.at("largest_class").get_to(out.largest_class);
  for (const Json& c : in.at("classes")) {
    out.names.push_back(c.at("class").get<std::string>());
    out.classes.push_back({c.at("rows").get<std::uint64_t>(), c.at("predicted").get<std::uint64_t>(),
                           c.at("right").get<std::uint64_t>()});
  }
  out.mean_absolute_error = number(in.at("mean_absolute_error"));
  out.r2 = number(in.at("r2"));
  return out;
}

OwnScores together(const OwnScores& a, const OwnScores& b) {
  if (a.rows == 0) return b;
  if (b.rows == 0) return a;
  OwnScores out = a;
  out.rows += b.rows;
  out.loss = *mean_of(a.loss, a.rows, b.loss, b.rows);
  out.accuracy = mean_of(a.accuracy, a.rows, b.accuracy, b.rows);
  out.mean_absolute_error = mean_of(a.mean_absolute_error, a.rows, b.mean_absolute_error, b.rows);
  out.r2 = std::nullopt;  // unknown: depends on the distance between the devices' target means
  add_classes(out, b);
  find_largest(out, a, b);
  return out;
}

}  // namespace rivulet::runtime
