#!/usr/bin/env bash
# Deploy the templates in their order, or show what that would change.
#
#   infra/deploy.sh create|what-if [STAGE...]
#
# The stages are shared, scheduler-orchestrator, admin-api and cloud-worker; without any, all of them in this order.
# Parameters are in deploy.parameters.json beside each template, and what differs in an environment in
# deploy.parameters.ENVIRONMENT_NAME.json there. The others come from the environment: RESOURCE_GROUP and
# ENVIRONMENT_NAME for all, and per stage what the function of that name below asks for. Sign in first: az login.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
  sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$(basename "$0")" >&2
  exit 2
}

# need NAME...: every one of these variables is set, or say which are not.
need() {
  local name missing=()
  for name in "$@"; do [[ -n ${!name:-} ]] || missing+=("$name"); done
  ((${#missing[@]} == 0)) || { echo "not set: ${missing[*]}" >&2; exit 2; }
}

# output DEPLOYMENT NAME: an output of an earlier deployment, as JSON on one line; nothing if there was none.
output() {
  az deployment group show --resource-group "$RESOURCE_GROUP" --name "$1" \
    --query "properties.outputs.$2.value" --output json | tr -d '\n' || true
}

# text DEPLOYMENT NAME: the same for an output that is a text.
text() { output "$1" "$2" | tr -d '"'; }

# deploy NAME FOLDER PARAMETER...
deploy() {
  local name=$1 folder=$2 parameter words=()
  local own=$folder/deploy.parameters.$ENVIRONMENT_NAME.json
  shift 2
  [[ ! -e $own ]] || words+=(--parameters "@$own")
  for parameter in "$@"; do words+=(--parameters "$parameter"); done
  # What would change can be seen by an identity that may change nothing.
  [[ $action == create ]] || words+=(--validation-level ProviderNoRbac)
  echo "== $name" >&2
  az deployment group "$action" --resource-group "$RESOURCE_GROUP" --name "$name" \
    --template-file "$folder/deploy.bicep" --parameters "@$folder/deploy.parameters.json" "${words[@]}"
}

# made STAGE DEPLOYMENT VALUE: a stage has what an earlier deployment made. The first what-if of all has nothing to show.
made() {
  [[ -n $3 && $3 != null ]] && return
  [[ $action == what-if ]] && { echo "== $1 can be shown only after the first $2" >&2; return 1; }
  echo "$1 needs what the deployment $2 makes: deploy that first" >&2
  exit 1
}

shared_output() {
  shared=$(output shared-infra shared)
  made "$1" shared-infra "$shared"
}

stage_shared() {
  deploy shared-infra shared "environmentName=$ENVIRONMENT_NAME" "alertEmail=${ALERT_EMAIL:-}" \
    "deployerPrincipalId=${DEPLOYER_PRINCIPAL_ID:-}"
}

stage_scheduler-orchestrator() {
  need SQL_ENTRA_ADMIN_OBJECT_ID SQL_ENTRA_ADMIN_LOGIN
  shared_output scheduler-orchestrator || return 0
  deploy scheduler-orchestrator automation/scheduler-orchestrator "shared=$shared" \
    "sqlEntraAdminObjectId=$SQL_ENTRA_ADMIN_OBJECT_ID" "sqlEntraAdminLogin=$SQL_ENTRA_ADMIN_LOGIN" \
    "sourceSettings=${SOURCE_SETTINGS:-{\}}" "deployerPrincipalId=${DEPLOYER_PRINCIPAL_ID:-}"
}

stage_admin-api() {
  local server
  need ENTRA_ID_TENANT_ID ENTRA_ID_CLIENT_ID ENTRA_ID_AUDIENCE
  shared_output admin-api || return 0
  server=$(text scheduler-orchestrator sqlServerFqdn)
  made admin-api scheduler-orchestrator "$server" || return 0
  deploy admin-api automation/admin-api "shared=$shared" \
    "sqlServerFqdn=$server" \
    "sqlDatabaseName=$(text scheduler-orchestrator sqlDatabaseName)" \
    "entraIdTenantId=$ENTRA_ID_TENANT_ID" "entraIdClientId=$ENTRA_ID_CLIENT_ID" \
    "entraIdAudience=$ENTRA_ID_AUDIENCE" "webAddress=${WEB_ADDRESS:-}" "sourceSettings=${SOURCE_SETTINGS:-{\}}" \
    "deployerPrincipalId=${DEPLOYER_PRINCIPAL_ID:-}"
}

# The image that the worker has: update-worker.sh may have given it another one than it was deployed with.
image_of_worker() {
  local app
  app=$(text cloud-worker containerAppName)
  [[ -z $app || $app == null ]] || az containerapp show --resource-group "$RESOURCE_GROUP" --name "$app" \
    --query "properties.template.containers[0].image" --output tsv || true
}

stage_cloud-worker() {
  local image
  need WORKER_IMAGE TARGET_TENANT_ID TARGET_ORGANIZATION TARGET_APP_ID TARGET_CERT_NAME
  shared_output cloud-worker || return 0
  image=$(image_of_worker)
  deploy cloud-worker automation/cloud-worker "shared=$shared" "image=${image:-$WORKER_IMAGE}" \
    "targetTenantId=$TARGET_TENANT_ID" "targetOrganization=$TARGET_ORGANIZATION" "appId=$TARGET_APP_ID" \
    "certName=$TARGET_CERT_NAME" "deployerPrincipalId=${DEPLOYER_PRINCIPAL_ID:-}"
}

action=${1:-}
[[ $action == create || $action == what-if ]] || usage
shift
(($#)) || set -- shared scheduler-orchestrator admin-api cloud-worker
for stage in "$@"; do declare -F "stage_$stage" >/dev/null || { echo "there is no stage $stage" >&2; usage; }; done
need RESOURCE_GROUP ENVIRONMENT_NAME
shared=
for stage in "$@"; do "stage_$stage"; done
