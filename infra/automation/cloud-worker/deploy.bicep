// Stage 2c: a worker in Container Apps, scaled by the jobs that wait for it. Deploy it as `cloud-worker`.
// Each further worker id is a deployment of its own with another `workerId`; they share the environment.

import { Shared, roles } from '../../modules/shared.bicep'

@description('The output `shared` of the deployment shared-infra.')
param shared Shared
param location string = resourceGroup().location

@description('Which jobs this worker takes; runbooks name it.')
@minLength(1)
@maxLength(16)
param workerId string = 'worker-01'
@description('Image with the worker, by digest: {registry}/matoolkit-worker@sha256:...')
param image string
@description('Tenant in which the functions work.')
param targetTenantId string
@description('Microsoft\'s cloud of that tenant, which may be another than that of the bus: public, usgov, usgovdod or china.')
@allowed(['public', 'usgov', 'usgovdod', 'china'])
param targetCloud string = shared.cloud
@description('Its initial domain, such as contoso.onmicrosoft.com.')
param targetOrganization string
@description('Application with which the worker signs in there.')
param appId string
@description('Name of that application\'s certificate in the Key Vault.')
param certName string
@description('Jobs that one replica runs at the same time.')
@minValue(1)
@maxValue(256)
param maxParallelism int = 4
@minValue(0)
param minReplicas int = 0
@minValue(1)
param maxReplicas int = 1
@description('Waiting jobs for which one more replica is started.')
@minValue(1)
param jobsPerReplica int = 5
@description('Failed jobs in 15 minutes, above which somebody is told.')
param failingJobs int = 20
@description('Read-only NFS share with functions of your own, as { server: ..., shareName: ... }; empty: those in the image.')
param functionsShare object = {}
@description('Object id of the identity that deploys the apps; empty is none.')
param deployerPrincipalId string = ''

var name = '${shared.namePrefix}-${shared.environmentName}'
var hasShare = !empty(functionsShare)
var healthPort = 8081
// KEDA has names of its own.
var cloudsOfScaler = {
  AzureCloud: 'AzurePublicCloud'
  AzureUSGovernment: 'AzureUSGovernmentCloud'
  AzureChinaCloud: 'AzureChinaCloud'
}
var cloudOfScaler = cloudsOfScaler[environment().name]
// The platform kills a replica this long after SIGTERM; running jobs get half of it, the rest is for giving back.
var graceSeconds = 60

// ---------------------------------------------------------------- identities

resource worker 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${name}-${workerId}'
  location: location
}

resource scaler 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${name}-${workerId}-scaler'
  location: location
}

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' existing = {
  name: shared.registryName
}

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: shared.keyVaultName
}

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: shared.serviceBusName
}

resource workerPulls 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: registry
  name: guid(registry.id, worker.id, roles.acrPull)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.acrPull)
    principalId: worker.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource workerReadsSecrets 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: vault
  name: guid(vault.id, worker.id, roles.keyVaultSecretsUser)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.keyVaultSecretsUser)
    principalId: worker.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource workerReceives 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: namespace
  name: guid(namespace.id, worker.id, roles.serviceBusDataReceiver)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataReceiver)
    principalId: worker.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource workerSends 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: namespace
  name: guid(namespace.id, worker.id, roles.serviceBusDataSender)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataSender)
    principalId: worker.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

module subscription '../../modules/worker-subscription.bicep' = {
  name: 'subscription-${workerId}'
  params: {
    serviceBusName: shared.serviceBusName
    workerId: workerId
    scalerPrincipalId: scaler.properties.principalId
  }
}

// ---------------------------------------------------------------- where it runs

resource environmentOfApps 'Microsoft.App/managedEnvironments@2025-01-01' = {
  name: '${name}-apps'
  location: location
  properties: {
    vnetConfiguration: {
      infrastructureSubnetId: shared.subnets.cloudWorker
      internal: true
    }
    workloadProfiles: [
      {
        name: 'Consumption'
        workloadProfileType: 'Consumption'
      }
    ]
    // Logs go by the diagnostic setting below, which needs no key of the workspace.
    appLogsConfiguration: { destination: 'azure-monitor' }
    peerTrafficConfiguration: {
      encryption: { enabled: true }
    }
  }

  resource functions 'storages' = if (hasShare) {
    name: 'functions'
    properties: {
      nfsAzureFile: {
        server: functionsShare.server
        shareName: functionsShare.shareName
        accessMode: 'ReadOnly'
      }
    }
  }
}

resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: environmentOfApps
  name: 'logs'
  properties: {
    workspaceId: shared.workspaceId
    logs: [
      {
        categoryGroup: 'allLogs'
        enabled: true
      }
    ]
  }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: '${name}-${workerId}-insights'
  location: location
  kind: 'other'
  properties: {
    Application_Type: 'other'
    WorkspaceResourceId: shared.workspaceId
  }
}

resource app 'Microsoft.App/containerApps@2025-01-01' = {
  name: 'ca-${shared.environmentName}-${workerId}'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${worker.id}': {}
      '${scaler.id}': {}
    }
  }
  properties: {
    environmentId: environmentOfApps.id
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      registries: [
        {
          server: registry.properties.loginServer
          identity: worker.id
        }
      ]
      // A function that runs in the worker can never get a token of the scaler.
      identitySettings: [
        {
          identity: worker.id
          lifecycle: 'Main'
        }
        {
          identity: scaler.id
          lifecycle: 'None'
        }
      ]
    }
    template: {
      terminationGracePeriodSeconds: graceSeconds
      containers: [
        {
          name: 'worker'
          image: image
          args: ['worker', 'run', '--health-port', string(healthPort)]
          resources: {
            cpu: json('1.0')
            memory: '2Gi'
          }
          env: concat(
            [
              { name: 'WORKER_ID', value: workerId }
              { name: 'MAX_PARALLELISM', value: string(maxParallelism) }
              { name: 'SERVICE_BUS_NAMESPACE', value: shared.serviceBusHost }
              { name: 'JOBS_TOPIC_NAME', value: 'worker-jobs' }
              { name: 'RESULTS_TOPIC_NAME', value: 'worker-results' }
              { name: 'KEY_VAULT_NAME', value: shared.keyVaultName }
              { name: 'TARGET_TENANT_ID', value: targetTenantId }
              { name: 'TARGET_CLOUD', value: targetCloud }
              { name: 'TARGET_ORGANIZATION', value: targetOrganization }
              { name: 'APP_ID', value: appId }
              { name: 'CERT_NAME', value: certName }
              // With a replica that always runs, stopping when idle would only start it again.
              { name: 'IDLE_TIMEOUT_SECONDS', value: minReplicas == 0 ? '300' : '0' }
              { name: 'SHUTDOWN_GRACE_SECONDS', value: string(graceSeconds / 2) }
              { name: 'MATOOLKIT_CLOUD', value: shared.cloud }
              { name: 'MATOOLKIT_BUS', value: 'servicebus' }
              { name: 'MATOOLKIT_SERVICE_BUS_NAMESPACE', value: shared.serviceBusHost }
              { name: 'MATOOLKIT_LOG_FORMAT', value: 'json' }
              { name: 'MATOOLKIT_TELEMETRY', value: 'azure' }
              { name: 'APPLICATIONINSIGHTS_CONNECTION_STRING', value: insights.properties.ConnectionString }
              // Which of the two identities is meant; azure-identity reads both.
              { name: 'AZURE_CLIENT_ID', value: worker.properties.clientId }
              { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
            ],
            hasShare ? [{ name: 'CUSTOM_MODULES_PATH', value: '/functions' }] : []
          )
          probes: [
            {
              type: 'Startup'
              httpGet: { path: '/healthz', port: healthPort }
              periodSeconds: 5
              failureThreshold: 24
            }
            {
              type: 'Liveness'
              httpGet: { path: '/healthz', port: healthPort }
              periodSeconds: 30
              failureThreshold: 3
            }
            {
              type: 'Readiness'
              httpGet: { path: '/readyz', port: healthPort }
              periodSeconds: 30
              failureThreshold: 3
            }
          ]
          volumeMounts: concat(
            [{ volumeName: 'scratch', mountPath: '/tmp' }],
            hasShare ? [{ volumeName: 'functions', mountPath: '/functions' }] : []
          )
        }
      ]
      volumes: concat(
        [{ name: 'scratch', storageType: 'EmptyDir' }],
        hasShare ? [{ name: 'functions', storageType: 'NfsAzureFile', storageName: 'functions' }] : []
      )
      scale: {
        minReplicas: minReplicas
        maxReplicas: maxReplicas
        pollingInterval: 30
        cooldownPeriod: 300
        rules: [
          {
            name: 'jobs'
            custom: {
              type: 'azure-servicebus'
              identity: scaler.id
              metadata: {
                namespace: shared.serviceBusName
                cloud: cloudOfScaler
                topicName: 'worker-jobs'
                subscriptionName: subscription.outputs.name
                messageCount: string(jobsPerReplica)
              }
            }
          }
        ]
      }
    }
  }
  dependsOn: [workerPulls, workerReadsSecrets, workerReceives, workerSends, environmentOfApps::functions]
}

resource deployerDeploys 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerPrincipalId)) {
  scope: app
  name: guid(app.id, 'deployer', roles.containerAppsContributor)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.containerAppsContributor)
    principalId: deployerPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// ---------------------------------------------------------------- alert

resource failing 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${name}-${workerId}-failing-jobs'
  location: location
  properties: {
    description: 'Many jobs of a worker fail. See: matoolkit batch list, then matoolkit batch get ID'
    severity: 2
    enabled: true
    scopes: [shared.workspaceId]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: 'ContainerAppConsoleLogs | where ContainerAppName == "${app.name}" | extend line = parse_json(Log) | where line.part == "worker.settlement" and line.event has " failed: "'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: failingJobs
          failingPeriods: {
            numberOfEvaluationPeriods: 1
            minFailingPeriodsToAlert: 1
          }
        }
      ]
    }
    actions: { actionGroups: [shared.actionGroupId] }
  }
}

output containerAppName string = app.name
output workerPrincipalId string = worker.properties.principalId
