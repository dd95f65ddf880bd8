// What the first stage hands to the second, and the roles that identities get.

@export()
@description('What the templates of the second stage need to know of the first; it is the output `shared` of shared-infra.')
type Shared = {
  namePrefix: string
  environmentName: string
  cloud: string
  workspaceId: string
  actionGroupId: string
  serviceBusName: string
  serviceBusHost: string
  keyVaultName: string
  registryName: string
  subnets: {
    scheduler: string
    orchestrator: string
    adminApi: string
    cloudWorker: string
    privateEndpoints: string
  }
  zones: {
    sql: string
    blob: string
    queue: string
    table: string
    sites: string
  }
}

@export()
@description('Built-in roles by what they allow; Azure knows them by these ids in every tenant.')
var roles = {
  acrPull: '7f951dda-4ed3-4680-a7ca-43fe172d538d'
  acrPush: '8311e382-0749-4cb8-b61a-304f252e45ec'
  containerAppsContributor: '358470bc-b998-42bd-ab17-a7e34c199c0f'
  keyVaultSecretsUser: '4633458b-17de-408a-b874-0445c86b69e6'
  serviceBusDataOwner: '090c5cfd-751d-490a-894a-3ce6f1109419'
  serviceBusDataReceiver: '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0'
  serviceBusDataSender: '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'
  storageBlobDataOwner: 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
  storageTableDataContributor: '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
  websiteContributor: 'de139f84-1756-47ae-9be6-808fbbe84772'
}
