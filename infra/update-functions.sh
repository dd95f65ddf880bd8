#!/usr/bin/env bash
# Give the function apps another version, look whether it lives, and put the old one back if it does not.
#
#   RESOURCE_GROUP=... SCHEDULER_APP=... ORCHESTRATOR_APP=... ADMIN_API_APP=... infra/update-functions.sh pause|deploy|resume
#
# `pause` switches off all functions that work by themselves, before the tables are upgraded: a version refuses tables of
# another, and every message that it is given meanwhile counts a delivery. `resume` switches them on again. `deploy` takes
# the packages in PACKAGES, and those of the version before from BEFORE. With TABLES_CHANGED=true there is no way back, and
# what does not live stays switched off. TRIES (30) times PAUSE (10) seconds is how long an app may take to be well.
set -euo pipefail

: "${RESOURCE_GROUP:?}" "${SCHEDULER_APP:?}" "${ORCHESTRATOR_APP:?}" "${ADMIN_API_APP:?}"
declare -A apps=([scheduler]=$SCHEDULER_APP [orchestrator]=$ORCHESTRATOR_APP [admin-api]=$ADMIN_API_APP)
declare -A functions=([scheduler]="sweep tick" [orchestrator]="events results sweep" [admin-api]="api sweep")
names=(admin-api orchestrator scheduler)

usage() {
  sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2
  exit 2
}

# switch NAME true|false: whether the functions of an app are off. The API itself stays on: it says what is wrong.
switch() {
  local one words=()
  for one in ${functions[$1]}; do [[ $one == api ]] || words+=("AzureWebJobs.$one.Disabled=$2"); done
  az functionapp config appsettings set --resource-group "$RESOURCE_GROUP" --name "${apps[$1]}" --output none \
    --settings "${words[@]}"
}

# put FOLDER: give every app its package from there. It is whole, so nothing is built.
put() {
  local name
  for name in "${names[@]}"; do
    az functionapp deployment source config-zip --resource-group "$RESOURCE_GROUP" --name "${apps[$name]}" \
      --src "$1/$name.zip" --build-remote false --timeout 600 --output none || return 1
  done
}

# found NAME: the functions that the host has found in an app.
found() {
  az functionapp function list --resource-group "$RESOURCE_GROUP" --name "${apps[$1]}" --query "[].name" \
    --output tsv | sed 's|.*/||' | sort | paste --serial --delimiters ' '
}

# complete: the host knows every function of every app.
complete() {
  local name
  for name in "${names[@]}"; do
    [[ $(found "$name") == "${functions[$name]}" ]] || { echo "${apps[$name]} has: $(found "$name")" >&2; return 1; }
  done
}

# well: they are complete, and the API reaches its database.
well() {
  local host try
  host=$(az functionapp show --resource-group "$RESOURCE_GROUP" --name "$ADMIN_API_APP" \
    --query defaultHostName --output tsv)
  for ((try = 1; try <= ${TRIES:-30}; try++)); do
    complete && curl --fail --silent --show-error --max-time 60 --output /dev/null "https://$host/readyz" && return 0
    sleep "${PAUSE:-10}"
  done
  return 1
}

resume() {
  local name
  for name in "${names[@]}"; do switch "$name" false; done
}

deploy() {
  : "${PACKAGES:?}"
  if put "$PACKAGES" && well; then
    resume
    echo "the function apps run the new version" >&2
    return 0
  fi
  if [[ ${TABLES_CHANGED:-false} == true ]]; then
    echo "the new version does not live, and the old one refuses the tables: functions stay off until one does" >&2
  elif [[ ! -e ${BEFORE:-}/scheduler.zip ]]; then
    echo "the new version does not live, and there is no version before: functions stay off until one does" >&2
  else
    put "$BEFORE"
    resume
    echo "the new version does not live; the function apps have the one before" >&2
  fi
  return 1
}

case ${1:-} in
  pause) for name in "${names[@]}"; do switch "$name" true; done ;;
  deploy) deploy ;;
  resume) resume ;;
  *) usage ;;
esac
