#!/usr/bin/env bash
# Give a worker another image, look whether it lives, and put the old one back if it does not.
#
#   RESOURCE_GROUP=... CONTAINER_APP=... IMAGE=... infra/update-worker.sh
#
# A worker without jobs has no replica at all, so one is started to look at, and let go afterwards. TRIES (30) times
# PAUSE (10) seconds is how long it may take to become healthy.
set -euo pipefail

: "${RESOURCE_GROUP:?}" "${CONTAINER_APP:?}" "${IMAGE:?}"
app=(--resource-group "$RESOURCE_GROUP" --name "$CONTAINER_APP")

asked() { az containerapp show "${app[@]}" --query "$1" --output tsv; }

update() { az containerapp update "${app[@]}" --output none "$@"; }

# healthy: the newest revision runs, with at least one replica that passes its probes.
healthy() {
  local revision state
  revision=$(asked properties.latestRevisionName)
  for ((try = 1; try <= ${TRIES:-30}; try++)); do
    state=$(az containerapp revision show "${app[@]}" --revision "$revision" \
      --query "join(' ', [properties.healthState, properties.runningState])" --output tsv)
    echo "$revision: $state" >&2
    [[ $state == "Healthy Running"* ]] && return 0
    [[ $state == *Failed* ]] && return 1
    sleep "${PAUSE:-10}"
  done
  return 1
}

before=$(asked "properties.template.containers[0].image")
fewest=$(asked properties.template.scale.minReplicas)
[[ $fewest =~ ^[0-9]+$ ]] || fewest=0

update --image "$IMAGE" --min-replicas "$((fewest > 0 ? fewest : 1))"
if healthy; then
  ((fewest > 0)) || update --min-replicas 0
  echo "$CONTAINER_APP runs $IMAGE"
else
  update --image "$before" --min-replicas "$fewest"
  echo "$IMAGE does not run; $CONTAINER_APP has $before again" >&2
  exit 1
fi
