#!/usr/bin/env bash
# Compile once a machine, not once a clone.
#
#   kept-target.sh COMMAND…    run COMMAND in this clone, mounted at a fixed path, with the target
#                              folder that the last run left; TINBOX_KEPT names where that is
#   kept-target.sh keep        say that this clone's build ended well: its files are the kept ones
#
# Paths of sources are compiled into programs, and cargo looks at the times of files: one path for
# all clones, and an old time for every file that is the one of the kept build, make cargo compile
# the difference alone. A build that fails leaves the changed files out of the list, so that the
# next one compiles them again.
#
# FRESH=1 begins with an empty folder, as every tenth run does, and one that is older than
# KEEP_DAYS or larger than KEEP_GIB. Without root, or while another run holds the folder, the
# command runs in the clone as it is.
set -euo pipefail
top=$(readlink -f "$(dirname "$0")/..")
name=tinbox
place=/usr/src/$name
KEEP_DAYS=7
KEEP_GIB=15
RUNS=10

# Content and path of each file of the commit, one a line.
files() {
  git -C "$top" ls-files --stage | cut -d ' ' -f 2- | sort
}

# Files that are the ones of the kept build get a time before it. Folders do as well: a build script
# that watches a folder looks at its time, and a file that left the folder changes the list.
old_times() {
  local kept=$1
  touch "$kept/files"
  files >"$kept/now"
  comm -12 "$kept/files" "$kept/now" >"$kept/same"
  (cd "$top" && cut -f 2 "$kept/same" | tr '\n' '\0' | xargs -0 -r touch --no-create -d 2001-09-09)
  if ! comm -13 "$kept/now" "$kept/files" | grep -q .; then
    (cd "$top" && git ls-files -z | xargs -0 -r dirname -z | sort -zu |
      xargs -0 -r touch --no-create -d 2001-09-09)
  fi
  # A changed file stays out of the list until a build has ended well.
  mv "$kept/same" "$kept/files"
}

is_stale() {
  local kept=$1
  [ -n "${FRESH:-}" ] || [ "$(cat "$kept/runs" 2>/dev/null || echo 0)" -ge "$RUNS" ] ||
    [ -n "$(find "$kept/born" -mtime "+$KEEP_DAYS" 2>/dev/null)" ] ||
    [ "$(du -s --block-size=1G "$kept/target" 2>/dev/null | cut -f 1)" -ge "$KEEP_GIB" ] 2>/dev/null
}

if [ "${1:?usage: kept-target.sh COMMAND… | keep}" = keep ]; then
  if [ "${TINBOX_KEPT:-none}" != none ]; then mv "$TINBOX_KEPT/now" "$TINBOX_KEPT/files"; fi
  exit 0
fi

cache=${TINBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tinbox}/target
key=$({
  rustc --version --verbose
  cat "$top/.cargo/config.toml"
  sed -n '/^\[profile/,$p' "$top/Cargo.toml"
} | sha256sum | cut -c1-16)
kept=$cache/$key
mkdir -p "$kept"
exec 9>"$kept/lock"
if [ "$(id -u)" != 0 ] || ! flock --nonblock 9 || ! unshare --mount true 2>/dev/null; then
  echo "kept-target: compiling in the clone: no root, or another run holds the folder" >&2
  TINBOX_KEPT=none exec "$@" 9>&-
fi
# Other toolchains, profiles and dependencies left folders too.
find "$cache" -mindepth 1 -maxdepth 1 ! -name "$key" -mtime "+$KEEP_DAYS" -exec rm -rf {} +
if is_stale "$kept"; then rm -rf "$kept"/{target,files,runs,born}; fi
mkdir -p "$kept/target" "$top/target" "$place"
[ -e "$kept/born" ] || touch "$kept/born"
echo $(($(cat "$kept/runs" 2>/dev/null || echo 0) + 1)) >"$kept/runs"
old_times "$kept"
export TINBOX_KEPT=$kept
# shellcheck disable=SC2016  # The inner shell expands them.
unshare --mount bash -c '
  set -euo pipefail
  mount --bind "$1" "$2"
  mount --bind "$3/target" "$2/target"
  cd "$2"
  shift 3
  exec "$@"' kept-target "$top" "$place" "$kept" "$@" 9>&-
