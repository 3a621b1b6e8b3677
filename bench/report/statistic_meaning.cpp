#include "report/statistic_meaning.hpp"

#include <utility>
#include <vector>

namespace headroom::bench {

std::string meaning_of(const std::string& statistic) {
  static const std::vector<std::pair<const char*, const char*>> meanings{
      {"allocation.all", "allocations that are not freed"},
      {"allocated_bytes.all", "bytes of allocations, rounded; falls when a free is requested"},
      {"requested_bytes.all", "bytes as asked for, before rounding"},
      {"active.all", "blocks that are allocated, or freed and still in use on the device"},
      {"active_bytes.all", "bytes of active blocks; falls when a free is completed"},
      {"reserved_bytes.all", "bytes mapped from the device"},
      {"pending_free_bytes", "bytes freed by the host, still in use on the device"},
      {"cached_bytes", "bytes mapped and free"},
      {"largest_free_block", "largest free run of bytes"},
      {"num_alloc_retries", "allocations that were tried again after memory was given back"},
      {"num_ooms", "allocations refused"},
      {"num_device_alloc", "times that pages were mapped"},
      {"num_device_free", "times that pages were unmapped"},
      {"waited_reuse", "blocks reused after a stream wait"},
      {"host_waits", "times that the calling thread waited for memory"},
      {"rungs.", "allocations served this way"},
      {"tag_bytes.", "bytes allocated now, of this category and state"},
  };
  for (const auto& meaning : meanings) {
    if (statistic.rfind(meaning.first, 0) == 0) return meaning.second;
  }
  const std::size_t dot = statistic.find('.');  // "transients.reserved_bytes.all.peak": of one region
  if (dot == std::string::npos || statistic.find("_bytes", dot) == std::string::npos) return {};
  return meaning_of(statistic.substr(dot + 1)) + ", of " + statistic.substr(0, dot);
}

}  // namespace headroom::bench
