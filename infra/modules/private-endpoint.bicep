// An address inside the network for one service, and its name in the private zone.

@description('Name of the endpoint.')
param name string
param location string
@description('Subnet in which the endpoint gets its address.')
param subnetId string
@description('Resource that the endpoint leads to.')
param targetId string
@description('Which service of that resource: vault, namespace, sqlServer, blob, queue, table or sites.')
param groupId string
@description('Private zone in which the name is kept.')
param zoneId string

resource endpoint 'Microsoft.Network/privateEndpoints@2024-07-01' = {
  name: name
  location: location
  properties: {
    subnet: { id: subnetId }
    privateLinkServiceConnections: [
      {
        name: name
        properties: {
          privateLinkServiceId: targetId
          groupIds: [groupId]
        }
      }
    ]
  }
}

resource names 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2024-07-01' = {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: groupId
        properties: { privateDnsZoneId: zoneId }
      }
    ]
  }
}
