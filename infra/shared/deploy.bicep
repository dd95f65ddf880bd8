// Stage 1: what every part shares. Deploy it as `shared-infra`; its output `shared` is the parameter of stage 2.

import { Shared, roles } from '../modules/shared.bicep'

@description('First part of most names.')
@minLength(3)
@maxLength(12)
param namePrefix string = 'matoolkit'
@description('Which environment this is: dev, test, prod.')
@minLength(2)
@maxLength(8)
param environmentName string
param location string = resourceGroup().location
@description('Microsoft\'s cloud, as MATOOLKIT_CLOUD names it. Azure Government does not tell GCC High from DoD: for DoD give usgovdod.')
@allowed(['public', 'usgov', 'usgovdod', 'china'])
param cloud string = { AzureCloud: 'public', AzureUSGovernment: 'usgov', AzureChinaCloud: 'china' }[environment().name]

@description('Premium has a private endpoint and a fixed price a month. Standard has neither: its address is public, and only Entra identities with a role get in.')
@allowed(['Premium', 'Standard'])
param serviceBusTier string = 'Premium'
@description('Messaging units of a Premium namespace.')
@allowed([1, 2, 4, 8, 16])
param serviceBusCapacity int = 1
@description('Whether the three function apps have private endpoints, and there is a zone for their names.')
param privateSites bool = true
@description('Days for which Log Analytics keeps what it gets.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 30
@description('Who is told when an alert fires; nobody if it is empty.')
param alertEmail string = ''
@description('Object id of the identity that deploys the apps: it may push images. Empty: nobody may, except owners.')
param deployerPrincipalId string = ''

var name = '${namePrefix}-${environmentName}'
var unique = uniqueString(resourceGroup().id)
var isPremium = serviceBusTier == 'Premium'

// ---------------------------------------------------------------- network

// Flex Consumption and Container Apps both run in subnets that are delegated to Microsoft.App/environments.
var appSubnets = [
  { name: 'snet-scheduler', prefix: '10.0.1.0/24' }
  { name: 'snet-orchestrator', prefix: '10.0.2.0/24' }
  { name: 'snet-admin-api', prefix: '10.0.3.0/24' }
]

resource network 'Microsoft.Network/virtualNetworks@2024-07-01' = {
  name: '${name}-vnet'
  location: location
  properties: {
    addressSpace: { addressPrefixes: ['10.0.0.0/16'] }
    subnets: concat(
      map(appSubnets, subnet => {
        name: subnet.name
        properties: {
          addressPrefix: subnet.prefix
          delegations: [
            {
              name: 'apps'
              properties: { serviceName: 'Microsoft.App/environments' }
            }
          ]
          serviceEndpoints: [{ service: 'Microsoft.Storage' }]
        }
      }),
      [
        {
          name: 'snet-cloud-worker'
          properties: {
            addressPrefix: '10.0.4.0/23'
            delegations: [
              {
                name: 'apps'
                properties: { serviceName: 'Microsoft.App/environments' }
              }
            ]
          }
        }
        {
          name: 'snet-private-endpoints'
          properties: { addressPrefix: '10.0.10.0/24' }
        }
      ]
    )
  }

  resource scheduler 'subnets' existing = {
    name: 'snet-scheduler'
  }
  resource orchestrator 'subnets' existing = {
    name: 'snet-orchestrator'
  }
  resource adminApi 'subnets' existing = {
    name: 'snet-admin-api'
  }
  resource cloudWorker 'subnets' existing = {
    name: 'snet-cloud-worker'
  }
  resource privateEndpoints 'subnets' existing = {
    name: 'snet-private-endpoints'
  }
}

// What environment() does not know, by its name.
var namesOfClouds = {
  AzureCloud: {
    vault: 'vaultcore.azure.net'
    serviceBus: 'servicebus.windows.net'
    sites: 'azurewebsites.net'
  }
  AzureUSGovernment: {
    vault: 'vaultcore.usgovcloudapi.net'
    serviceBus: 'servicebus.usgovcloudapi.net'
    sites: 'azurewebsites.us'
  }
  AzureChinaCloud: {
    vault: 'vaultcore.azure.cn'
    serviceBus: 'servicebus.chinacloudapi.cn'
    sites: 'chinacloudsites.cn'
  }
}
var names = namesOfClouds[environment().name]
var zoneOfSites = 'privatelink.${names.sites}'

// The last is there with private sites only.
var zoneNames = concat(
  [
    'privatelink${environment().suffixes.sqlServerHostname}'
    'privatelink.${names.vault}'
    'privatelink.${names.serviceBus}'
    'privatelink.blob.${environment().suffixes.storage}'
    'privatelink.queue.${environment().suffixes.storage}'
    'privatelink.table.${environment().suffixes.storage}'
  ],
  privateSites ? [zoneOfSites] : []
)

resource zones 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for zone in zoneNames: {
    name: zone
    location: 'global'
  }
]

resource links 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (zone, index) in zoneNames: {
    parent: zones[index]
    name: '${name}-link'
    location: 'global'
    properties: {
      registrationEnabled: false
      virtualNetwork: { id: network.id }
    }
  }
]

// ---------------------------------------------------------------- logs and alerts

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-02-01' = {
  name: '${name}-logs'
  location: location
  properties: {
    sku: { name: 'PerGB2018' }
    retentionInDays: logRetentionDays
  }
}

resource people 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: '${name}-alerts'
  location: 'global'
  properties: {
    groupShortName: take(environmentName, 12)
    enabled: true
    emailReceivers: empty(alertEmail)
      ? []
      : [
          {
            name: 'operators'
            emailAddress: alertEmail
            useCommonAlertSchema: true
          }
        ]
  }
}

resource deadLetters 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: '${name}-dead-letters'
  location: 'global'
  properties: {
    description: 'A message could not be handled, and no orchestrator has taken it over yet.'
    severity: 2
    enabled: true
    scopes: [namespace.id]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          name: 'dead-letters'
          criterionType: 'StaticThresholdCriterion'
          metricNamespace: 'Microsoft.ServiceBus/namespaces'
          metricName: 'DeadletteredMessages'
          timeAggregation: 'Maximum'
          operator: 'GreaterThan'
          threshold: 0
          dimensions: [
            {
              name: 'EntityName'
              operator: 'Include'
              values: ['*']
            }
          ]
        }
      ]
    }
    actions: [{ actionGroupId: people.id }]
  }
}

resource silentWorkers 'Microsoft.Insights/metricAlerts@2018-03-01' = {
  name: '${name}-silent-workers'
  location: 'global'
  properties: {
    description: 'Jobs have waited for half an hour, and no worker has finished one. See: matoolkit worker check'
    severity: 1
    enabled: true
    scopes: [namespace.id]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT30M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          name: 'waiting'
          criterionType: 'StaticThresholdCriterion'
          metricNamespace: 'Microsoft.ServiceBus/namespaces'
          metricName: 'ActiveMessages'
          timeAggregation: 'Minimum'
          operator: 'GreaterThan'
          threshold: 0
          dimensions: [
            {
              name: 'EntityName'
              operator: 'Include'
              values: ['worker-jobs']
            }
          ]
        }
        {
          name: 'finished'
          criterionType: 'StaticThresholdCriterion'
          metricNamespace: 'Microsoft.ServiceBus/namespaces'
          metricName: 'CompleteMessage'
          timeAggregation: 'Total'
          operator: 'LessThanOrEqual'
          threshold: 0
          dimensions: [
            {
              name: 'EntityName'
              operator: 'Include'
              values: ['worker-jobs']
            }
          ]
        }
      ]
    }
    actions: [{ actionGroupId: people.id }]
  }
}

// ---------------------------------------------------------------- Service Bus

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  name: '${name}-bus-${unique}'
  location: location
  sku: isPremium
    ? {
        name: 'Premium'
        tier: 'Premium'
        capacity: serviceBusCapacity
      }
    : {
        name: 'Standard'
        tier: 'Standard'
      }
  properties: {
    // There are no keys: everybody, the scaler included, signs in with an identity.
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: isPremium ? 'Disabled' : 'Enabled'
  }
}

// What each value must be is in src/matoolkit/bus/topology.py; a test compares.
var topicNames = ['orchestrator-events', 'worker-jobs', 'worker-results']

resource topics 'Microsoft.ServiceBus/namespaces/topics@2024-01-01' = [
  for topic in topicNames: {
    parent: namespace
    name: topic
    properties: {
      maxSizeInMegabytes: 1024
      enablePartitioning: false
      requiresDuplicateDetection: true
      duplicateDetectionHistoryTimeWindow: 'PT10M'
      defaultMessageTimeToLive: 'P7D'
    }
  }
]

module serviceBusEndpoint '../modules/private-endpoint.bicep' = if (isPremium) {
  name: 'pe-sb'
  params: {
    name: '${name}-pe-sb'
    location: location
    subnetId: network::privateEndpoints.id
    targetId: namespace.id
    groupId: 'namespace'
    zoneId: zones[2].id
  }
}

// ---------------------------------------------------------------- Key Vault

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' = {
  name: take('kv-${environmentName}-${unique}', 24)
  location: location
  properties: {
    tenantId: tenant().tenantId
    sku: {
      family: 'A'
      name: 'standard'
    }
    enableRbacAuthorization: true
    enableSoftDelete: true
    softDeleteRetentionInDays: 7
    enablePurgeProtection: true
    // Open to Azure's own services only, so that deployments can write secrets and certificates can be renewed.
    publicNetworkAccess: 'Enabled'
    networkAcls: {
      defaultAction: 'Deny'
      bypass: 'AzureServices'
    }
  }
}

module vaultEndpoint '../modules/private-endpoint.bicep' = {
  name: 'pe-kv'
  params: {
    name: '${name}-pe-kv'
    location: location
    subnetId: network::privateEndpoints.id
    targetId: vault.id
    groupId: 'vault'
    zoneId: zones[1].id
  }
}

// ---------------------------------------------------------------- registry

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' = {
  name: take('cr${replace(name, '-', '')}${unique}', 50)
  location: location
  sku: { name: 'Basic' }
  properties: {
    adminUserEnabled: false
    anonymousPullEnabled: false
  }
}

resource deployerPushes 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerPrincipalId)) {
  scope: registry
  name: guid(registry.id, 'deployer', roles.acrPush)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.acrPush)
    principalId: deployerPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// ---------------------------------------------------------------- what stage 2 needs

@description('Give this to every template of stage 2, as it is.')
output shared Shared = {
  namePrefix: namePrefix
  environmentName: environmentName
  cloud: cloud
  workspaceId: workspace.id
  actionGroupId: people.id
  serviceBusName: namespace.name
  serviceBusHost: split(split(namespace.properties.serviceBusEndpoint, '/')[2], ':')[0]
  keyVaultName: vault.name
  registryName: registry.name
  subnets: {
    scheduler: network::scheduler.id
    orchestrator: network::orchestrator.id
    adminApi: network::adminApi.id
    cloudWorker: network::cloudWorker.id
    privateEndpoints: network::privateEndpoints.id
  }
  zones: {
    sql: zones[0].id
    blob: zones[3].id
    queue: zones[4].id
    table: zones[5].id
    sites: privateSites ? resourceId('Microsoft.Network/privateDnsZones', zoneOfSites) : ''
  }
}
