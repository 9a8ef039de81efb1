"""One of two processes that share a run: shared_run.py SAMPLER STORE DRAWS PORT INDEX SETTINGS TIMEOUT."""

import json
import sys

from mintmc.run.processes import join, leave

if __name__ == "__main__":
    name, out, draws, port, index, settings, timeout = sys.argv[1:]
    join(f"127.0.0.1:{port}", 2, int(index), int(timeout))
    from mintmc.store import keeper
    from resumed_run import run, run_one_chain

    try:
        if name == "one chain":
            # Its steps are slow here: save as soon as there is something to save.
            keeper._SECONDS_BETWEEN, keeper._SHARE = 0.0, 1e9
            run_one_chain(out, int(draws))
        else:
            run(name, out, int(draws), **json.loads(settings))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        leave(2)
