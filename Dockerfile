# Checked by hadolint (`make check`); CI does not build or run this image.

# The multi-platform image of Python 3.12 on Debian 12. To update it, change both lines.
FROM python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254 AS build
COPY pyproject.toml requirements.lock README.md LICENSE /source/
COPY src /source/src
# Compiled here, because the user of the image cannot write there. Packages whose hash is not in the lock file are refused.
RUN python -m venv /opt/extcli \
 && /opt/extcli/bin/pip install --no-cache-dir --compile --require-hashes -r /source/requirements.lock \
 && /opt/extcli/bin/pip install --no-cache-dir --compile --no-deps --no-build-isolation /source

FROM python:3.12-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254
COPY --from=build /opt/extcli /opt/extcli
# A named volume mounted at /data takes its owner from here. There is no VOLUME: it would leave one behind after each run.
RUN install -d -m 700 -o 10001 -g 10001 /data
# On all addresses of the container, the control API asks for a token: EXTCLI_SERVE_CONTROL_TOKEN, or one that is printed.
# Each option of `serve` is a variable: --max-body is EXTCLI_SERVE_MAX_BODY.
ENV PATH=/opt/extcli/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    EXTCLI_SERVE_HOST=0.0.0.0 \
    EXTCLI_SERVE_DATA=sqlite:///data/extension.db
USER 10001:10001
WORKDIR /data
EXPOSE 8282
# `extcli wait` calls http://127.0.0.1:8282. If you change EXTCLI_SERVE_PORT, set EXTCLI_URL too. It exits 0 if the service
# is ready, else 3 or 7; Docker counts every code but 0 as unhealthy. Code 2, which Docker reserves, means that EXTCLI_URL
# is not a URL.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
    CMD ["extcli", "wait", "--timeout", "2s"]
ENTRYPOINT ["extcli"]
CMD ["serve"]
