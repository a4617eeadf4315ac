# One image for the API and the workers, and, as target engine-cpu, one more with the small model and llama.cpp.
FROM python:3.11-slim AS stepladder
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY . .
# Built as a wheel: the links under src/ become ordinary packages, and no source stays behind.
RUN pip wheel --quiet --no-deps --wheel-dir /wheels . && pip install --quiet /wheels/*.whl && rm -r /src/*
RUN useradd --uid 10001 --create-home stepladder && mkdir /app && chown stepladder /app
USER stepladder
# The user's own module of tools and rules is mounted here, and named by STEPLADDER_APP.
WORKDIR /app
ENTRYPOINT ["stepladder"]

FROM stepladder AS engine-cpu
USER root
RUN pip install --quiet xllamacpp
USER stepladder
RUN python -c "from stepladder.embedded.model import ensure_model; print(ensure_model())" > /tmp/model
EXPOSE 8000
# It serves until its standard input ends: run it with one that stays open (`stdin_open: true`, `docker run -i`).
ENTRYPOINT ["sh", "-c", "exec python -m stepladder.embedded.llama_server --model=$(cat /tmp/model) --alias=smollm2-135m-instruct --host=0.0.0.0 --port=8000 --slots=4 --context=8192 --threads=$(nproc)"]
