#pragma once

#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

/// Throws std::logic_error with file and line where `condition` is false: for programming errors, never for input.
/// `message` (anything that makes a std::string) is evaluated only then.
#define HEADROOM_EXPECT(condition, message)            \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::headroom::detail::fail_check(#condition, __FILE__, __LINE__, (message)))

namespace headroom::detail {

[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& message);

/// The smallest multiple of `alignment` that is not below `value`. Throws: std::overflow_error.
template <class T>
[[nodiscard]] constexpr T align_up(T value, std::type_identity_t<T> alignment) {
  static_assert(std::is_integral_v<T>);
  const T remainder = static_cast<T>(value % alignment);
  if (remainder == 0) return value;
  const T missing = static_cast<T>(alignment - remainder);
  if (value > static_cast<T>(std::numeric_limits<T>::max() - missing)) throw std::overflow_error("align_up overflows");
  return static_cast<T>(value + missing);
}

template <class T>
[[nodiscard]] constexpr T div_ceil(T value, std::type_identity_t<T> divisor) noexcept {
  static_assert(std::is_integral_v<T>);
  return static_cast<T>(value / divisor + (value % divisor != 0 ? 1 : 0));
}

/// value / divisor. Throws: std::logic_error unless it divides.
template <class T>
[[nodiscard]] constexpr T div_exact(T value, std::type_identity_t<T> divisor) {
  static_assert(std::is_integral_v<T>);
  if (divisor == 0 || value % divisor != 0) throw std::logic_error("div_exact: the divisor does not divide the value");
  return static_cast<T>(value / divisor);
}

/// An integer conversion that keeps the value. Throws: std::overflow_error.
template <class To, class From>
[[nodiscard]] constexpr To narrow(From value) {
  static_assert(std::is_integral_v<To> && std::is_integral_v<From>);
  if (!std::in_range<To>(value)) throw std::overflow_error("narrow: the value does not fit the type");
  return static_cast<To>(value);
}

}  // namespace headroom::detail
