"""The kernel for SQL: all statements of the store are built, run and read here, and nowhere else.

**What it promises**

* A function under `prepared` builds its statement once for each shape. Its arguments by position are values, and may
  differ at every run. Its arguments by keyword are the shape: what decides how the statement looks. A `Named` is a
  value whose names belong to the shape. Annotations, names of values and the order of keywords mean nothing.
* A condition is part of a shape, and is known by which object it is. So a condition is made once, when its module is
  loaded or under `functools.cache`. A value in one is `given` under a name, and each run hands it over in `parameters`.
* A row becomes a record by name: each field is the column of its name, or is given for all rows, and there is no column
  besides. A record that does not fit is refused with a `TypeError` before its statement runs. A function that is not a
  record takes the columns in their order.
* `change` and `change_each` write where their guards hold, and return the ids that they changed (rule M3).
* A transaction happens whole or not at all. An error of a driver becomes one of ours, without a value or a password in
  its text. What no database can store is replaced before it gets there.
* A cache that is full drops the statement that was not used for longest, and logs it. That is slow and not wrong.
* Who runs a statement makes no difference but in speed: with `MATOOLKIT_SQL_EXECUTION=sqlalchemy`, or
  `open_store(..., execution="sqlalchemy")`, SQLAlchemy does all of it. Tests run both ways and compare.

**What it asks**

* Nobody else has a connection, a cursor or a driver in hand. The exceptions are listed, with their reasons, in
  `tests/architecture/test_kernel.py`.
* The kernel knows no table of ours. What differs between databases is in `store/dialect/`, which runs nothing itself
  but what prepares a new connection and what locks the schema.
* What runs often is prepared. A query with many optional parts, as people ask it, is built and compiled each time.

**Where to look**

| module | is |
| --- | --- |
| `engine` | opening a database |
| `transaction` | the store and its transactions: what the rest of the store works with |
| `statements` | the forms that most statements have |
| `prepared` | building a statement once: drafts, plans, values |
| `execution` | running a compiled statement and reading its rows |
| `mapping` | which column is which field of a record |
| `driver` | the driver's cursor, and its errors as SQLAlchemy tells them |
| `reference` | SQLAlchemy's own execution, to compare with |
| `recent` | a cache that keeps what was used last |
| `storable` | what no database can store is replaced |
| `faults` | errors of drivers in our own words |
| `connections` | for Alembic, and for those who listen |
| `rehearsal` | every statement run and undone, for `matoolkit db check` |
"""
