#!/usr/bin/env bash
# Remove the compiled files of earlier commits from the target folder. Cargo never removes them, and
# a folder that keeps them doubles in some ten builds.
#
# Both builds have just succeeded, so cargo compiles nothing here: it lists the files that it uses.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
target=$(readlink -f "${CARGO_TARGET_DIR:-target}")
used=$(mktemp)
trap 'rm -f "$used"' EXIT
{
  tests/programs.sh --message-format=json
  cargo test --workspace --no-run --quiet --message-format=json
} 2>/dev/null >"$used"
python3 - "$target" "$used" <<'PYTHON'
import json
import os
import re
import sys

# Builds of one program whose files stay: cargo does not list them.
PROGRAMS_KEPT = 4

target, used = sys.argv[1:]
artifact = re.compile(r"^(.+)-([0-9a-f]{16})(\..*)?$")
hashes = set()
with open(used, encoding="utf-8") as lines:
    for line in lines:
        message = json.loads(line)
        names = message.get("filenames", []) + [message.get("executable"), message.get("out_dir")]
        parts = [part for name in names if name for part in name.split("/")]
        hashes.update(found.group(2) for found in map(artifact.match, parts) if found)
if len(hashes) < 100:
    sys.exit("sweep-target: cargo lists too few files; nothing is removed")
old, programs = [], {}
for folder, _, files in os.walk(target):
    if os.path.basename(folder) != "deps":
        continue
    for name in files:
        found = artifact.match(name)
        if not found or found.group(2) in hashes or name.endswith(".d"):
            continue
        path = os.path.join(folder, name)
        if found.group(3):
            old.append(path)
        else:
            programs.setdefault(found.group(1), []).append(path)
for paths in programs.values():
    paths.sort(key=os.path.getmtime)
    old += paths[:-PROGRAMS_KEPT]
freed = sum(os.path.getsize(path) for path in old)
for path in old:
    os.unlink(path)
print(f"sweep-target: {freed / 2**30:.1f} GiB of earlier commits removed")
PYTHON
