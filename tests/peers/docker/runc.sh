#!/bin/sh
# The real runc, which may give a container no capability that its caller lacks. Agents ask for
# privileged containers, with all of them: where this machine withholds one, so does the container.
set -eu
real=$(dirname "$(readlink -f "$0")")/runc.real
bundle=
before=
for argument in "$@"; do
  [ "$before" != --bundle ] || bundle=$argument
  before=$argument
done
# Bit 24 is CAP_SYS_RESOURCE.
bounds=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
if [ -n "$bundle" ] && [ $((0x$bounds >> 24 & 1)) = 0 ]; then
  sed -i 's/"CAP_SYS_RESOURCE",//g; s/,"CAP_SYS_RESOURCE"//g' "$bundle/config.json"
fi
exec "$real" "$@"
