#include "memory/recording_files.hpp"

namespace headroom {
namespace {

using Kind = AllocatorEvent::Kind;

TEST(Recording, ContentThatCannotBe_IsRefused) {
  using Chunk = detail::ChunkKind;
  const detail::InfoRecord info{0, 1, 0, 0, 4096, 4096, 4096};
  const std::string nameless = header() + one(Chunk::info, info) + chunk(Chunk::units, 1, text("h.0"));
  const std::string begin = nameless + chunk(Chunk::names, 1, text("a"));
  const std::string alloc = event([](AllocatorEvent&) {});
  const std::uint32_t many = UINT32_MAX;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"expected version 2, found version 3", header(3)},
      {"expected events of 72 bytes, found events of 64 bytes", header(2, 64)},
      {"expected the chunk that says whose run this is", header() + chunk(Chunk::names, 1, text("x"))},
      {"expected it once", begin + one(Chunk::info, info)},
      {"pages, regions and a limit of some bytes", header() + one(Chunk::info, detail::InfoRecord{})},
      {"one of 0 names, found name 0", nameless + alloc},
      {"one of 65536 streams", begin + event([](AllocatorEvent& e) { e.stream = UINT32_MAX - 1; })},
      {"expected one rank of a world", header() + one(Chunk::info, detail::InfoRecord{3, 3})},
      {"expected a chunk of a known kind, found kind 99", begin + chunk(static_cast<Chunk>(99), 0, "")},
      {"expected 4294967295 records of 72 bytes, found 72 bytes", begin + chunk(Chunk::events, many, alloc.substr(16))},
      {"expected 4 bytes more in this chunk, found 0 bytes", begin + chunk(Chunk::names, many, text("x"))},
      {"expected 4294967295 bytes more in this chunk, found 1 bytes",
       begin + chunk(Chunk::names, 1, std::string(detail::bytes_of(many)) + "x")},
      {"expected the end of the chunk after 1 records, found 5 bytes more",
       begin + chunk(Chunk::names, 1, text("x") + text("y"))},
      {"a note once", begin + chunk(Chunk::notes, 2, text("k") + text("") + text("k") + text(""))},
      {"a known stream role, found role 4",
       begin + chunk(Chunk::streams, 1, std::string(detail::bytes_of(detail::StreamRecord{0, 4})) + text("x"))},
      {"one of 1 names, found name 1", begin + event([](AllocatorEvent& e) { e.name = 1; })},
      {"one of 1 units, found unit 1", begin + event([](AllocatorEvent& e) { e.unit = 1; })},
      {"a known kind", begin + event([](AllocatorEvent& e) { e.kind = static_cast<Kind>(99); })},
      {"a known tag", begin + event([](AllocatorEvent& e) { e.tag = static_cast<Tag>(kTagCount); })},
      {"a known region", begin + event([](AllocatorEvent& e) { e.region = static_cast<Region>(3); })},
      {"a known rung", begin + event([](AllocatorEvent& e) { e.flags = 7U << AllocatorEvent::kRungShift; })},
      {"expected event 1, found event 2", begin + alloc + event([](AllocatorEvent&) {}, 2)},
      {"an event that can follow", begin + alloc + event([](AllocatorEvent&) {}, 1)},
      {"an event that can follow", begin + event([](AllocatorEvent& e) { e.kind = Kind::free_requested; })},
      {"one of 1 operation names", begin + operation([](RecordedOperation& o) { o.name = 1; })},
      {"one of 1 units", begin + operation([](RecordedOperation& o) { o.unit = -2; })},
      {"ends after it starts", begin + operation([](RecordedOperation& o) { o.start_ns = 1; })},
      {"a known cause", begin + one(Chunk::host_spans, detail::SpanRecord{0, 0, 4})},
      {"ends after it starts", begin + one(Chunk::host_spans, detail::SpanRecord{1, 0, 0})},
      {"a hole that begins at event 0", begin + one(Chunk::lost, detail::LostRecord{1, 1, 0})},
      {"a hole that begins at event 0", begin + one(Chunk::lost, detail::LostRecord{0, UINT64_MAX, 0})},
      {"allocated_bytes.all.current = 512, to which the events come, found 0",
       begin + alloc + chunk(Chunk::statistics, 1, text("allocated_bytes.all.current") + std::string(8, '\0'))},
      {"the end after the statistics",
       begin + chunk(Chunk::statistics, 1, text("x") + std::string(8, '\0')) + chunk(Chunk::names, 0, "")},
      {"other totals", begin + alloc + one(Chunk::end, detail::EndRecord{2, 0, 0, 4})},
  };
  const TemporaryFile file;
  for (const auto& [fault, bytes] : cases) {
    file.write(bytes);
    EXPECT_NE(fault_of(file).find(fault), std::string::npos) << fault << "\n" << fault_of(file);
  }
  file.write(begin + alloc + one(Chunk::end, detail::EndRecord{1, 0, 0, 4}));
  EXPECT_EQ(fault_of(file), "");
}

}  // namespace
}  // namespace headroom
