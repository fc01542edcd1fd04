"""What the pytest plugin does: operators as test items, the fixture, and the swap of gradcheck.

``gradlint.pytest_plugin`` imports these modules when they are used, so that pytest starts without
them.
"""
