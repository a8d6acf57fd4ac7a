"""From run folders and results/ to tables and pages. Reads files only.

runs.py           a run folder, or the result it left -> Run
summary.py        runs -> one line for each experiment: the paper beside ours, seeds together
table.py          lines -> cells, Markdown or a table in the terminal
chart.py          lines over steps, and disks, as inline SVG
page.py           runs -> one HTML page that needs nothing beside it
"""
