# One image for the worker, `deployments.apply`, the Prefect server and the `nightdesk` command.
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
RUN useradd --create-home --uid 10001 nightdesk \
    && mkdir /data && chown nightdesk:nightdesk /data
COPY --from=build /opt/nightdesk /opt/nightdesk
ENV PATH=/opt/nightdesk/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NIGHTDESK_DATA_DIR=/data \
    PREFECT_HOME=/data/prefect
USER nightdesk
WORKDIR /data
VOLUME /data
# Runs are children of the worker: whoever stops the container must reach them.
STOPSIGNAL SIGTERM
CMD ["prefect", "worker", "start", "--pool", "nightdesk"]
