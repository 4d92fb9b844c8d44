"""Models as files and as the programs that read them compute with them.

Writes bodies and joint terms to robot files and measures what a format cannot represent.
"""
