"""Changes that several services make, each with the messages that tell the orchestrator of it.

The store changes rows and knows no messages. The services decide what happens. What two of them do in the same way
stands here once, in the transaction of the caller: the rows change, and the messages leave with the commit.
"""
