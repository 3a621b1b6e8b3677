#pragma once

namespace headroom::bench {

// What --help says last, of the program and of each command.

inline constexpr const char* kExamples =
    "Examples:\n"
    "  headroom train --ranks 2 --data /usr/share/common-licenses --json report.json\n"
    "  headroom ab --ranks 2 --a backward-prefetch=pre --b backward-prefetch=post\n"
    "  mpirun -n 2 headroom train --steps 100\n"
    "  headroom comm --ranks 2\n"
    "  headroom inspect events.hrm --at 3/backward/h.2\n"
    "  headroom replay events.hrm\n"
    "Errors are one line on stderr. Exit codes: 0 done; 1 internal error; 2 bad usage or input; 65 a file that "
    "Headroom\n"
    "wrote is bad or torn; 70 torn state; 74 input/output failed in the run; 75 out of memory; 86 a rank is stuck or\n"
    "dead; 87 communicator or device error; 88 ranks disagree.";
inline constexpr const char* kTrainExample =
    "Example:\n  headroom train --ranks 2 --data /usr/share/common-licenses --steps 50 --json report.json";
inline constexpr const char* kAbExample =
    "Example:\n  headroom ab --ranks 2 --steps 10 --a backward-prefetch=pre --b backward-prefetch=post --json ab.json\n"
    "The other options are the base of both arms; a key is any of them, without dashes, but those that the arms "
    "share:\n";
inline constexpr const char* kScheduleExample =
    "Example:\n  headroom schedule --units 3 --backward-prefetch post --forward-prefetch 0 --limit-all-gathers off";

inline constexpr const char* kCommExample =
    "Example:\n  headroom comm --ranks 2 --from 64KiB --to 16MiB --json comm.json\n"
    "Sizes double, and are of the larger buffer. algbw and busbw are nccl-tests'; every result is compared with the "
    "values expected.";

inline constexpr const char* kInspectExample =
    "Example:\n  headroom train --ranks 2 --events events.hrm\n"
    "  headroom inspect events.hrm --at 3/backward/h.2 --clock device --units\n"
    "Shows memory at one instant: bytes by category and state, the buffers, what is pending and reserved, and what "
    "overlapped at the peak. On the device clock: of an event, when the first operation after it began; of a visit, "
    "the highest while its operations ran; of the peak, the highest of its step.";

inline constexpr const char* kReplayExample =
    "Example:\n  headroom train --executor none --steps 50 --events events.hrm\n  headroom replay events.hrm --json -\n"
    "First the recorded settings, compared event by event; then each policy: ours, and models of PyTorch's native "
    "policy\nand of its expandable segments. unused: 1 - live/reserved at their peaks; free split: (free - largest) / "
    "free;\npieces: sum free^2 / (sum free)^2, 1 is one piece; growth: of reserved bytes after the first steps; drift: "
    "from\nafter 20 steps on; ns/op: of an allocation or free, without the device.";

}  // namespace headroom::bench
