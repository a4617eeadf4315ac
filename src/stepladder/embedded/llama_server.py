"""The process around llama.cpp's server: ``python -m stepladder.embedded.llama_server``, started by `embedded.llama`.

It writes its address to standard output, as one line, once it answers there, and ends when its standard input does:
with the process that started it, however that one ends.
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
    parser.add_argument("--host", default="127.0.0.1")  # another one only inside a network that is closed itself
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    wanted = parser.parse_args()

    import xllamacpp  # heavy, and of no use to whoever imports this module

    params = xllamacpp.CommonParams()
    params.model.path = wanted.model
    params.model_alias = {wanted.alias}
    params.hostnames = [wanted.host]
    params.port = wanted.port
    params.n_parallel = wanted.slots
    params.n_ctx = wanted.context  # shared out evenly among the slots
    params.cpuparams.n_threads = wanted.threads
    params.cpuparams_batch.n_threads = wanted.threads
    params.fit_params = False  # the sizes above are meant
    # A reused prefix changes the rounding: at temperature 1, 12 of 18 answers to the same seed came out different. The
    # price is 5 ms for each token of the prompt.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.endpoint_metrics = True
    params.endpoint_slots = False  # shows other people's prompts
    params.ui = False
    params.cors_origins = ""  # no page in a browser has business here
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:  # which says less than the log above it
        sys.exit(f"llama.cpp could not serve {wanted.model}: {error}")

    print(server.listening_address, flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdin.buffer.read()
    os._exit(0)  # an orderly end would wait for answers that nobody will read


if __name__ == "__main__":
    main()
