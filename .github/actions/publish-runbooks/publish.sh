#!/usr/bin/env bash
# Lint the runbooks in RUNBOOKS, then publish them if PUBLISH is true, or say what that would do: in the summary of the job,
# and with COMMENT on the pull request PULL_REQUEST.
set -euo pipefail

# A glob, so it is split on purpose.
# shellcheck disable=SC2206
files=($RUNBOOKS)
matoolkit runbook lint "${files[@]}" --strict -o github

if [[ $PUBLISH == true ]]; then
  for file in "${files[@]}"; do
    matoolkit runbook publish "$file" --overdue "$OVERDUE"
  done
  exit
fi

report=$(mktemp)
{
  echo "What publishing would do:"
  for file in "${files[@]}"; do
    printf "\n%s\n\n\`\`\`text\n" "$file"
    matoolkit runbook publish "$file" --overdue "$OVERDUE" --dry-run
    echo '```'
  done
} >"$report"
cat "$report" >>"$GITHUB_STEP_SUMMARY"
if [[ $COMMENT == true && -n ${PULL_REQUEST:-} ]]; then
  gh pr comment "$PULL_REQUEST" --edit-last --create-if-none --body-file "$report"
fi
