"""The same work on what one would otherwise take; each module runs in a virtual environment of its own.

Nothing of ours is installed there: these modules import the standard library, their peer, and each other.
"""
