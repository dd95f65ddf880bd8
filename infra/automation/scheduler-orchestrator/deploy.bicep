// Stage 2a: the database, the scheduler and the orchestrator. Deploy it as `scheduler-orchestrator`.

import { Shared, roles } from '../../modules/shared.bicep'

@description('The output `shared` of the deployment shared-infra.')
param shared Shared
param location string = resourceGroup().location

@description('Object id of the person or group that administers the database; a group is better.')
param sqlEntraAdminObjectId string
@description('Its name, as Entra shows it.')
param sqlEntraAdminLogin string
@allowed(['User', 'Group', 'Application'])
param sqlEntraAdminPrincipalType string = 'Group'
param sqlDatabaseName string = 'matoolkit'
@description('Minutes without work after which the database pauses; -1 is never. The sweeps look every 30 seconds, so it pauses only while the apps are stopped.')
param sqlAutoPauseMinutes int = -1
@description('Where backups are kept; Geo survives the loss of a region.')
@allowed(['Geo', 'GeoZone', 'Local', 'Zone'])
param sqlBackupRedundancy string = 'Geo'

@description('Names of the apps are addresses too, and must be free in all of Azure.')
param schedulerAppName string = 'func-scheduler-${shared.environmentName}'
param orchestratorAppName string = 'func-orchestrator-${shared.environmentName}'
@description('Variables that runbooks name as their sources, for the scheduler. A secret is a Key Vault reference, never a value.')
param sourceSettings object = {}
@description('Every worker that has a subscription; jobs for any other are put aside, and their steps fail.')
param workerIds array = ['worker-01']
@description('How late a phase may begin before somebody is told, in minutes.')
param dueLagMinutes int = 15
@description('Object id of the identity that deploys the apps; empty is none.')
param deployerPrincipalId string = ''

var name = '${shared.namePrefix}-${shared.environmentName}'

// ---------------------------------------------------------------- database

resource server 'Microsoft.Sql/servers@2023-08-01' = {
  name: '${name}-sql-${uniqueString(resourceGroup().id)}'
  location: location
  properties: {
    administrators: {
      administratorType: 'ActiveDirectory'
      azureADOnlyAuthentication: true
      login: sqlEntraAdminLogin
      sid: sqlEntraAdminObjectId
      principalType: sqlEntraAdminPrincipalType
      tenantId: tenant().tenantId
    }
    minimalTlsVersion: '1.2'
    publicNetworkAccess: 'Disabled'
    restrictOutboundNetworkAccess: 'Enabled'
  }

  resource database 'databases' = {
    name: sqlDatabaseName
    location: location
    sku: {
      name: 'GP_S_Gen5'
      tier: 'GeneralPurpose'
      family: 'Gen5'
      capacity: 1
    }
    properties: {
      // Names are compared exactly. It cannot be changed once the database is there.
      collation: 'Latin1_General_100_BIN2'
      maxSizeBytes: 34359738368
      autoPauseDelay: sqlAutoPauseMinutes
      minCapacity: json('0.5')
      requestedBackupStorageRedundancy: sqlBackupRedundancy
      zoneRedundant: false
    }
  }
}

module sqlEndpoint '../../modules/private-endpoint.bicep' = {
  name: 'pe-sql'
  params: {
    name: '${name}-pe-sql'
    location: location
    subnetId: shared.subnets.privateEndpoints
    targetId: server.id
    groupId: 'sqlServer'
    zoneId: shared.zones.sql
  }
}

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: shared.keyVaultName

  // The address has no password: each app signs in with its own identity.
  resource schedulerSql 'secrets' = {
    name: 'scheduler-sql-connection-string'
    properties: {
      value: 'mssql://${server.properties.fullyQualifiedDomainName}/${sqlDatabaseName}'
      contentType: 'text/plain'
    }
  }

  resource orchestratorSql 'secrets' = {
    name: 'orchestrator-sql-connection-string'
    properties: {
      value: 'mssql://${server.properties.fullyQualifiedDomainName}/${sqlDatabaseName}'
      contentType: 'text/plain'
    }
  }
}

// ---------------------------------------------------------------- Service Bus

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: shared.serviceBusName

  resource events 'topics' existing = {
    name: 'orchestrator-events'
  }
  resource jobs 'topics' existing = {
    name: 'worker-jobs'
  }
  resource results 'topics' existing = {
    name: 'worker-results'
  }
}

// What each value must be is in src/matoolkit/bus/topology.py; a test compares.
resource eventsOfOrchestrator 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2024-01-01' = {
  parent: namespace::events
  name: 'orchestrator'
  properties: {
    maxDeliveryCount: 10
    lockDuration: 'PT1M'
    defaultMessageTimeToLive: 'P7D'
    deadLetteringOnMessageExpiration: true
    deadLetteringOnFilterEvaluationExceptions: true
  }
}

resource resultsOfOrchestrator 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2024-01-01' = {
  parent: namespace::results
  name: 'orchestrator'
  properties: {
    maxDeliveryCount: 10
    lockDuration: 'PT1M'
    defaultMessageTimeToLive: 'P7D'
    deadLetteringOnMessageExpiration: true
    deadLetteringOnFilterEvaluationExceptions: true
  }
}

// Jobs for workers without a subscription. Service Bus would drop them without a word.
resource unclaimedJobs 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2024-01-01' = {
  parent: namespace::jobs
  name: 'unclaimed'
  properties: {
    maxDeliveryCount: 10
    lockDuration: 'PT1M'
    defaultMessageTimeToLive: 'P7D'
    deadLetteringOnMessageExpiration: true
    deadLetteringOnFilterEvaluationExceptions: true
  }
}

var quotedWorkers = map(sort(workerIds, (one, other) => one < other), one => '\'${one}\'')

// It has the name of the rule that Service Bus makes by itself, and so takes the place of the one that lets all through.
resource ofNoWorker 'Microsoft.ServiceBus/namespaces/topics/subscriptions/rules@2024-01-01' = {
  parent: unclaimedJobs
  name: '$Default'
  properties: {
    filterType: 'SqlFilter'
    sqlFilter: {
      sqlExpression: empty(workerIds) ? '1=1' : 'WorkerId IS NULL OR WorkerId NOT IN (${join(quotedWorkers, ', ')})'
    }
  }
}

// ---------------------------------------------------------------- apps

module scheduler '../../modules/function-app.bicep' = {
  name: 'scheduler'
  params: {
    shared: shared
    location: location
    name: schedulerAppName
    shortName: 'sched'
    subnetId: shared.subnets.scheduler
    deployerPrincipalId: deployerPrincipalId
    settings: union(sourceSettings, {
      MATOOLKIT_DATABASE_URL: '@Microsoft.KeyVault(SecretUri=${vault::schedulerSql.properties.secretUri})'
      MATOOLKIT_CLOUD: shared.cloud
      MATOOLKIT_BUS: 'servicebus'
      MATOOLKIT_SERVICE_BUS_NAMESPACE: shared.serviceBusHost
      MATOOLKIT_LOG_FORMAT: 'json'
    })
  }
}

module orchestrator '../../modules/function-app.bicep' = {
  name: 'orchestrator'
  params: {
    shared: shared
    location: location
    name: orchestratorAppName
    shortName: 'orch'
    subnetId: shared.subnets.orchestrator
    deployerPrincipalId: deployerPrincipalId
    // One instance of each is always there: a step that ends is followed by the next without a cold start.
    alwaysReady: ['events', 'results']
    settings: {
      MATOOLKIT_DATABASE_URL: '@Microsoft.KeyVault(SecretUri=${vault::orchestratorSql.properties.secretUri})'
      MATOOLKIT_CLOUD: shared.cloud
      MATOOLKIT_BUS: 'servicebus'
      MATOOLKIT_SERVICE_BUS_NAMESPACE: shared.serviceBusHost
      MATOOLKIT_LOG_FORMAT: 'json'
      // For the triggers of the host.
      ServiceBus__fullyQualifiedNamespace: shared.serviceBusHost
      ServiceBus__credential: 'managedidentity'
    }
  }
}

resource orchestratorReceives 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: namespace
  name: guid(namespace.id, orchestratorAppName, roles.serviceBusDataReceiver)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataReceiver)
    principalId: orchestrator.outputs.principalId
    principalType: 'ServicePrincipal'
  }
}

// ---------------------------------------------------------------- alerts

resource failingTicks 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${name}-failing-ticks'
  location: location
  properties: {
    description: 'No tick of the scheduler has succeeded for three intervals: new batches and due phases wait.'
    severity: 1
    enabled: true
    scopes: [scheduler.outputs.insightsId]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: 'requests | where name == "tick" and success == true'
          timeAggregation: 'Count'
          operator: 'LessThan'
          threshold: 1
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

// The orchestrator measures it, so it is seen even if no scheduler runs.
resource dueLag 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${name}-due-lag'
  location: location
  properties: {
    description: 'A phase is due and does not begin.'
    severity: 2
    enabled: true
    scopes: [orchestrator.outputs.insightsId]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: 'customMetrics | where name == "matoolkit.phase.lag" and value > ${dueLagMinutes} * 60'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
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

// The orchestrator takes dead letters from Service Bus within half a minute, often before its metric shows them.
resource deadLettersKept 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${name}-dead-letters-kept'
  location: location
  properties: {
    description: 'A message could not be handled. See: matoolkit dead-letter list'
    severity: 2
    enabled: true
    scopes: [orchestrator.outputs.insightsId]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: 'traces | where message has " became dead letters"'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
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

output sqlServerFqdn string = server.properties.fullyQualifiedDomainName
output sqlServerName string = server.name
output sqlDatabaseName string = sqlDatabaseName
output schedulerAppName string = scheduler.outputs.name
output orchestratorAppName string = orchestrator.outputs.name
