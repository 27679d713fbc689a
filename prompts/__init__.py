"""Prompts are data: `<phase>/<number>.md`. A released number never changes; the highest is current.

Read by `nightdesk.desk.prompting`, never imported.
"""
