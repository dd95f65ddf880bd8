"""Where Alembic meets our connection; it is loaded by Alembic and by nothing else."""

from alembic import context

from matoolkit.store.schema import metadata

_given = context.config.attributes
if context.is_offline_mode():
    context.configure(
        dialect_name=_given["dialect_name"],
        dialect_opts=_given["dialect_opts"],
        output_buffer=_given["script"],
        target_metadata=metadata,
        transactional_ddl=True,
    )
else:
    context.configure(
        connection=_given["connection"],
        target_metadata=metadata,
        render_as_batch=True,
        transactional_ddl=True,
        on_version_apply=_given["on_version_apply"],
    )
with context.begin_transaction():
    context.run_migrations()
