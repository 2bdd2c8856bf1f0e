# What the steps of every script may use.
set -u

# Run a command in the background with its output in a file: start FILE COMMAND…
start() {
  local file=$1
  shift
  "$@" >"$file" 2>&1 &
}

# Wait until a file has a line that matches: until_line FILE PATTERN
until_line() {
  local deadline=$((SECONDS + 120))
  until grep -qE -- "$2" "$1" 2>/dev/null; do
    if [ $SECONDS -ge $deadline ]; then
      echo "no line with $2 came"
      return 1
    fi
    sleep 0.05
  done
}

# Wait until a command succeeds: until_true COMMAND…
until_true() {
  local deadline=$((SECONDS + 120))
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $deadline ]; then
      echo "never true: $*"
      return 1
    fi
    sleep 0.1
  done
}

# An editor for `kubectl edit`: editor SED-EXPRESSION
editor() {
  printf '#!/bin/sh\nexec sed -i %q "$1"\n' "$1" >editor.sh
  chmod +x editor.sh
  export KUBE_EDITOR=$PWD/editor.sh
}

# Of what `kubectl explain` prints the names and types: descriptions of Kubernetes' own fields are
# in words of the server's author.
names_and_types() {
  grep -E $'^[A-Z]+:|^ *[A-Za-z]+[\t ]*<'
}
