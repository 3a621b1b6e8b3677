#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace headroom::bench {

/// A picture to draw on; lengths in pixels, from the top left corner. Throws: std::runtime_error where it cannot be
/// made.
class Canvas {
 public:
  enum class Align : std::uint8_t { left, centre, right };
  struct Font {
    double size = 15;
    std::uint32_t color = 0x1d2329;
    Align align = Align::left;
    bool bold = false;
    bool halo = false;  ///< White around it: over lines.
  };
  struct Box {
    double x = 0, y = 0, width = 0, height = 0;
  };

  Canvas(int width, int height);
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  void box(const Box& box, std::uint32_t color);
  void hatched_box(const Box& box, std::uint32_t color);
  void area(const std::vector<std::pair<double, double>>& points, std::uint32_t color);
  void hatched_area(const std::vector<std::pair<double, double>>& points, std::uint32_t color);
  void line(const std::vector<std::pair<double, double>>& points, std::uint32_t color, double width,
            const std::vector<double>& dashes = {});
  void ring(double x, double y, double radius, std::uint32_t color);
  /// `y`: of the baseline.
  void text(double x, double y, const std::string& words, const Font& font);
  void upward_text(double x, double y, const std::string& words, const Font& font);
  [[nodiscard]] double width_of(const std::string& words, const Font& font);
  [[nodiscard]] std::string png() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headroom::bench
