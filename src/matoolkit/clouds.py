"""Microsoft's clouds: one row for each, from which every address and scope that is not the public cloud's follows.

GCC, the smaller of the American government's offers, runs in the public cloud. GCC High is `usgov`, DoD is `usgovdod`;
both have their Azure resources in Azure Government. What each column says was read in

* authority, Graph: learn.microsoft.com/graph/deployments and /entra/identity-platform/authentication-national-cloud. Of
  the two addresses for China, Microsoft's library msal calls login.chinacloudapi.cn deprecated.
* tokens of version 1: their issuer is documented for no cloud. Microsoft's azure-spring-boot knows sts.windows.net and,
  for China, sts.chinacloudapi.cn. Those of version 2 are issued by the authority.
* Exchange: learn.microsoft.com/microsoft-365/enterprise/microsoft-365-u-s-government-dod-endpoints and its siblings;
  github.com/microsoft/CSS-Exchange has the same addresses.
* names for PowerShell: Connect-MgGraph -Environment, Connect-ExchangeOnline -ExchangeEnvironmentName.
* audience of federated credentials: learn.microsoft.com/entra/workload-id, page
  workload-identity-federation-config-app-trust-managed-identity.
* Key Vault, SQL, Service Bus: learn.microsoft.com/azure/azure-government/compare-azure-government-global-azure and
  docs.azure.cn/articles/guidance/developerdifferences. A token for Service Bus has the same scope in all clouds.
* Dataverse: the discovery addresses in learn.microsoft.com/power-apps/developer/data-platform/discovery-service.
* Databricks: github.com/databricks/databricks-sdk-go, config/environments.go.
"""

from collections.abc import Mapping
from typing import Literal

from matoolkit.records import record

CloudName = Literal["public", "usgov", "usgovdod", "china"]


@record
class Cloud:
    """One of Microsoft's clouds. Addresses begin with https://, the names of servers end with what is given here."""

    name: CloudName
    authority: str
    sts: str
    graph: str
    exchange: str
    graph_environment: str
    exchange_environment: str
    federation: str
    key_vault: str
    sql: str
    service_bus: str
    dataverse: str
    databricks: str

    def has(self, host: str) -> bool:
        """Tell whether a server has a name of this cloud."""
        ends = (self.key_vault, self.sql, self.service_bus, self.dataverse, self.databricks)
        return host.lower().rstrip(".").endswith(tuple(f".{end}" for end in ends))

    def elsewhere(self, host: str) -> str | None:
        """Say that a server is in another cloud, if its name says so; a name of no cloud may be anywhere."""
        others = [one.name for one in CLOUDS.values() if one.has(host)]
        if not others or self.name in others:
            return None
        return f"is in the cloud {' or '.join(others)}, and MATOOLKIT_CLOUD is {self.name}"


PUBLIC = Cloud(
    name="public",
    authority="https://login.microsoftonline.com",
    sts="https://sts.windows.net",
    graph="https://graph.microsoft.com",
    exchange="https://outlook.office365.com",
    graph_environment="Global",
    exchange_environment="O365Default",
    federation="api://AzureADTokenExchange",
    key_vault="vault.azure.net",
    sql="database.windows.net",
    service_bus="servicebus.windows.net",
    dataverse="dynamics.com",
    databricks="azuredatabricks.net",
)
_USGOV = Cloud(
    name="usgov",
    authority="https://login.microsoftonline.us",
    sts="https://sts.windows.net",
    graph="https://graph.microsoft.us",
    exchange="https://outlook.office365.us",
    graph_environment="USGov",
    exchange_environment="O365USGovGCCHigh",
    federation="api://AzureADTokenExchangeUSGov",
    key_vault="vault.usgovcloudapi.net",
    sql="database.usgovcloudapi.net",
    service_bus="servicebus.usgovcloudapi.net",
    dataverse="microsoftdynamics.us",
    databricks="databricks.azure.us",
)
_USGOVDOD = Cloud(
    name="usgovdod",
    authority="https://login.microsoftonline.us",
    sts="https://sts.windows.net",
    graph="https://dod-graph.microsoft.us",
    exchange="https://outlook-dod.office365.us",
    graph_environment="USGovDoD",
    exchange_environment="O365USGovDoD",
    federation="api://AzureADTokenExchangeUSGov",
    key_vault="vault.usgovcloudapi.net",
    sql="database.usgovcloudapi.net",
    service_bus="servicebus.usgovcloudapi.net",
    dataverse="appsplatform.us",
    databricks="databricks.azure.us",
)
_CHINA = Cloud(
    name="china",
    authority="https://login.partner.microsoftonline.cn",
    sts="https://sts.chinacloudapi.cn",
    graph="https://microsoftgraph.chinacloudapi.cn",
    exchange="https://partner.outlook.cn",
    graph_environment="China",
    exchange_environment="O365China",
    federation="api://AzureADTokenExchangeChina",
    key_vault="vault.azure.cn",
    sql="database.chinacloudapi.cn",
    service_bus="servicebus.chinacloudapi.cn",
    dataverse="dynamics.cn",
    databricks="databricks.azure.cn",
)

CLOUDS: Mapping[CloudName, Cloud] = {one.name: one for one in (PUBLIC, _USGOV, _USGOVDOD, _CHINA)}
