#include "report/inspection.hpp"

#include "options/input_error.hpp"
#include "report/recorded_operation.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

namespace headroom::bench {
namespace {

using Kind = AllocatorEvent::Kind;

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string unit_of(const RecordingInfo& info, int unit) {
  const bool known = unit >= 0 && static_cast<std::size_t>(unit) < info.units.size();
  return known ? info.units[static_cast<std::size_t>(unit)] : std::string();
}

/// From one mark to another: up to event `last`, and [begin_ns, end_ns) of host time.
struct Range {
  std::uint64_t last = UINT64_MAX;
  std::int64_t begin_ns = INT64_MIN, end_ns = INT64_MAX;
  void end_at(const AllocatorEvent& event) {
    if (last != UINT64_MAX) return;
    last = event.number;
    end_ns = event.time_ns;
  }
};

Range range_from(const AllocatorEvent& event) { return {UINT64_MAX, event.time_ns, INT64_MAX}; }

/// Within a visit the model may mark what it computes; collectives are marked apart.
bool is_of(const InstantChoice& choice, const std::string& mark) {
  const auto [phase, operation] = split_mark(mark);
  const bool is_collective = operation == "all_gather" || operation == "reduce_scatter" || operation == "all_reduce";
  return operation == choice.operation || (phase == choice.operation && !is_collective);
}

/// The first reading: finds the event that is meant, the peak, and how far the log goes.
class Search {
 public:
  Search(const InstantChoice& choice, Inspection& found) : choice_(choice), found_(found) {}

  void read(RecordingReader& reader) {
    while (reader.next()) {
      for (const AllocatorEvent& event : reader.events()) take(event, reader);
    }
    found_.info = reader.info();
    found_.names = reader.names();
    found_.peak = timeline_.peak(found_.names);
    found_.last_step = timeline_.now().step;
  }

  /// Throws: InvalidInput.
  [[nodiscard]] std::uint64_t event() const {
    if (choice_.kind == InstantChoice::Kind::peak && found_.events > 0) return found_.peak.event;
    if (choice_.kind == InstantChoice::Kind::event && choice_.event < found_.events) return choice_.event;
    if (best_) return *best_;
    const std::string steps =
        found_.last_step < 0 ? std::string("none") : fmt::format("{} to {}", found_.first_step, found_.last_step);
    throw bad_input("--at", fmt::format("an instant of {}: {} events, steps {}", found_.path, found_.events, steps),
                    in_quotes(to_text(choice_)));
  }
  [[nodiscard]] const Range& visit() const { return visit_; }

 private:
  void take(const AllocatorEvent& event, const RecordingReader& reader) {
    const MemoryInstant& now = timeline_.apply(event);
    ++found_.events;
    if (event.kind == Kind::step && found_.first_step < 0) found_.first_step = now.step;
    if (event.kind == Kind::step || event.kind == Kind::unit) {
      const bool was_in = in_visit_;
      in_visit_ = event.kind == Kind::unit && choice_.kind == InstantChoice::Kind::visit && now.step == choice_.step &&
                  is_of(choice_, reader.names().at(event.name)) && unit_of(reader.info(), event.unit) == choice_.unit;
      if (in_visit_ && !was_in) begin_ns_ = event.time_ns;
      if (!in_visit_ && best_) visit_.end_at(event);
    }
    if (!in_visit_ || (best_ && now.allocated_bytes() <= highest_bytes_)) return;
    best_ = event.number;
    visit_ = {UINT64_MAX, begin_ns_, INT64_MAX};
    highest_bytes_ = now.allocated_bytes();
  }

  const InstantChoice& choice_;
  Inspection& found_;
  Timeline timeline_;
  bool in_visit_ = false;
  std::int64_t begin_ns_ = 0;  ///< Of the visit that it is in.
  Range visit_;                ///< That of best_.
  std::optional<std::uint64_t> best_;
  std::size_t highest_bytes_ = 0;
};

/// The second reading: the instant, and the step around it.
class Window {
 public:
  Window(std::uint64_t event, const Range& visit, Inspection& found) : target_(event), visit_(visit), found_(found) {}

  void read(RecordingReader& reader) {
    while (reader.next()) {
      for (const AllocatorEvent& event : reader.events()) take(event);
      for (const RecordedOperation& operation : reader.operations()) keep(operation);
    }
  }

  void show(const InstantChoice& choice) {
    std::vector<BufferSpan> spans = found_.clock == Clock::issue ? issue_spans(live_, events_) : on_device();
    found_.units = unit_lifetimes(spans);
    if (found_.clock == Clock::issue) return;
    const std::vector<SpanInstant> all = instants(spans);
    const std::int64_t time_ns = device_time(choice, all);
    const auto after = std::ranges::upper_bound(all, time_ns, {}, &SpanInstant::time_ns);
    found_.device = after == all.begin() ? SpanInstant{time_ns, 0, {}} : *std::prev(after);
    std::erase_if(spans,
                  [time_ns](const BufferSpan& span) { return span.begin_ns > time_ns || span.end_ns <= time_ns; });
    found_.device_buffers = std::move(spans);
  }

 private:
  void take(const AllocatorEvent& event) {
    const bool is_past = event.number > target_;
    if (event.kind == Kind::step) {
      if (is_past) {
        step_.end_at(event);
      } else {
        step_ = range_from(event);
        live_ = timeline_.live();
        events_.clear();
        std::erase_if(operations_, [this](const OperationRecord& op) { return op.issued_ns < step_.begin_ns; });
      }
    }
    if (event.number < step_.last) events_.push_back(event);
    if (is_past) return;
    const MemoryInstant& now = timeline_.apply(event);
    if (event.number != target_) return;
    found_.instant = now;
    found_.buffers = timeline_.live();
  }

  /// Operations of a step may be written before its mark, and after that of the next one.
  void keep(const RecordedOperation& recorded) {
    const bool is_near = recorded.issued_ns >= step_.begin_ns && recorded.issued_ns < step_.end_ns;
    if (found_.clock == Clock::issue || !is_near) return;
    operations_.push_back(nameless(recorded));
  }

  [[nodiscard]] std::vector<BufferSpan> on_device() {
    std::erase_if(operations_, [this](const OperationRecord& operation) {
      return operation.issued_ns < step_.begin_ns || operation.issued_ns >= step_.end_ns;
    });
    if (operations_.empty()) {
      throw bad_input("--clock", "issue, for a recording without operations of that step", "'device'");
    }
    return device_spans(live_, events_, operations_);
  }

  [[nodiscard]] std::int64_t device_time(const InstantChoice& choice, const std::vector<SpanInstant>& all) const {
    std::int64_t begin_ns = INT64_MAX;
    std::int64_t end_ns = INT64_MIN;
    for (const OperationRecord& operation : operations_) {
      const bool is_after = choice.kind == InstantChoice::Kind::event && operation.issued_ns >= found_.instant.time_ns;
      const bool is_visits = choice.kind == InstantChoice::Kind::visit && operation.unit == found_.instant.unit &&
                             operation.issued_ns >= visit_.begin_ns && operation.issued_ns < visit_.end_ns;
      const bool is_meant = is_after || is_visits || choice.kind == InstantChoice::Kind::peak;
      if (operation.kind != OperationRecord::Kind::work || !is_meant) continue;
      begin_ns = std::min(begin_ns, operation.start_ns);
      end_ns = std::max(end_ns, operation.end_ns);
    }
    if (choice.kind == InstantChoice::Kind::event || end_ns == INT64_MIN) return begin_ns;
    std::size_t highest_bytes = 0;
    std::int64_t time_ns = begin_ns;
    for (const SpanInstant& instant : all) {
      if (instant.time_ns < begin_ns || instant.time_ns >= end_ns || instant.live_bytes <= highest_bytes) continue;
      highest_bytes = instant.live_bytes;
      time_ns = instant.time_ns;
    }
    return time_ns;
  }

  std::uint64_t target_;
  Range visit_;
  Inspection& found_;
  Timeline timeline_;
  Range step_;
  std::vector<LiveBuffer> live_;
  std::vector<AllocatorEvent> events_;
  std::vector<OperationRecord> operations_;
};

}  // namespace

InstantChoice parse_instant(const std::string& text) {
  InstantChoice choice;
  if (text == "peak") return choice;
  choice.kind = InstantChoice::Kind::event;
  if (read_number(text, choice.event)) return choice;
  choice.kind = InstantChoice::Kind::visit;
  const std::size_t first = text.find('/');
  const std::size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  if (second != std::string::npos && read_number(std::string_view(text).substr(0, first), choice.step)) {
    choice.operation = text.substr(first + 1, second - first - 1);
    choice.unit = text.substr(second + 1);
    if (!choice.operation.empty() && !choice.unit.empty()) return choice;
  }
  throw bad_input("--at", "an event's number, peak, or STEP/PHASE/UNIT", in_quotes(text), "As in 3/backward/h.2.");
}

std::string to_text(const InstantChoice& choice) {
  switch (choice.kind) {
    case InstantChoice::Kind::event: return std::to_string(choice.event);
    case InstantChoice::Kind::visit: return fmt::format("{}/{}/{}", choice.step, choice.operation, choice.unit);
    case InstantChoice::Kind::peak: break;
  }
  return "peak";
}

std::string Inspection::unit(int index) const { return unit_of(info, index); }
std::string Inspection::name(std::uint32_t index) const { return index < names.size() ? names[index] : std::string(); }

Inspection inspect(const std::string& path, const InstantChoice& choice, Clock clock) {
  Inspection found;
  found.path = path;
  found.clock = clock;
  Search search(choice, found);
  {
    RecordingReader reader(path);
    search.read(reader);
  }
  Window window(search.event(), search.visit(), found);
  RecordingReader reader(path);
  window.read(reader);
  window.show(choice);
  return found;
}

}  // namespace headroom::bench
