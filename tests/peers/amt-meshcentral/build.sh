#!/usr/bin/env bash
# Fetch MeshCentral's package, keep its clients of Intel AMT, and print their folder.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

package=meshcentral
version=1.1.55
sha512=8a60bedcb46833ed35f9185c9b5be0e5630a162294c7f78090cd40514115b956711aec551479fd41ac4aa08f71\
5c8109a2c837fb5dfdd4a0685cbed95a321ff7
scripts=(amt/amt.js amt/amt-wsman.js amt/amt-wsman-comm.js amt/amt-xml.js
  public/scripts/amt-redir-ws-0.1.0.js public/scripts/common-0.0.1.js)

fetch() {
  if ! command -v npm >/dev/null; then
    echo "error: cannot fetch $package: npm is missing" >&2
    echo "hint: install Node.js 20 or newer, with npm" >&2
    exit 1
  fi
  rm -rf "$1"
  mkdir "$1"
  npm pack "$package@$version" --pack-destination "$1" --silent >/dev/null
  echo "$sha512  $1/$package-$version.tgz" | sha512sum --check --status || {
    echo "error: $package $version from the registry has another checksum" >&2
    exit 1
  }
  tar xzf "$1/$package-$version.tgz" -C "$1" --strip-components 1 "${scripts[@]/#/package/}"
  rm "$1/$package-$version.tgz"
}

out=$(cache_folder amt-meshcentral <build.sh)
cached "$out/library" "amt-meshcentral: fetching MeshCentral (once)" fetch
