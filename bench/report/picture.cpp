#include "report/picture.hpp"

#include <headroom/error.hpp>

#include "report/canvas.hpp"
#include "report/palette.hpp"
#include "report/peak_text.hpp"
#include "report/step_series.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace headroom::bench {
namespace {

using Align = Canvas::Align;
using Points = std::vector<std::pair<double, double>>;

constexpr double kWidth = 1600, kHeight = 900, kLeft = 104, kRight = 1576, kLane = 27;
constexpr std::uint32_t kInk = 0x1d2329, kSoft = 0x5b6670, kGrid = 0xd5dae0, kPeak = 0xc2410c;

/// About `count` round steps to `maximum`: 1, 2 or 5 times a power of ten.
double round_step(double maximum, double count) {
  const double raw = maximum / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

class Picture {
 public:
  Picture(const PageSource& source, const MemoryPeak& peak, const StepDetail& detail)
      : source_(source), peak_(peak), detail_(detail), series_(step_series(detail, !detail.operations.empty())) {
    const auto lanes = static_cast<double>(series_.is_device_time ? source.streams.size() : 0);
    bottom_ = kHeight - 62 - (lanes > 0 ? lanes * kLane + 34 : 0);
    for (const StepInstant& instant : series_.instants)
      highest_ = std::max({highest_, instant.allocated_bytes + instant.pending_bytes, instant.reserved_bytes});
  }

  std::string draw() {
    draw_titles();
    draw_legend();
    draw_axes();
    draw_bands();
    draw_reserved();
    draw_peak();
    if (series_.is_device_time) draw_lanes();
    return canvas_.png();
  }

 private:
  [[nodiscard]] double x_of(double x) const {
    return kLeft + (kRight - kLeft) * (x - series_.begin) / std::max(1e-9, series_.end - series_.begin);
  }
  [[nodiscard]] double y_of(std::size_t bytes) const {
    return bottom_ - (bottom_ - top_) * static_cast<double>(bytes) / (1.05 * static_cast<double>(highest_));
  }

  void draw_titles() {
    canvas_.text(kLeft, 38, fmt::format("Peak {} (allocated_bytes.all.peak)", size_text(peak_.allocated_bytes)),
                 {.size = 23, .bold = true});
    canvas_.text(kLeft, 64, place_text(peak_.step, source_.unit(peak_.unit), peak_.phase, peak_.operation),
                 {.size = 16, .color = kSoft});
  }

  [[nodiscard]] bool is_there(Tag tag) const {
    return std::any_of(series_.instants.begin(), series_.instants.end(), [tag](const StepInstant& instant) {
      return instant.tag_bytes[static_cast<std::size_t>(tag)] > 0;
    });
  }

  void draw_legend() {
    double x = kLeft, y = 82;
    const Canvas::Font font{.size = 14};
    const auto place = [&](const std::string& name) {
      const double width = canvas_.width_of(name, font) + 46;
      if (x + width > kRight) {
        x = kLeft;
        y += 23;
      }
      canvas_.text(x + 22, y + 13, name, font);
      x += width;
      return x - width;
    };
    for (const Band& band : bands()) {
      if (is_there(band.tag)) canvas_.box({place(name_of(band.tag)), y, 15, 15}, band.color);
    }
    if (!series_.is_device_time) canvas_.hatched_box({place("freed, pending"), y, 15, 15}, kPendingColor);
    const double at = place("reserved");
    canvas_.line({{at, y + 8}, {at + 16, y + 8}}, kInk, 1.8, {6, 3});
    top_ = y + 40;
  }

  void draw_axes() {
    constexpr double kMebi = 1048576.0, kKibi = 1024.0;
    const double unit = static_cast<double>(highest_) >= kMebi ? kMebi : kKibi;
    const double step = round_step(static_cast<double>(highest_) / unit, 9);
    const Canvas::Font right{.align = Align::right}, centre{.align = Align::centre};
    for (double value = 0; value * unit <= 1.05 * static_cast<double>(highest_); value += step) {
      const double y = std::round(y_of(static_cast<std::size_t>(value * unit))) + 0.5;
      canvas_.line({{kLeft, y}, {kRight, y}}, value == 0 ? kSoft : kGrid, 1);
      canvas_.text(kLeft - 10, y + 5, fmt::format("{:g}", value), right);
    }
    canvas_.upward_text(34, (top_ + bottom_) / 2, unit == kMebi ? "live memory, MiB" : "live memory, KiB",
                        {.size = 16, .color = kSoft, .align = Align::centre});
    const double span = series_.end - series_.begin, pitch = round_step(std::max(span, 1e-9), 12);
    for (double x = std::ceil(series_.begin / pitch) * pitch; x <= series_.end; x += pitch) {
      canvas_.line({{x_of(x), bottom_}, {x_of(x), bottom_ + 6}}, kSoft, 1);
      canvas_.text(x_of(x), bottom_ + 23, fmt::format("{:g}", std::abs(x) < pitch / 2 ? 0.0 : x), centre);
    }
    canvas_.text((kLeft + kRight) / 2, bottom_ + 46,
                 series_.is_device_time ? "device time, ms" : "allocator event, in issue order",
                 {.size = 16, .color = kSoft, .align = Align::centre});
  }

  /// Along the tops of what `height` gives, as steps.
  template <class Height>
  [[nodiscard]] Points steps(const Height& height) const {
    Points points;
    for (std::size_t i = 0; i < series_.instants.size(); ++i) {
      const double next = i + 1 < series_.instants.size() ? series_.instants[i + 1].x : series_.end;
      points.emplace_back(x_of(series_.instants[i].x), y_of(height(i)));
      points.emplace_back(x_of(next), y_of(height(i)));
    }
    return points;
  }

  /// Each band is drawn down to the axis, the highest first, so that no seam shows between two.
  void draw_bands() {
    std::vector<std::size_t> sums(series_.instants.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = series_.instants[i].allocated_bytes + series_.instants[i].pending_bytes;
    const auto area = [&] {
      Points points = steps([&sums](std::size_t i) { return sums[i]; });
      points.emplace_back(points.back().first, bottom_);
      points.emplace_back(points.front().first, bottom_);
      return points;
    };
    if (!series_.is_device_time) canvas_.hatched_area(area(), kPendingColor);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= series_.instants[i].pending_bytes;
    for (std::size_t band = bands().size(); band-- > 0;) {
      canvas_.area(area(), bands()[band].color);
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] -= series_.instants[i].tag_bytes[static_cast<std::size_t>(bands()[band].tag)];
    }
  }

  void draw_reserved() {
    canvas_.line(steps([this](std::size_t i) { return series_.instants[i].reserved_bytes; }), kInk, 1.8, {7, 4});
  }

  void draw_peak() {
    const StepInstant& high = series_.instants[series_.highest];
    const double x = x_of(high.x), y = y_of(high.allocated_bytes + high.pending_bytes);
    canvas_.line({{x, y}, {x, bottom_}}, kPeak, 1.4, {4, 4});
    canvas_.ring(x, y, 6, kPeak);
    const bool is_statistic = high.allocated_bytes == peak_.allocated_bytes;
    const std::string words = (is_statistic ? "peak " : "highest in device time ") + size_text(high.allocated_bytes);
    const bool on_left = x > (kLeft + kRight) / 2;
    canvas_.text(
        on_left ? x - 14 : x + 14, y - 10, words,
        {.size = 16, .color = 0x9a3409, .align = on_left ? Align::right : Align::left, .bold = true, .halo = true});
  }

  void draw_lanes() {
    double y = bottom_ + 66;
    double x = kLeft;
    for (const OperationKind& kind : operation_kinds()) {
      canvas_.box({x, y, 13, 13}, kind.color);
      canvas_.text(x + 19, y + 11.5, kind.name, {.size = 14, .color = kSoft});
      x += canvas_.width_of(kind.name, {.size = 14}) + 42;
    }
    canvas_.hatched_box({x, y, 13, 13}, kWaitColor);
    canvas_.text(x + 19, y + 11.5, "wait", {.size = 14, .color = kSoft});
    y += 24;
    for (const StreamInfo& stream : source_.streams) {
      canvas_.box({kLeft, y, kRight - kLeft, kLane - 5}, 0xf5f7f9);
      canvas_.text(kLeft - 10, y + 16, stream.name, {.align = Align::right});
      for (const RecordedOperation& operation : detail_.operations)
        if (operation.stream == stream.id) draw_operation(operation, y);
      y += kLane;
    }
  }

  void draw_operation(const RecordedOperation& operation, double y) {
    const auto at = [this](std::int64_t ns) {
      return std::clamp(x_of(static_cast<double>(ns - detail_.summary.device_begin_ns) * 1e-6), kLeft, kRight);
    };
    const double x = at(operation.start_ns), width = at(operation.end_ns) - x;
    if (width <= 0 || operation.kind == OperationRecord::Kind::skipped) return;
    const Canvas::Box box{x, y, std::max(0.6, width > 4 ? width - 0.7 : width), kLane - 5};
    if (operation.kind == OperationRecord::Kind::wait) {
      canvas_.hatched_box(box, kWaitColor);
      return;
    }
    const std::size_t kind = kind_of(operation.name < source_.operation_names.size()
                                         ? std::string_view(source_.operation_names[operation.name])
                                         : std::string_view());
    canvas_.box(box, operation_kinds()[kind].color);
    const std::string unit = source_.unit(operation.unit);
    if (width > canvas_.width_of(unit, {.size = 13}) + 8)
      canvas_.text(x + width / 2, y + 15.5, unit,
                   {.size = 13, .color = kind == 3 || kind == 4 ? 0xffffffU : kInk, .align = Align::centre});
  }

  const PageSource& source_;
  const MemoryPeak& peak_;
  const StepDetail& detail_;
  StepSeries series_;
  Canvas canvas_{static_cast<int>(kWidth), static_cast<int>(kHeight)};
  double top_ = 0, bottom_ = 0;
  std::size_t highest_ = 1;
};

}  // namespace

std::string report_picture(const std::string& recording) {
  const PageSource source = open_recording(recording);
  const RunOverview run = overview(source);
  if (run.steps.empty()) throw InvalidInput("event file " + recording + ": expected events, found none");
  RunOverview shown_run;
  shown_run.steps.push_back(run.steps[run.peak_step]);
  const std::vector<StepDetail> shown = details(source, shown_run, shown_run.steps.front().rows);
  return Picture(source, run.peak, shown.front()).draw();
}

}  // namespace headroom::bench
