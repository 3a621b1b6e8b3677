# shellcheck shell=bash
# What run.sh and test.sh share: installing packages, building. Sourced; expects the repository root as working folder.

# Where everything is built, and with which preset.
preset=${HEADROOM_PRESET:-host}
case $preset in
  host) default_build_dir=build ;;
  host-*) default_build_dir=build-${preset#host-} ;;
  *)
    echo "HEADROOM_PRESET: expected host, host-asan or host-tsan, found '$preset'" >&2
    exit 2
    ;;
esac
build_dir=${HEADROOM_BUILD_DIR:-$default_build_dir}
jobs=$(nproc)

common_help() {
  cat <<'TEXT'
Environment:
  HEADROOM_SKIP_INSTALL=1   install nothing: the packages are there (or elsewhere, see CMAKE_PREFIX_PATH)
  CMAKE_PREFIX_PATH=DIR     where CMake also looks for the libraries
  CMAKE_GENERATOR=NAME      another generator than Ninja, as "Unix Makefiles"
  HEADROOM_BUILD_DIR=DIR    another build folder than build/
  HEADROOM_PREFIX=DIR       after building, install Headroom there
  HEADROOM_WERROR=ON        warnings are errors
  CC, CXX                   another compiler
TEXT
}

say() {
  printf '\n== %s\n' "$*"
}

fail() {
  printf '%s: error: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

# Libraries and further tools, as Debian names them; a script may add to it. node-d3 is D3 5 alone, and no Node.js.
packages=(libopenmpi-dev libopenblas-pthread-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libgtest-dev
  libgmock-dev libbenchmark-dev node-d3 libcairo2-dev pkg-config)

# Prints the Debian packages that are missing. Tools that any build needs count as there wherever they come from; $packages are
# asked of dpkg.
missing_packages() {
  local generator=${CMAKE_GENERATOR:-Ninja}
  command -v cmake >/dev/null || echo cmake
  command -v "${CXX:-g++}" >/dev/null || echo g++
  command -v "${CC:-gcc}" >/dev/null || echo gcc
  case $generator in
    Ninja*) command -v ninja >/dev/null || echo ninja-build ;;
    *) command -v make >/dev/null || echo make ;;
  esac
  command -v python3 >/dev/null || echo python3
  command -v mpirun >/dev/null || echo openmpi-bin
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

# Makes sure that what the build needs is installed.
install_packages() {
  if [ "${HEADROOM_SKIP_INSTALL:-0}" = 1 ]; then
    return
  fi
  local hint="install them and set HEADROOM_SKIP_INSTALL=1"
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this system has no apt. Needed: CMake 3.25, a C++20 compiler, Ninja or Make, Python 3, Open MPI, OpenBLAS, spdlog," \
      "CLI11, nlohmann-json, GoogleTest, Google Benchmark, D3 5; $hint (CMAKE_PREFIX_PATH tells where they are)"
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} -eq 0 ]; then
    return
  fi
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      fail "these packages are missing and this user cannot install them: ${missing[*]}." \
        "As root: apt-get install ${missing[*]}. Where you have them otherwise: HEADROOM_SKIP_INSTALL=1"
    fi
    as_root=(sudo -n)
  fi
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends)
  say "Installing ${missing[*]}"
  if ! apt-get install --simulate -qq "${missing[@]}" >/dev/null 2>&1; then  # No package lists, or old ones.
    "${as_root[@]}" apt-get update -q
  fi
  "${install[@]}" "${missing[@]}" ||
    { "${as_root[@]}" apt-get update -q && "${install[@]}" "${missing[@]}"; } ||
    fail "apt-get could not install: ${missing[*]}; $hint"
}

# configure_and_build PRESET DIR [BUILD-OPTION...]
configure_and_build() {
  local options=(--preset "$1" -B "$2" -D "HEADROOM_WERROR=${HEADROOM_WERROR:-OFF}") dir=$2
  shift 2
  if [ -n "${CMAKE_GENERATOR:-}" ]; then
    options+=(-G "$CMAKE_GENERATOR")
  fi
  say "Building $dir"
  cmake "${options[@]}"
  cmake --build "$dir" --parallel "$jobs" "$@"
}

install_headroom() {
  if [ -n "${HEADROOM_PREFIX:-}" ]; then
    say "Installing into $HEADROOM_PREFIX"
    cmake --install "$build_dir" --prefix "$HEADROOM_PREFIX"
  fi
}
