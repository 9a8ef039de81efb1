"""Parts that somebody else wrote: an acceptance test, a proposal, a data source, and the samplers that use them.

None of it is known to mintmc, but by what another package would list under the entry points ``mintmc.samplers``.
"""

from outside.rows import TextRows
from outside.walk import CauchyWalk
from outside.whole_barker import WholeBarker, WholeBarkerMH

__all__ = ["CauchyWalk", "TextRows", "WholeBarker", "WholeBarkerMH"]
