#!/usr/bin/env bash
# Print the apt sources of a Debian suite, as this machine's own apt knows them.
#
#   sources.sh SUITE       one-line entries for SUITE, SUITE-updates and SUITE-security
#   sources.sh --options   the apt settings to reach them (proxy, certificates, date checks)
#
# apt parses its own configuration, so both of its formats, and whatever a site has set up, count.
# TINBOX_DEBIAN_SOURCES=FILE (either format) speaks for a machine whose apt offers no Debian.
set -euo pipefail

if [ "${1:-}" = --options ]; then
  apt-config dump --no-empty \
    | grep -E '^Acquire::(http|https|ftp|Check-Valid-Until|Check-Date|Retries|ForceIPv[46])' || true
  # Where apt keeps its logins, if it has any: the place, never their text.
  echo 'Dir::Etc::netrc "/etc/apt/auth.conf";'
  echo 'Dir::Etc::netrcparts "/etc/apt/auth.conf.d";'
  exit 0
fi

suite=${1:?usage: sources.sh SUITE | --options}
if [ -n "${TINBOX_DEBIAN_SOURCES:-}" ]; then exec cat "$TINBOX_DEBIAN_SOURCES"; fi

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
if [ -r "$keyring" ]; then signed="[signed-by=$keyring] "; fi
found=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' \
  | awk -v s="$suite" -v signed="$signed" \
      '$1 == s || $1 == s "-updates" || $1 == s "-security" {
         print "deb " signed $2 " " $3 " " $4 }' \
  | sort -u)
if ! grep -q " $suite " <<<"$found"; then
  echo "sources: apt on this machine knows no Debian $suite" >&2
  echo "hint: run apt-get update, or name a sources file in TINBOX_DEBIAN_SOURCES" >&2
  exit 1
fi
echo "$found"
