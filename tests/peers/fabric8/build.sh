#!/usr/bin/env bash
# Fetch fabric8's Kubernetes client for Java with Maven, compile Client.java with it, and print the
# folder of both: jars/ and classes/. Each jar must have the checksum of jars.sha256; after a change
# of pom.xml, `cd jars && sha256sum *.jar` makes that file anew.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh
copy=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies

compile() {
  local program
  for program in mvn:maven javac:default-jdk-headless; do
    if ! command -v "${program%%:*}" >/dev/null; then
      echo "error: cannot build the Java client: ${program%%:*} is missing" >&2
      echo "hint: make setup, or install the package ${program#*:}" >&2
      exit 1
    fi
  done
  rm -rf "$1"
  mkdir -p "$1/jars" "$1/classes"
  mvn --batch-mode --quiet --strict-checksums --file pom.xml "$copy" \
    -DincludeScope=runtime -DoutputDirectory="$1/jars" >&2
  if ! (cd "$1/jars" && sha256sum -- *.jar) | diff jars.sha256 - >&2; then
    echo "error: the jars that Maven fetched are not those of tests/peers/fabric8/jars.sha256" >&2
    exit 1
  fi
  javac -proc:none -cp "$1/jars/*" -d "$1/classes" Client.java >&2
}

out=$(cat build.sh pom.xml jars.sha256 Client.java | cache_folder fabric8)
words="fabric8: fetching the Kubernetes client for Java (once; 23 MB)"
cached "$out/program" "$words" compile
