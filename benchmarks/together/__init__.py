"""Options of a fit x kinds of robot x kinds of log x what is done with a fit: all must agree.

Every part of the package has tests of its own; these hold the parts against each other. A row of
the covering array ends in a right answer, an honest doubt, or a refusal that names the conflict.
Rows that do not yet are in `known`, each with its cause, as strict expected failures.
"""
