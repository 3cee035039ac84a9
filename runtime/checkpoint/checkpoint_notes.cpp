#include "runtime/checkpoint/checkpoint_notes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

namespace rivulet::runtime {
namespace {

constexpr std::array measures{Measure::held_out_accuracy, Measure::accuracy, Measure::loss};

template <class T>
bool parse(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_stamp(std::string_view text, Stamp& out) {
  const auto dot = text.find('.');
  return dot != std::string_view::npos && parse(text.substr(0, dot), out.lineage) &&
         parse(text.substr(dot + 1), out.step);
}

std::optional<Score> parse_score(const std::string& measure, const std::string& value) {
  Score score;
  for (const Measure known : measures) {
    if (name_of(known) != measure) continue;
    score.measure = known;
    if (parse(value, score.value) && std::isfinite(score.value)) return score;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Measure measure) noexcept {
  switch (measure) {
    case Measure::held_out_accuracy: return "held_out_accuracy";
    case Measure::accuracy: return "accuracy";
    case Measure::loss: return "loss";
  }
  return "";
}

bool Score::better_than(const Score& other) const noexcept {
  if (measure != other.measure) return false;
  return measure == Measure::loss ? value < other.value : value > other.value;
}

std::string text_of(const CheckpointNotes& notes) {
  std::string text;
  for (const auto& [stamp, note] : notes) {
    text += fmt::format("{} {}", rivulet::text_of(stamp), note.saved_ms);
    if (note.score) text += fmt::format(" {} {}", name_of(note.score->measure), note.score->value);
    text += '\n';
  }
  return text;
}

CheckpointNotes notes_in(std::string_view text) {
  CheckpointNotes notes;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string stamp;
    std::string time;
    std::string measure;
    std::string value;
    words >> stamp >> time >> measure >> value;
    Stamp of;
    CheckpointNote note;
    if (!parse_stamp(stamp, of) || !parse(time, note.saved_ms) || note.saved_ms < 0) continue;
    note.score = parse_score(measure, value);
    notes.insert_or_assign(of, note);
  }
  return notes;
}

std::optional<Stamp> best_of(const CheckpointNotes& notes) {
  std::optional<Stamp> best;
  std::optional<Score> most;
  for (auto at = notes.rbegin(); at != notes.rend(); ++at) {
    const auto& score = at->second.score;
    if (!score || (most && !score->better_than(*most))) continue;
    most = score;
    best = at->first;
  }
  return best;
}

}  // namespace rivulet::runtime
