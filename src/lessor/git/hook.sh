#!/bin/sh
# Lessor's, for this worktree alone, and gone with it: its gate, then the hook that git would have run
# here without it. Your own hooks are where they were; change them there.

name=${0##*/}
here=${0%/*}

# Asks the gate. Standard input is for the hook that comes after it.
gate() {
  @GATE@ "$@" "$here" </dev/null
  code=$?
  case $code in
  126 | 127) # there is no such program (any more)
    echo "lessor: the gate of this worktree can't be run: was Lessor moved or removed?" >&2
    if [ "$LESSOR_COMMIT_UNASKED" = 1 ]; then return 0; fi
    echo "lessor: nothing is lost. To commit all the same: LESSOR_COMMIT_UNASKED=1 git commit ..." >&2
    ;;
  esac
  return $code
}

# The last setting that isn't Lessor's own counts, as it would for git; else the shared folder. Git tells
# them by the line, and a hook that nobody finds is a check that nobody makes. The dot
# keeps the shell from dropping line ends at the end.
find_theirs() {
  folder=
  while IFS= read -r line; do
    case $line in
    worktree*core.hookspath*) ;;
    *.hookspath\ *) folder=${line#*.hookspath } ;;
    .) ;;
    *)
      echo "lessor: refused: core.hooksPath holds a line end. Give your hooks another folder." >&2
      exit 1
      ;;
    esac
  done <<END
$(git config --show-scope --type=path --get-regexp '^(core|lessor)\.hookspath$'; echo .)
END
  if [ -z "$folder" ] || [ "$folder" = "$here" ]; then folder=${here%/worktrees/*}/hooks; fi
  theirs=$folder/$name
  if [ -f "$theirs" ] && [ ! -x "$theirs" ]; then
    if [ "$(git config --type=bool --get advice.ignoredHook)" != false ]; then
      echo "hint: The '$theirs' hook was ignored because it's not set as executable." >&2
      echo "hint: You can disable this warning with \`git config advice.ignoredHook false\`." >&2
    fi
  fi
  [ -f "$theirs" ] && [ -x "$theirs" ]
}

case $name in
pre-commit | pre-applypatch)
  gate paths || exit 1
  ;;
pre-merge-commit | pre-rebase)
  gate lease || exit 1
  ;;
prepare-commit-msg)
  if find_theirs; then "$theirs" "$@" || exit; fi
  gate label "$1" "${2:-}" || echo "lessor: the commit is made without its label." >&2
  exit 0
  ;;
commit-msg | applypatch-msg)
  # The label is no business of a hook that judges the message.
  if find_theirs; then
    gate unlabel "$1" ""
    "$theirs" "$@" || exit
  elif [ "$name" = commit-msg ] && [ "$GIT_EDITOR" = : ]; then
    exit 0 # prepare-commit-msg has labelled it, and nobody touched it since
  fi
  gate label "$1" "$name" || echo "lessor: the commit is made without its label." >&2
  exit 0
  ;;
esac

if find_theirs; then exec "$theirs" "$@"; fi
exit 0
