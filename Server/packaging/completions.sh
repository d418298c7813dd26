#!/usr/bin/env bash
# Prints completions of a command, made from its help.
#
#   completions.sh bash larder-server .build/release/larder-server
#   completions.sh zsh  larder-server .build/release/larder-server
#   completions.sh fish larder-server .build/release/larder-server
set -euo pipefail
shell=$1 name=$2 command=$3
help=$("$command" --help; "$command" help 2>/dev/null || true)
options=$(grep -oE -- '--[a-z][a-z-]*' <<<"$help" | sort -u)
# A line of the help that begins with a command, with or without the name before it.
commands=$(grep -oE "^  ($name )?[a-z][a-z-]+" <<<"$help" | awk '{ print $NF }' | grep -vx -e "$name" -e all | sort -u)

case $shell in
bash) echo "complete -o default -W '$(echo $commands $options)' $name" ;;
zsh) printf '#compdef %s\n_arguments "*:word:(%s)" && return\n_files\n' "$name" "$(echo $commands $options)" ;;
fish)
  for word in $commands; do echo "complete -c $name -n __fish_use_subcommand -a $word"; done
  for option in $options; do echo "complete -c $name -l ${option#--}"; done
  ;;
*) echo "completions.sh: unknown shell '$shell'; use bash, zsh or fish" >&2 && exit 2 ;;
esac
