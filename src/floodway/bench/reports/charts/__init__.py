"""Charts as SVG, by hand: lines, bars with intervals, and bands over time.

They need nothing else: text has the colour and the font of the page they stand in. What can be
pointed at says what it is, and what belongs together (a line and its name) is a group ``series``.
"""
