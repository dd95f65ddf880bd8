"""W(N,S) on a SQL Server, in turns with PostgreSQL.

    MATOOLKIT_TEST_MSSQL_URL=mssql://… python -m bench.mssql [--record]

The address is not an argument: it has a password, and the command is written down with the results.
"""

import argparse
import os
import sys

from bench.compare import Rounds, measured, table_of
from bench.contestants import SQL_SERVER, TURNS, Contestant
from bench.measuring import record
from bench.servers import sql_server

ON_SQL_SERVER = Contestant("ours, SQL Server, embedded", SQL_SERVER)
CAVEAT = (
    "The CPU time of a server that is not started here is not counted. Babelfish is PostgreSQL underneath: its planner,"
    " its locks, and here no fsync. So this tells that W(N,S) ends there, and what driver and T-SQL cost our processes."
    " It tells nothing about how fast Azure SQL is."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--postgres", help="URL of a PostgreSQL server to use instead of starting one")
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    given = os.environ.get("MATOOLKIT_TEST_MSSQL_URL")
    if not given:
        parser.error("set MATOOLKIT_TEST_MSSQL_URL to the URL of a SQL Server on which databases can be made")
    servers = {SQL_SERVER: sql_server(given)}
    found: Rounds
    found, titles = measured([TURNS, ON_SQL_SERVER], options, servers)
    print(table_of(found))
    if options.record:
        about = f"{'; '.join(titles)}; {options.rounds} rounds in turns, medians. {CAVEAT}"
        record(f"W({options.members},{options.steps}) on a SQL Server", about, table_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
