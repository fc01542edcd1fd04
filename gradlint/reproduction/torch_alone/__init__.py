"""What scripts consist of: functions that need torch and nothing else.

A script holds the source of those that it needs, so nothing here imports from gradlint but from
this package, and nothing runs when it is imported.
"""
