"""The one table of options: names, types, units, defaults, ranges and a line on each."""
