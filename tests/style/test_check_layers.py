"""check_layers.py on small trees, each of which breaks one rule."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check_layers.py"
SOUND = {
    "include/headroom/error.hpp": "#pragma once\n#include <string>\n",
    "src/runtime/core/log.hpp": "#include <headroom/error.hpp>\n",
    "src/runtime/memory/pool.cpp": '#include "runtime/core/log.hpp"\n#include <mpi.h>\n',
    "tests/core/log_tests.cpp": '#include "runtime/memory/pool.hpp"\n',
    "src/runtime/memory/pool.hpp": "#pragma once\n",
}


def check(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr


class CheckLayers(unittest.TestCase):
    def refused(self, path, text, message):
        code, output = check(SOUND | {path: text})
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_sound_tree_passes(self):
        code, output = check(SOUND)
        self.assertEqual(code, 0, output)

    def test_include_that_points_up(self):
        self.refused("src/runtime/core/log.cpp", '#include "runtime/memory/pool.hpp"\n', "layer 0 includes")

    def test_relative_include_that_points_up(self):
        self.refused("src/runtime/core/log.cpp", '\n#include "../memory/pool.hpp"\n', "log.cpp:2: layer 0 includes")

    def test_angle_include_that_points_up(self):
        self.refused("src/runtime/core/log.cpp", "#include <runtime/memory/pool.hpp>\n", "layer 0 includes")

    def test_library_that_includes_tests(self):
        self.refused("src/collectives/x.cpp", '#include "../../tests/core/log_tests.cpp"\n', "layer 3 includes")

    def test_unknown_folder(self):
        self.refused("src/extras/x.cpp", "\n", "src/extras/x.cpp:1: no layer")

    def test_unknown_public_header(self):
        self.refused("include/headroom/extras.hpp", "\n", "extras.hpp:1: no layer")

    def test_missing_file(self):
        self.refused("src/kernels/x.cpp", '#include "kernels/absent.hpp"\n', "no such file")

    def test_foreign_header_in_a_public_header(self):
        for name in ("cuda_runtime.h", "nccl.h", "mpi.h", "cublas_v2.h"):
            self.refused("include/headroom/device.hpp", f"#include <{name}>\n", f"must not include {name}")

    def test_internal_header_in_a_public_header(self):
        self.refused("include/headroom/device.hpp", "#include <runtime/core/log.hpp>\n", "which is not installed")

    def test_long_public_header(self):
        self.refused("include/headroom/device.hpp", "\n" * 131, "at most 130 lines")

    def test_empty_tree(self):
        self.assertEqual(check({})[0], 1)


if __name__ == "__main__":
    unittest.main()
