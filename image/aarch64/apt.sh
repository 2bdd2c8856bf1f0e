# shellcheck shell=bash
# Sourced: arm_apt PROGRAM ARGUMENT… is apt for Debian's packages of ARM, with lists of its own in
# the cache: this machine stays one of one processor. arm_lists fetches these lists where there are
# none yet; arm_versions and own_versions print a line NAME=VERSION for each package.
arm_apt() {
  local program=$1 state
  shift
  state=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/aarch64/apt
  mkdir -p "$state"/{state/lists/partial,cache/archives/partial}
  "$program" -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none \
    -o Dir::State="$state/state" -o Dir::State::status=/dev/null \
    -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "$@"
}

arm_lists() {
  if ! arm_apt apt-cache show libc6 >/dev/null 2>&1; then arm_apt apt-get update -qq >&2; fi
}

versions_of() {
  awk '/^Package: /{p=$2} /^Version: /{print p "=" $2}' | LC_ALL=C sort -u
}

arm_versions() {
  if [ $# -gt 0 ]; then arm_apt apt-cache show --no-all-versions "$@" | versions_of; fi
}

own_versions() {
  if [ $# -gt 0 ]; then apt-cache show --no-all-versions "$@" | versions_of; fi
}
