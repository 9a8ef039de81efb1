"""A data source: numbers in a text file, one a line, all lines of the same length, so that a row can be found."""

from pathlib import Path

import numpy as np

from mintmc.data.identity import content, stamp
from mintmc.protocols import Source

WIDTH = 16


def save(path, numbers):
    path.write_text("".join(f"{number:{WIDTH - 1}.7g}\n" for number in numbers))


class TextRows(Source):
    """The rows of such a file."""

    prepared = checked = False

    def __init__(self, path):
        self.path = Path(path)
        self.name, self.n = str(path), self.path.stat().st_size // WIDTH

    def stamp(self):
        return stamp([self.path])

    def content(self, everything):
        return content([self.path], everything)

    def read(self, first, last):
        return self.take(np.arange(first, last))

    def take(self, indices):
        with self.path.open("rb") as file:
            return np.array([float(_line(file, i)) for i in indices], np.float32)

    def mapped(self):
        return None

    def give_back(self):
        pass


def _line(file, number):
    file.seek(int(number) * WIDTH)
    return file.read(WIDTH)
