#include "run/model_files.hpp"

#include "io/hf_gpt2.hpp"
#include "options/agreement.hpp"

#include <exception>
#include <optional>

namespace headroom::bench {

void load_gpt2(ParameterManager& parameters, const std::string& folder) {
  const Gpt2Reader reader(folder);
  for (int unit = 0; unit < parameters.unit_count(); ++unit) {
    const std::vector<ParameterSpec>& specs = parameters.layout(unit).parameters;
    for (std::size_t index = 0; index < specs.size(); ++index) {
      parameters.write(unit, static_cast<int>(index), reader.read(specs[index].name));
    }
  }
}

void export_gpt2(ParameterManager& parameters, Communicator& control, const Config& config) {
  std::optional<Gpt2Writer> writer;
  run_checked(control, [&] {
    if (control.rank() == 0) writer.emplace(config.export_dir, config.model);
  });
  std::exception_ptr failure;  // the other ranks gather to the end, whatever happens to the file
  for (int unit = 0; unit < parameters.unit_count(); ++unit) {
    const std::vector<ParameterSpec>& specs = parameters.layout(unit).parameters;
    parameters.read(unit, [&](int index, std::span<const float> values) {
      if (!writer || failure) return;
      try {
        writer->write(specs[static_cast<std::size_t>(index)].name, values);
      } catch (...) {
        failure = std::current_exception();
      }
    });
  }
  run_checked(control, [&] {
    if (failure) std::rethrow_exception(failure);
    if (writer) writer->finish();
  });
}

}  // namespace headroom::bench
