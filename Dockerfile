# One image for the worker (the default), `python -m deployments.apply`, the Prefect server and `nightdesk`.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/nightdesk \
    && /opt/nightdesk/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE prefect.yaml ./
COPY nightdesk ./nightdesk
COPY blocks ./blocks
COPY tasks ./tasks
COPY flows ./flows
COPY deployments ./deployments
COPY prompts ./prompts
COPY examples ./examples
RUN /opt/nightdesk/bin/pip install --no-cache-dir --no-deps .

FROM python:3.11-slim-bookworm
# A volume that is new takes the owner of the folder that it covers.
RUN useradd --create-home --uid 10001 nightdesk \
    && mkdir --parents /data/sites && chown --recursive nightdesk:nightdesk /data
COPY --from=build /opt/nightdesk /opt/nightdesk
ENV PATH=/opt/nightdesk/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NIGHTDESK_DATA_DIR=/data \
    PREFECT_HOME=/data/prefect
USER nightdesk
WORKDIR /data
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health', timeout=5)"]
CMD ["prefect", "worker", "start", "--pool", "nightdesk", "--limit", "6", "--with-healthcheck"]
