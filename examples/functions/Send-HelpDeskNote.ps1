<#
.SYNOPSIS
    Writes a note for the help desk about somebody who moves.

.PARAMETER UserId
    string, mandatory. Whom it is about.

.PARAMETER Text
    string, mandatory. What the help desk should know.

.PARAMETER Token
    string, secret. Lets the worker into the help desk; write secret:NAME in the runbook.
#>
$ErrorActionPreference = 'Stop'
$given = [Console]::In.ReadToEnd() | ConvertFrom-Json

$note = @{
    # The same person and text make the same id, so a second run writes no second note.
    uri         = "$env:HELP_DESK_URL/notes/$($given.UserId)"
    method      = 'Put'
    headers     = @{ Authorization = "Bearer $($given.Token)" }
    body        = @{ text = $given.Text } | ConvertTo-Json
    contentType = 'application/json'
}
try {
    $answer = Invoke-RestMethod @note
}
catch [Microsoft.PowerShell.Commands.HttpResponseException] {
    [Console]::Error.WriteLine($_.Exception.Message)
    # 75 says that the service is busy: the job is tried again later and uses up no retry.
    exit ($_.Exception.Response.StatusCode -eq 429 ? 75 : 1)
}

@{ NoteId = $answer.id } | ConvertTo-Json -Compress
