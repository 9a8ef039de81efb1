"""One of two processes that share a run: shared_run.py SAMPLER STORE DRAWS PORT INDEX."""

import sys

from mintmc.run.processes import join

if __name__ == "__main__":
    name, out, draws, port, index = sys.argv[1:]
    join(f"127.0.0.1:{port}", 2, int(index))
    from resumed_run import run, run_one_chain

    if name == "one chain":
        run_one_chain(out, int(draws))
    else:
        run(name, out, int(draws))
