// The subscription from which one worker takes its jobs, and the right of its scaler to count them.
// What each value must be is in src/matoolkit/bus/topology.py; a test compares.

import { roles } from 'shared.bicep'

param serviceBusName string
@description('Which jobs the subscription takes.')
param workerId string
@description('Identity of the scaler.')
param scalerPrincipalId string

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: serviceBusName

  resource jobs 'topics' existing = {
    name: 'worker-jobs'
  }
}

resource subscription 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2024-01-01' = {
  parent: namespace::jobs
  name: 'worker-${workerId}'
  properties: {
    maxDeliveryCount: 10
    lockDuration: 'PT1M'
    defaultMessageTimeToLive: 'P7D'
    deadLetteringOnMessageExpiration: true
    deadLetteringOnFilterEvaluationExceptions: true
  }
}

// It has the name of the rule that Service Bus makes by itself, and so takes the place of the one that lets all through.
resource filter 'Microsoft.ServiceBus/namespaces/topics/subscriptions/rules@2024-01-01' = {
  parent: subscription
  name: '$Default'
  properties: {
    filterType: 'SqlFilter'
    sqlFilter: { sqlExpression: 'WorkerId = \'${workerId}\'' }
  }
}

// KEDA counts through the administration address, which only this built-in role opens. The scope is the one
// subscription, and no container can get a token of this identity.
resource scalerCounts 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: subscription
  name: guid(subscription.id, 'scaler', roles.serviceBusDataOwner)
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.serviceBusDataOwner)
    principalId: scalerPrincipalId
    principalType: 'ServicePrincipal'
  }
}

output name string = subscription.name
