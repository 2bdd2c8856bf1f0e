#!/usr/bin/env bash
# Make a virtual environment with the WebDAV server wsgidav, and print the path of its python.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh
version=$(python3 --version)

make_environment() {
  python3 -m venv --clear "$1" || {
    echo "error: cannot make a virtual environment with $version" >&2
    echo "hint: install the package python3-venv" >&2
    exit 1
  }
  "$1/bin/pip" install --quiet --no-deps --disable-pip-version-check \
    --requirement requirements.txt >&2
}

out=$( (cat build.sh requirements.txt; echo "$version") | cache_folder webdav)
words="webdav: installing the server wsgidav (once)"
environment=$(cached "$out/env" "$words" make_environment)
echo "$environment/bin/python"
