# One image for every process: matoolkit scheduler run, orchestrator run, api serve, worker run. Build the wheel first:
#
#   make wheel
#   docker build --target matoolkit --tag matoolkit .
#   docker build --target powershell --tag matoolkit-powershell .
#
# Run it with a read-only root file system and a /tmp of its own. Give it longer to stop than running jobs may take
# (SHUTDOWN_GRACE_SECONDS, 30 by default):
#
#   docker run --read-only --tmpfs /tmp --stop-timeout 60 matoolkit worker run --health-port 8081

ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
COPY requirements/image.txt dist/*.whl /build/
RUN python -m venv /opt/matoolkit \
    && /opt/matoolkit/bin/pip install --no-cache-dir --require-hashes --requirement /build/image.txt \
    && /opt/matoolkit/bin/pip install --no-cache-dir --no-deps /build/*.whl \
    && /opt/matoolkit/bin/pip uninstall --yes pip

FROM python:${PYTHON} AS matoolkit
# The driver of SQL Server loads libltdl. A version would pin a package that Debian replaces with its fixes.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libltdl7 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin matoolkit
COPY --from=build /opt/matoolkit /opt/matoolkit
# Nothing is written outside /tmp. Every line of the log is JSON.
ENV PATH=/opt/matoolkit/bin:$PATH \
    HOME=/tmp \
    MATOOLKIT_LOG_FORMAT=json \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 10001:10001
# The admin API, and the health of a worker.
EXPOSE 8080 8081
# The process is number 1 and gets the signal itself: it finishes what is at hand and gives the rest back.
STOPSIGNAL SIGTERM
ENTRYPOINT ["matoolkit"]
CMD ["--help"]

# For functions of your own in PowerShell: 7.4 with the modules of Microsoft Graph and Exchange Online.
FROM matoolkit AS powershell
ARG POWERSHELL=7.4.*
ARG GRAPH=2.*
ARG EXCHANGE=3.*
USER 0
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl gnupg \
    && curl --fail --silent --show-error --location https://packages.microsoft.com/keys/microsoft.asc \
        | gpg --dearmor --output /usr/share/keyrings/microsoft.gpg \
    && echo "deb [signed-by=/usr/share/keyrings/microsoft.gpg] https://packages.microsoft.com/debian/12/prod bookworm main" \
        > /etc/apt/sources.list.d/microsoft.list \
    && apt-get update \
    && apt-get install --yes --no-install-recommends "powershell=${POWERSHELL}" \
    && apt-get purge --yes --auto-remove curl gnupg \
    && rm -rf /var/lib/apt/lists/* \
    && pwsh -NoLogo -NoProfile -NonInteractive -Command "\
        \$ErrorActionPreference = 'Stop'; \
        Install-PSResource -Name Microsoft.Graph.Authentication -Version '${GRAPH}' -Scope AllUsers -TrustRepository; \
        Install-PSResource -Name Microsoft.Graph.Users -Version '${GRAPH}' -Scope AllUsers -TrustRepository; \
        Install-PSResource -Name Microsoft.Graph.Groups -Version '${GRAPH}' -Scope AllUsers -TrustRepository; \
        Install-PSResource -Name ExchangeOnlineManagement -Version '${EXCHANGE}' -Scope AllUsers -TrustRepository"
ENV POWERSHELL_TELEMETRY_OPTOUT=1 \
    POWERSHELL_UPDATECHECK=Off \
    PSModuleAnalysisCachePath=/tmp/powershell-modules
USER 10001:10001
