# A session of the worker: signs in when it is told to, then runs scripts and cmdlets until its input ends.
#
# A request is one line of JSON on standard input, with an id and one of
#   connect  'Graph' or 'Exchange', with tenantId, appId, organization, environment, certificate (base64 of PFX or PEM)
#   script   the path of a script, with arguments, and job: its job as JSON, which the script finds in $env:WORKER_JOB
#   cmdlet   the name of a cmdlet, with arguments, and password if it takes one
# The answer is one line of JSON on standard output, with the same id, and result, or error with type and throttled.
# The worker ignores every other line. Nothing secret stands on a command line or in the environment.

$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
$WarningPreference = 'SilentlyContinue'
$utf8 = [System.Text.UTF8Encoding]::new($false)
$requests = [System.IO.StreamReader]::new([Console]::OpenStandardInput(), $utf8)
$answers = [System.IO.StreamWriter]::new([Console]::OpenStandardOutput(), $utf8)
$answers.AutoFlush = $true

function Get-SessionCertificate([string] $encoded) {
    $data = [Convert]::FromBase64String($encoded)
    $text = $utf8.GetString($data)
    if ($text.Contains('-----BEGIN ')) {
        return [System.Security.Cryptography.X509Certificates.X509Certificate2]::CreateFromPem($text, $text)
    }
    # Without this flag the private key would be written to disk.
    $flags = [System.Security.Cryptography.X509Certificates.X509KeyStorageFlags]::EphemeralKeySet
    return [System.Security.Cryptography.X509Certificates.X509Certificate2]::new($data, [string]::Empty, $flags)
}

function Connect-Session($request) {
    $certificate = Get-SessionCertificate $request.certificate
    if ($request.connect -eq 'Graph') {
        Connect-MgGraph -TenantId $request.tenantId -ClientId $request.appId -Certificate $certificate -Environment $request.environment -NoWelcome | Out-Null
    }
    else {
        Connect-ExchangeOnline -AppId $request.appId -Certificate $certificate -Organization $request.organization -ExchangeEnvironmentName $request.environment -ShowBanner:$false | Out-Null
    }
}

function Remove-TypeMark($value) {
    # InvokeCommand marks the hash tables that change a list; PowerShell takes them without the mark.
    if ($value -is [System.Collections.IDictionary]) {
        $value.Remove('@odata.type')
        foreach ($key in @($value.Keys)) { Remove-TypeMark $value[$key] }
    }
}

function Invoke-Request($request) {
    $arguments = if ($request.arguments) { $request.arguments } else { @{} }
    if ($request.connect) {
        Connect-Session $request
        return
    }
    if ($request.script) {
        $env:WORKER_JOB = $request.job
        & $request.script @arguments
        return
    }
    Remove-TypeMark $arguments
    if ($request.password) {
        $arguments['Password'] = ConvertTo-SecureString $request.password -AsPlainText -Force
    }
    & $request.cmdlet @arguments | Select-Object -Property *
}

function Test-Throttled($problem) {
    $status = $problem.Exception.Response.StatusCode -as [int]
    return $status -in 429, 503 -or $problem.FullyQualifiedErrorId -like 'Throttled*' -or
        $problem.Exception.Message -match 'throttled|too many requests|server is busy|ServerBusyException|OverBudgetException'
}

while ($null -ne ($line = $requests.ReadLine())) {
    $answer = @{}
    try {
        $request = ConvertFrom-Json $line -AsHashtable
        $answer.id = $request.id
        # What a script writes besides its result, such as Write-Host, goes nowhere.
        $output = @(Invoke-Request $request 6>$null)
        $answer.result = if ($output.Count -eq 0) { $null } elseif ($output.Count -eq 1) { $output[0] } else { $output }
        $written = ConvertTo-Json $answer -Depth 8 -Compress -EnumsAsStrings
    }
    catch {
        $problem = @{
            id        = $answer.id
            error     = $_.Exception.Message
            type      = [string] $_.CategoryInfo.Reason
            throttled = [bool] (Test-Throttled $_)
        }
        $written = ConvertTo-Json $problem -Compress
    }
    $answers.WriteLine($written)
}
