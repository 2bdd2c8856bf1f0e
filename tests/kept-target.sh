#!/usr/bin/env bash
# Compile once per machine, not once per clone: all clones share one target folder.
#
#   kept-target.sh COMMAND…    run COMMAND in this clone, mounted at a fixed path, with the shared
#                              target folder; TINBOX_KEPT is the folder that contains it
#   kept-target.sh keep        record that the build of this clone succeeded, and remove what
#                              earlier builds have left
#
# The compiler writes the paths of sources into programs, and cargo compares the times of files. So
# every clone is compiled at the same path, and each file that is equal to the file of the recorded
# build gets an old time. Cargo then compiles only the differences. After a failed build the changed
# files are not recorded, so that the next run compiles them again.
#
# FRESH=1 begins with an empty target folder. So does every tenth run, and a run that finds a folder
# older than KEEP_DAYS or larger than KEEP_GIB. Without root, or while another run has the lock,
# COMMAND runs in the clone itself.
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

# Gives an old time to each file that is equal to the file of the recorded build. Folders get an old
# time too, unless a recorded file was changed or removed: a build script that watches a folder
# checks the folder's time.
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
  # A changed file is not recorded until a build has succeeded.
  mv "$kept/same" "$kept/files"
}

is_stale() {
  local kept=$1
  [ -n "${FRESH:-}" ] || [ "$(cat "$kept/runs" 2>/dev/null || echo 0)" -ge "$RUNS" ] ||
    [ -n "$(find "$kept/born" -mtime "+$KEEP_DAYS" 2>/dev/null)" ] ||
    [ "$(du -s --block-size=1G "$kept/target" 2>/dev/null | cut -f 1)" -ge "$KEEP_GIB" ] 2>/dev/null
}

if [ "${1:?usage: kept-target.sh COMMAND… | keep}" = keep ]; then
  if [ "${TINBOX_KEPT:-none}" = none ]; then exit 0; fi
  mv "$TINBOX_KEPT/now" "$TINBOX_KEPT/files"
  # Without it the next runs only need more space.
  "$top/tests/sweep-target.sh" || true
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
# Removes folders of other toolchains and profiles that were not used for KEEP_DAYS.
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
