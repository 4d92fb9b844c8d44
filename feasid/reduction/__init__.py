"""From runs of signals to one small triangle per joint: in memory, streamed, by a fleet."""
