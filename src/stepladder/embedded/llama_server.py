"""The process that runs llama.cpp's server: ``python -m stepladder.embedded.llama_server``, started by ``llama``.

It prints its address as one line once it answers there, and ends when its standard input does: with the process that
started it, however that ends.
"""

from __future__ import annotations

import argparse
import os
import sys


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--host", default="127.0.0.1")  # it asks for no key
    for name in ("port", "slots", "context", "threads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    wanted = parser.parse_args()

    import xllamacpp  # heavy

    params = xllamacpp.CommonParams()
    params.model.path = wanted.model
    params.model_alias = {wanted.alias}
    params.hostnames = [wanted.host]
    params.port = wanted.port
    params.n_parallel = wanted.slots
    params.n_ctx = wanted.context  # divided evenly among the slots
    params.cpuparams.n_threads = wanted.threads
    params.cpuparams_batch.n_threads = wanted.threads
    params.fit_params = False  # use the sizes above as they are
    # A reused prefix changes rounding: at temperature 1, 12 of 18 answers to the same seed differed. The price is 5 ms
    # for each token of the prompt.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.endpoint_metrics = True
    params.endpoint_slots = False  # it shows prompts of other clients
    params.ui = False
    params.cors_origins = ""  # no web page may call it
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:  # the log above it says more
        sys.exit(f"llama.cpp could not serve {wanted.model}: {error}")

    print(server.listening_address, flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdin.buffer.read()
    os._exit(0)  # a graceful shutdown would wait for answers that are not read


if __name__ == "__main__":
    main()
