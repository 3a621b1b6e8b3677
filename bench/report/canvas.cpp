#include "report/canvas.hpp"

#include <cairo.h>

#include <stdexcept>

namespace headroom::bench {
namespace {

void check(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS)
    throw std::runtime_error(std::string("picture: ").append(cairo_status_to_string(status)));
}

void set_color(cairo_t* cairo, std::uint32_t color) {
  const auto channel = [color](unsigned shift) { return static_cast<double>((color >> shift) & 0xffU) / 255.0; };
  cairo_set_source_rgb(cairo, channel(16), channel(8), channel(0));
}

void add_path(cairo_t* cairo, const std::vector<std::pair<double, double>>& points) {
  cairo_new_path(cairo);
  for (const auto& point : points) cairo_line_to(cairo, point.first, point.second);
}

void set_font(cairo_t* cairo, const Canvas::Font& font) {
  cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         font.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cairo, font.size);
  set_color(cairo, font.color);
}

double advance(cairo_t* cairo, const std::string& words) {
  cairo_text_extents_t extents;
  cairo_text_extents(cairo, words.c_str(), &extents);
  return extents.x_advance;
}

double shift_of(Canvas::Align align) {
  if (align == Canvas::Align::left) return 0;
  return align == Canvas::Align::centre ? 0.5 : 1.0;
}

/// Fills the path: pale, with lines at 45 degrees.
void hatch(cairo_t* cairo, std::uint32_t color) {
  cairo_set_source_rgb(cairo, 0.95, 0.955, 0.965);
  cairo_fill_preserve(cairo);
  cairo_save(cairo);
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  cairo_path_extents(cairo, &x0, &y0, &x1, &y1);
  cairo_clip(cairo);
  set_color(cairo, color);
  cairo_set_line_width(cairo, 1.5);
  constexpr double kPitch = 7;
  const double height = y1 - y0;
  for (double x = kPitch * static_cast<double>(static_cast<int>((x0 - height) / kPitch)); x < x1; x += kPitch) {
    cairo_move_to(cairo, x, y1);
    cairo_line_to(cairo, x + height, y0);
  }
  cairo_stroke(cairo);
  cairo_restore(cairo);
}

}  // namespace

struct Canvas::State {
  cairo_surface_t* surface = nullptr;
  cairo_t* cairo = nullptr;

  State(int width, int height)
      : surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height)), cairo(cairo_create(surface)) {}
  ~State() {
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Canvas::Canvas(int width, int height) : state_(std::make_unique<State>(width, height)) {
  check(cairo_status(state_->cairo));
  cairo_set_source_rgb(state_->cairo, 1, 1, 1);
  cairo_paint(state_->cairo);
}

Canvas::~Canvas() = default;

void Canvas::box(const Box& box, std::uint32_t color) {
  cairo_rectangle(state_->cairo, box.x, box.y, box.width, box.height);
  set_color(state_->cairo, color);
  cairo_fill(state_->cairo);
}

void Canvas::hatched_box(const Box& box, std::uint32_t color) {
  cairo_rectangle(state_->cairo, box.x, box.y, box.width, box.height);
  hatch(state_->cairo, color);
}

void Canvas::area(const std::vector<std::pair<double, double>>& points, std::uint32_t color) {
  add_path(state_->cairo, points);
  set_color(state_->cairo, color);
  cairo_fill(state_->cairo);
}

void Canvas::hatched_area(const std::vector<std::pair<double, double>>& points, std::uint32_t color) {
  add_path(state_->cairo, points);
  hatch(state_->cairo, color);
}

void Canvas::line(const std::vector<std::pair<double, double>>& points, std::uint32_t color, double width,
                  const std::vector<double>& dashes) {
  add_path(state_->cairo, points);
  set_color(state_->cairo, color);
  cairo_set_line_width(state_->cairo, width);
  cairo_set_dash(state_->cairo, dashes.data(), static_cast<int>(dashes.size()), 0);
  cairo_stroke(state_->cairo);
  cairo_set_dash(state_->cairo, nullptr, 0, 0);
}

void Canvas::ring(double x, double y, double radius, std::uint32_t color) {
  constexpr double kTurn = 6.283185307179586;
  cairo_new_path(state_->cairo);
  cairo_arc(state_->cairo, x, y, radius, 0, kTurn);
  cairo_set_source_rgb(state_->cairo, 1, 1, 1);
  cairo_fill_preserve(state_->cairo);
  set_color(state_->cairo, color);
  cairo_set_line_width(state_->cairo, 2.5);
  cairo_stroke(state_->cairo);
}

void Canvas::text(double x, double y, const std::string& words, const Font& font) {
  set_font(state_->cairo, font);
  const double left = x - shift_of(font.align) * advance(state_->cairo, words);
  if (font.halo) {
    cairo_move_to(state_->cairo, left, y);
    cairo_text_path(state_->cairo, words.c_str());
    cairo_set_source_rgb(state_->cairo, 1, 1, 1);
    cairo_set_line_width(state_->cairo, 5);
    cairo_stroke(state_->cairo);
    set_color(state_->cairo, font.color);
  }
  cairo_move_to(state_->cairo, left, y);
  cairo_show_text(state_->cairo, words.c_str());
}

void Canvas::upward_text(double x, double y, const std::string& words, const Font& font) {
  set_font(state_->cairo, font);
  const double shift = shift_of(font.align) * advance(state_->cairo, words);
  cairo_save(state_->cairo);
  cairo_translate(state_->cairo, x, y + shift);
  cairo_rotate(state_->cairo, -1.5707963267948966);
  cairo_move_to(state_->cairo, 0, 0);
  cairo_show_text(state_->cairo, words.c_str());
  cairo_restore(state_->cairo);
}

double Canvas::width_of(const std::string& words, const Font& font) {
  set_font(state_->cairo, font);
  return advance(state_->cairo, words);
}

std::string Canvas::png() const {
  check(cairo_status(state_->cairo));
  std::string bytes;
  const auto append = [](void* out, const unsigned char* data, unsigned count) {
    static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(data), count);
    return CAIRO_STATUS_SUCCESS;
  };
  check(cairo_surface_write_to_png_stream(state_->surface, append, &bytes));
  return bytes;
}

}  // namespace headroom::bench
