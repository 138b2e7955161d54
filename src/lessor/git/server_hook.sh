#!/bin/sh
# Lessor asks about every push; taken out again by: lessor git uninstall-server-hooks
# The hook that was here before goes first, under its own name: what it refuses isn't asked about.
here=${0%/*}
before=$here/@BEFORE@/@NAME@
gate=$here/@GATE@
ask() {
  [ -r @CLIENT@ ] || {
    echo "lessor: refused: Lessor isn't installed here any more; its hooks are. Take them out, or install it." >&2
    exit 1
  }
  exec @BASE@ -I -S @CLIENT@ @NAME@ "$PPID" "$gate" @PYTHON@
}
case @NAME@:$1 in
  pre-receive:*) asks=yes ;;
  # Only where a push is behind it: gc and a person's own commands on this machine are no pushes.
  reference-transaction:prepared) [ ! -e "$gate/pushes/$PPID" ] || asks=yes ;;
esac
if [ -x "$before" ]; then
  updates=$(cat)
  printf '%s\n' "$updates" | "$before" "$@" || exit
  [ -z "$asks" ] || printf '%s\n' "$updates" | ask
elif [ -n "$asks" ]; then
  ask
fi
