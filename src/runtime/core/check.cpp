#include "runtime/core/check.hpp"

#include <spdlog/fmt/fmt.h>

#include <string_view>

namespace headroom::detail {

void fail_check(const char* condition, const char* file, int line, const std::string& message) {
  std::string_view path(file);
  const std::size_t slash = path.find_last_of('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  throw std::logic_error(fmt::format("{} ({}:{}: expected {})", message, path, line, condition));
}

}  // namespace headroom::detail
