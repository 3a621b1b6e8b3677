// A program outside the project: asynchronous work on a stream, and a policy of its own beside Headroom's.
#include <headroom/device.hpp>
#include <headroom/schedule.hpp>
#include <headroom/stream.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

int answer_of_a_stream() {
  const headroom::Device device = headroom::Device::host();
  headroom::Stream stream{device};
  int answer = 0;
  headroom::Operation operation;
  operation.name = "answer";
  operation.host = [&answer] { answer = 42; };
  stream.ref().enqueue(operation);
  stream.ref().synchronize();
  return answer;
}

headroom::Schedule pre_schedule() {
  headroom::PlanInput input;
  input.units = {{.name = "first"}, {.name = "second"}};
  input.forward = {0, 1};
  input.backward = {1, 0};
  headroom::Schedule schedule = headroom::backward_pre()->plan(input);
  schedule.validate();
  return schedule;
}

}  // namespace

int main() {
  if (answer_of_a_stream() != 42) {
    return EXIT_FAILURE;
  }
  const headroom::Schedule schedule = pre_schedule();
  std::printf("%s", schedule.text().c_str());
  return schedule.bound().parameter_sets == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
