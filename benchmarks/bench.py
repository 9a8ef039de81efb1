"""The benchmark: ours, the peers that users would pick instead, and the machine's limit, side by side in one run.

    make bench                                  # about ten minutes on two idle cores
    make bench-full                             # every row, hours; then the figures
    make bench-guard                            # under two minutes: a few ratios against guard.json
    python benchmarks/bench.py --list           # names of rows
    python benchmarks/bench.py mint-step sgld   # some of them

Every row runs in a process of its own and is printed as it is measured. results.json and RESULTS.md are written after
each; rows that were not run keep their last entry, with the date and the versions at which it was measured.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from harness import guard, process, table
from harness.rows import GUARD, ROWS, parts

HERE = Path(__file__).parent
AGAIN = 2
RESULTS, STORED, FIGURES = HERE / "results.json", HERE / "guard.json", HERE / "figures"


def arguments(words):
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", help="names of rows; none are those of ten minutes")
    parser.add_argument("--full", action="store_true", help="every row, and the figures")
    parser.add_argument("--list", action="store_true", help="the names of rows, and nothing else")
    parser.add_argument("--json", action="store_true", help="print lines as JSON")
    parser.add_argument("--plots", action="store_true", help="draw the figures from results.json, and nothing else")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that rows run; nothing is written")
    parser.add_argument("--guard", action="store_true", help="the fast subset against guard.json; 1 if one is worse")
    parser.add_argument("--store", action="store_true", help="with --guard: write guard.json instead")
    given = parser.parse_args(words)
    known = [row.name for row in (GUARD if given.guard else ROWS)]
    unknown = [name for name in given.rows if name not in known]
    if unknown:
        parser.error(f"rows must be some of {', '.join(known)}, got {', '.join(unknown)}")
    return given


def wanted(given):
    """Rows, in their order."""
    rows = GUARD if given.guard else ROWS
    if given.rows:
        return [row for row in rows if row.name in given.rows]
    return [row for row in rows if given.full or not row.is_full]


def measured(row, given):
    """Its lines, in a process of its own, printed; None if it failed, and says so."""
    kind, size = "guard" if given.guard else "row", "small" if given.small else "whole"
    try:
        lines = process.measured(__file__, "--one", kind, row.name, size)
    except process.Failed as failure:
        print(f"{row.name}: {failure}", file=sys.stderr, flush=True)
        return None
    for line in lines:
        print(json.dumps({"row": row.name, **line}) if given.json else table.shown(row.name, line), flush=True)
    for who, why in dict(table.skips({"lines": lines})).items():
        print(f"{row.name}: {who}: {why}", file=sys.stderr, flush=True)
    return lines


def run(rows, given):
    """Every row; the number of those that failed."""
    order, failed = [row.name for row in ROWS], 0
    for row in rows:
        begun = time.perf_counter()
        lines = measured(row, given)
        if lines is None:
            failed += 1
        elif not given.small:
            now = {row.name: table.entry(lines, time.perf_counter() - begun)}
            table.written(RESULTS, table.merged(table.read(RESULTS), now, order))
    return failed


def watch(rows, given):
    """The guard: lines that say what is worse; none if nothing is. What seems so is measured again, twice at most."""
    lines = _guarded(rows, given)
    if given.store:
        guard.write(STORED, lines)
        return []
    names = {row.name for row in rows}
    stored = {name: kept for name, kept in guard.read(STORED).items() if name.split(":")[0] in names}
    worse = guard.judged(lines, stored)
    for _ in range(AGAIN):
        again = {told.split(":")[0] for told in worse}
        if not again:
            break
        lines = guard.better(lines, _guarded([row for row in rows if row.name in again], given))
        worse = guard.judged(lines, stored)
    return worse


def _guarded(rows, given):
    return guard.named({row.name: lines for row in rows if (lines := measured(row, given)) is not None})


def draw():
    """The figures, from what is in results.json."""
    from harness import plots

    for path in plots.draw(table.read(RESULTS), FIGURES):
        print(path)


def answer(words):
    """The other end of a process of its own."""
    if words[0] == "--part":
        process.answer(parts(), words[1:])
        return
    _, kind, name, size = words
    row = next(row for row in (GUARD if kind == "guard" else ROWS) if row.name == name)
    print(json.dumps(row.measure(size == "small")))


def main(words):
    if words and words[0] in ("--one", "--part"):
        answer(words)
        return 0
    given = arguments(words)
    rows = wanted(given)
    if given.list:
        print("\n".join(f"{row.name:20} {'full' if row.is_full else ''}" for row in ROWS))
        return 0
    if given.plots:
        draw()
        return 0
    if given.guard:
        worse = watch(rows, given)
        if given.store:
            print(f"guard: stored in {STORED.name}")
            return 0
        print(
            "\n".join(f"WORSE  {told}" for told in worse) or f"guard: nothing is worse by a factor of {guard.MARGIN:g}"
        )
        return 1 if worse else 0
    failed = run(rows, given)
    if given.full and not given.small:
        draw()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
