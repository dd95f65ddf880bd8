#Requires -Modules ExchangeOnlineManagement
<#
.SYNOPSIS
    Tells how large somebody's mailbox is.

.PARAMETER Identity
    string, mandatory. Whose mailbox it is.
#>
param([string] $Identity)

# The worker has connected this session to Exchange; the script only uses it.
$found = Get-EXOMailboxStatistics -Identity $Identity -Properties TotalItemSize, ItemCount
@{ Items = $found.ItemCount; Size = [string] $found.TotalItemSize }
