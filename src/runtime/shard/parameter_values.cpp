#include <headroom/crc32c.hpp>
#include <headroom/parameters.hpp>

#include "runtime/shard/manager_state.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstring>
#include <exception>

/// Logical parameters, in and out: the host's view of what lies sharded on the devices.
namespace headroom {

namespace {

/// Runs `body` on the compute stream and waits for it: host memory in, or out.
void run_on_compute(const detail::ManagerState& state, const char* name, const std::function<void()>& body) {
  std::exception_ptr thrown;  // by the caller's part of the body: the stream goes on
  Operation operation;
  operation.name = name;
  operation.host = [&body, &thrown] {
    try {
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  state.compute.synchronize(state.compute.enqueue(std::move(operation)));
  if (state.compute.failed()) {
    throw DeviceError(Damage::device, "parameters cannot be read or written: the compute stream has failed");
  }
  if (thrown) {
    std::rethrow_exception(thrown);
  }
}

}  // namespace

void ParameterManager::write(int unit, int parameter, std::span<const float> values) {
  detail::ManagerState& state = *state_;
  if (state.open_step != nullptr) {
    throw std::logic_error("parameters are written between steps");
  }
  const detail::UnitState& target = *state.units.at(static_cast<std::size_t>(unit));
  const ParameterSpec& spec = target.layout.parameters.at(static_cast<std::size_t>(parameter));
  if (static_cast<std::int64_t>(values.size()) != spec.numel()) {
    throw InvalidInput(fmt::format("unit '{}', parameter '{}': expected {} values, found {}", target.layout.unit,
                                   spec.name, spec.numel(), values.size()));
  }
  for (const FlatLayout::Range& range : target.layout.ranges(state.shard_rank)) {
    if (range.parameter == parameter) {
      auto* to = target.shard_view().as<float>() + range.shard_offset;
      run_on_compute(state, "write_parameter", [to, from = values.data() + range.begin, numel = range.numel] {
        std::memcpy(to, from, static_cast<std::size_t>(numel) * sizeof(float));
      });
    }
  }
  state.gather_after = state.compute.issued();
}

void ParameterManager::read(int unit, const std::function<void(int, std::span<const float>)>& visit) {
  detail::ManagerState& state = *state_;
  if (!state.prepared || state.open_step != nullptr) {
    throw std::logic_error("parameters are read between steps, after prepare()");
  }
  const detail::UnitState& source = *state.units.at(static_cast<std::size_t>(unit));
  Buffer gathered;
  const float* flat = source.shard_view().as<float>();
  if (state.gathers()) {
    state.gather.wait(state.compute, state.compute.issued());
    gathered =
        state.memory.allocate_slot(0,
                                   {.bytes = static_cast<std::size_t>(source.layout.padded_numel) * sizeof(float),
                                    .category = Category::parameter_full,
                                    .name = source.layout.unit,
                                    .unit = unit,
                                    .state = UseState::current,
                                    .region = Region::communication},
                                   state.gather);
    detail::gather_unit(state, unit, gathered, DType::f32);
    state.compute.wait(state.gather, state.gather.issued());
    gathered.last_use(state.gather, state.gather.issued());
    flat = reinterpret_cast<const float*>(gathered.data());
  }
  // A device's own copy to the host replaces the plain pointer where the memory is not the host's.
  state.gather.synchronize();
  run_on_compute(state, "read_parameters", [&] {
    for (std::size_t i = 0; visit && i < source.layout.parameters.size(); ++i) {
      visit(static_cast<int>(i),
            {flat + source.layout.offsets[i], static_cast<std::size_t>(source.layout.parameters[i].numel())});
    }
  });
  if (gathered) {
    gathered.last_use(state.compute, state.compute.issued());
  }
  state.gather_after = state.compute.issued();
}

std::uint32_t ParameterManager::crc32c() {
  std::uint32_t checksum = 0;
  for (int unit = 0; unit < unit_count(); ++unit) {
    read(unit, [&checksum](int, std::span<const float> values) {
      checksum = headroom::crc32c(std::as_bytes(values), checksum);
    });
  }
  return checksum;
}

}  // namespace headroom
