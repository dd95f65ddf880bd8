// A Flex Consumption app with an identity, a storage account without keys, an Application Insights of its own, and the
// roles that the table in docs/how-to/deploy-to-azure.md gives to every app.

import { Shared, roles } from 'shared.bicep'

param shared Shared
param location string
@description('Name of the app; its identity has this name too.')
param name string
@description('Short name in the names of its other resources, such as sched.')
@maxLength(5)
param shortName string
@description('Subnet through which the app reaches everything.')
param subnetId string
@description('Settings of the app by name; those that the host needs are added.')
param settings object
@description('Identities that the app has beside its own, each by its id with an empty object.')
param identities object = {}
@description('Functions that always have one instance.')
param alwaysReady array = []
@description('Most instances at the same time.')
param maximumInstances int = 40
@description('Whether the app can be reached from outside the network.')
param isPublic bool = false
@description('Object id of the identity that deploys the code; empty is none.')
param deployerPrincipalId string = ''

var container = 'deployments'
var hostSettings = {
  // Identity-based: the account is named, and there is no key to it.
  AzureWebJobsStorage__accountName: storage.name
  AzureWebJobsStorage__credential: 'managedidentity'
  // The app signs in as itself and as nobody else; azure-identity reads this.
  AZURE_TOKEN_CREDENTIALS: 'ManagedIdentityCredential'
  APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
  // Spans and metrics of our own, beside what the host sends.
  MATOOLKIT_TELEMETRY: 'azure'
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: '${name}-insights'
  location: location
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: shared.workspaceId
  }
}

resource storage 'Microsoft.Storage/storageAccounts@2025-01-01' = {
  name: take('st${shortName}${shared.environmentName}${uniqueString(resourceGroup().id)}', 24)
  location: location
  kind: 'StorageV2'
  // It holds code and leases of the host, which a deployment makes again: one zone is enough.
  sku: { name: 'Standard_LRS' }
  properties: {
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    // The firewall below is on; without public access at all its list of subnets would not count.
    publicNetworkAccess: 'Enabled'
    networkAcls: {
      defaultAction: 'Deny'
      bypass: 'AzureServices'
      virtualNetworkRules: [{ id: subnetId }]
    }
  }

  resource blobs 'blobServices' = {
    name: 'default'

    resource packages 'containers' = {
      name: container
    }
  }
}

var services = [
  { group: 'blob', zone: shared.zones.blob }
  { group: 'queue', zone: shared.zones.queue }
  { group: 'table', zone: shared.zones.table }
]

module storageEndpoints 'private-endpoint.bicep' = [
  for service in services: {
    name: 'pe-st-${shortName}-${service.group}'
    params: {
      name: '${name}-pe-st-${service.group}'
      location: location
      subnetId: shared.subnets.privateEndpoints
      targetId: storage.id
      groupId: service.group
      zoneId: service.zone
    }
  }
]

resource plan 'Microsoft.Web/serverfarms@2024-11-01' = {
  name: '${name}-plan'
  location: location
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: { reserved: true }
}

resource app 'Microsoft.Web/sites@2024-11-01' = {
  name: name
  location: location
  kind: 'functionapp,linux'
  identity: {
    type: empty(identities) ? 'SystemAssigned' : 'SystemAssigned, UserAssigned'
    userAssignedIdentities: empty(identities) ? null : identities
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    publicNetworkAccess: isPublic ? 'Enabled' : 'Disabled'
    virtualNetworkSubnetId: subnetId
    keyVaultReferenceIdentity: 'SystemAssigned'
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${storage.properties.primaryEndpoints.blob}${container}'
          authentication: { type: 'SystemAssignedIdentity' }
        }
      }
      scaleAndConcurrency: {
        instanceMemoryMB: 2048
        maximumInstanceCount: maximumInstances
        alwaysReady: map(alwaysReady, one => {
          name: 'function:${one}'
          instanceCount: 1
        })
      }
      runtime: {
        name: 'python'
        version: '3.11'
      }
    }
    siteConfig: {
      minTlsVersion: '1.2'
      ftpsState: 'Disabled'
      http20Enabled: true
      vnetRouteAllEnabled: true
      appSettings: map(items(union(settings, hostSettings)), one => {
        name: one.key
        value: one.value
      })
    }
  }
  dependsOn: [storageEndpoints]
}

// Code comes with an Entra token only: publishing passwords are off.
resource passwords 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2024-11-01' = [
  for kind in ['ftp', 'scm']: {
    parent: app
    name: kind
    properties: { allow: false }
  }
]

// Without it nobody reaches a private app, and no code can be deployed to it.
module siteEndpoint 'private-endpoint.bicep' = if (!empty(shared.zones.sites)) {
  name: 'pe-sites-${shortName}'
  params: {
    name: '${name}-pe-sites'
    location: location
    subnetId: shared.subnets.privateEndpoints
    targetId: app.id
    groupId: 'sites'
    zoneId: shared.zones.sites
  }
}

// ---------------------------------------------------------------- roles of the app

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: shared.keyVaultName
}

resource appReadsSecrets 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: vault
  name: guid(vault.id, name, roles.keyVaultSecretsUser)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.keyVaultSecretsUser)
    principalId: app.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

resource appOwnsBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: storage
  name: guid(storage.id, name, roles.storageBlobDataOwner)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageBlobDataOwner)
    principalId: app.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

resource appWritesTables 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: storage
  name: guid(storage.id, name, roles.storageTableDataContributor)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.storageTableDataContributor)
    principalId: app.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: shared.serviceBusName
}

resource appSends 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: namespace
  name: guid(namespace.id, name, roles.serviceBusDataSender)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataSender)
    principalId: app.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

resource deployerDeploys 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerPrincipalId)) {
  scope: app
  name: guid(app.id, 'deployer', roles.websiteContributor)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.websiteContributor)
    principalId: deployerPrincipalId
    principalType: 'ServicePrincipal'
  }
}

output name string = app.name
output principalId string = app.identity.principalId
output hostName string = app.properties.defaultHostName
output insightsId string = insights.id
