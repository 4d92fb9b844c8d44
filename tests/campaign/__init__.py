"""Mutated inputs of every reader and of the command line: nothing but `FeasidError` escapes.

    python -m tests.campaign --minutes 60 [--seed 0] [--kinds urdf,csv] [--inputs 50000] [--write]

Every kind of input gets an equal share of the minutes, in a process of its own with a limit on
memory, an alarm, and a hook that sees every file and socket that is opened. What fails is made as
small as it still fails and kept. With --write the table goes into docs/faults.md.
"""
