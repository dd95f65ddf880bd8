// Stage 2b: the admin API, after 2a, whose database it uses. Deploy it as `admin-api`.

import { Shared } from '../../modules/shared.bicep'

@description('The output `shared` of the deployment shared-infra.')
param shared Shared
param location string = resourceGroup().location

@description('Tenant whose people and applications may sign in.')
param entraIdTenantId string
@description('Application id of the admin API in that tenant.')
param entraIdClientId string
@description('Audience that tokens must have, such as api://{client-id}.')
param entraIdAudience string
@description('Address at which browsers find the pages, such as https://migrate.contoso.example. Empty: nobody signs in to pages. It needs the secret web-key in the vault.')
param webAddress string = ''
@description('Output of the deployment scheduler-orchestrator.')
param sqlServerFqdn string
@description('Output of the deployment scheduler-orchestrator.')
param sqlDatabaseName string

@description('Name of the app; it is an address too, and must be free in all of Azure.')
param adminApiAppName string = '${shared.namePrefix}-admin-api-func'
@description('Variables that runbooks name as their sources, for query previews: the same as those of the scheduler.')
param sourceSettings object = {}
@description('Whether the API can be reached from outside the network. Entra guards it either way.')
param isPublic bool = false
@description('Object id of the identity that deploys the apps; empty is none.')
param deployerPrincipalId string = ''

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' existing = {
  name: shared.keyVaultName

  // The address has no password: the app signs in with its own identity.
  resource adminApiSql 'secrets' = {
    name: 'admin-api-sql-connection-string'
    properties: {
      value: 'mssql://${sqlServerFqdn}/${sqlDatabaseName}'
      contentType: 'text/plain'
    }
  }
}

// The pages prove with it that they are the application that people sign in to. It has no role anywhere.
resource pages 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${adminApiAppName}-pages'
  location: location
}

var webKey = '@Microsoft.KeyVault(VaultName=${shared.keyVaultName};SecretName=web-key)'
var webSettings = empty(webAddress) ? {} : {
  MATOOLKIT_WEB_ADDRESS: webAddress
  MATOOLKIT_WEB_KEY: webKey
  MATOOLKIT_WEB_IDENTITY: pages.properties.clientId
}

module adminApi '../../modules/function-app.bicep' = {
  name: 'admin-api-app'
  params: {
    shared: shared
    location: location
    name: adminApiAppName
    shortName: 'api'
    subnetId: shared.subnets.adminApi
    isPublic: isPublic
    deployerPrincipalId: deployerPrincipalId
    identities: { '${pages.id}': {} }
    settings: union(sourceSettings, webSettings, {
      MATOOLKIT_DATABASE_URL: '@Microsoft.KeyVault(SecretUri=${vault::adminApiSql.properties.secretUri})'
      MATOOLKIT_CLOUD: shared.cloud
      MATOOLKIT_BUS: 'servicebus'
      MATOOLKIT_SERVICE_BUS_NAMESPACE: shared.serviceBusHost
      MATOOLKIT_ENTRA_TENANT_ID: entraIdTenantId
      MATOOLKIT_ENTRA_CLIENT_ID: entraIdClientId
      MATOOLKIT_ENTRA_AUDIENCE: entraIdAudience
      MATOOLKIT_LOG_FORMAT: 'json'
      // The host would show a page of its own at the root.
      AzureWebJobsDisableHomepage: 'true'
    })
  }
}

@description('The subject of the federated credential of the application, see docs/how-to/sign-in.md.')
output webIdentityPrincipalId string = pages.properties.principalId
output adminApiAppName string = adminApi.outputs.name
output adminApiUrl string = 'https://${adminApi.outputs.hostName}'
