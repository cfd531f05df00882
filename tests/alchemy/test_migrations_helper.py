"""Alembic with `run_migrations`, on both stores: autogenerate, batch mode, a round trip, and offline."""

from __future__ import annotations

import asyncio
import io
import textwrap

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from holdfast import Holdfast
from holdfast.kernel.errors import StoreError, UsageError
from holdfast.sqlalchemy.migrations import run_migrations


class Base(DeclarativeBase):
    pass


class Shelf(Base):
    __tablename__ = "shelf"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(20))


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    shelf_id: Mapped[int] = mapped_column(sa.ForeignKey("shelf.id", ondelete="CASCADE", name="book_on_shelf"))


ENV = """
from alembic import context
from holdfast.sqlalchemy.migrations import run_migrations
attributes = context.config.attributes
run_migrations(attributes["hf"], attributes["metadata"], **attributes["options"])
"""
FIRST = """
def upgrade():
    op.create_table("shelf", sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(20), nullable=False))
    op.create_table("book", sa.Column("id", sa.Integer, primary_key=True), sa.Column("shelf_id", sa.Integer,
        sa.ForeignKey("shelf.id", ondelete="CASCADE", name="book_on_shelf"), nullable=False))
    op.execute("INSERT INTO shelf (id, name) VALUES (1, 'a')")
    op.execute("INSERT INTO book (id, shelf_id) VALUES (1, 1)")
    op.execute("INSERT INTO book (id, shelf_id) VALUES (2, 1)")

def downgrade():
    op.drop_table("book")
    op.drop_table("shelf")
"""
SECOND = """
def upgrade():
    with op.batch_alter_table("shelf") as batch:
        batch.add_column(sa.Column("place", sa.Integer, nullable=True))
        batch.alter_column("name", new_column_name="label", existing_type=sa.String(20), existing_nullable=False)

def downgrade():
    with op.batch_alter_table("shelf") as batch:
        batch.alter_column("label", new_column_name="name", existing_type=sa.String(20), existing_nullable=False)
        batch.drop_column("place")
"""
LOSES = """
def upgrade():
    op.execute("DELETE FROM shelf")

def downgrade():
    pass
"""


class Scripts:
    """A folder of Alembic, and its commands."""

    def __init__(self, folder, hf):
        self.folder, self.hf, self._last = folder, hf, None
        self.options, self.metadata = {}, Base.metadata
        (folder / "versions").mkdir()
        (folder / "env.py").write_text(ENV)
        (folder / "script.py.mako").write_text("")

    def add(self, body):
        number = str(len(list((self.folder / "versions").iterdir())) + 1)
        head = f"import sqlalchemy as sa\nfrom alembic import op\nrevision = {number!r}\ndown_revision = {self._last!r}\n"
        (self.folder / "versions" / f"{number}.py").write_text(head + textwrap.dedent(body))
        self._last = number

    def config(self, **attributes):
        config = Config(output_buffer=io.StringIO(), stdout=io.StringIO())
        config.set_main_option("script_location", str(self.folder))
        config.set_main_option("path_separator", "os")
        config.attributes.update(hf=self.hf, metadata=self.metadata, options=self.options, **attributes)
        return config

    async def run(self, name, *args, **named):
        config = self.config()
        await asyncio.to_thread(getattr(command, name), config, *args, **named)
        return config.output_buffer.getvalue()


@pytest.fixture
async def scripts(url, tmp_path):
    hf = Holdfast(url)
    async with hf:
        pass
    scripts = Scripts(tmp_path, hf)
    yield scripts
    async with hf, hf.sqlalchemy().begin() as connection:
        for table in ("book", "shelf", "alembic_version"):
            await connection.execute(sa.text(f"DROP TABLE IF EXISTS {table}"))


async def rows(hf, sql):
    async with hf, hf.session() as session:
        return [tuple(row) for row in await session.execute(sa.text(sql))]


async def test_a_round_trip(scripts):
    scripts.add(FIRST)
    scripts.add(SECOND)
    await scripts.run("upgrade", "head")
    assert await rows(scripts.hf, "SELECT id, label, place FROM shelf") == [(1, "a", None)]
    await scripts.run("downgrade", "-1")
    assert await rows(scripts.hf, "SELECT id, name FROM shelf") == [(1, "a")]
    await scripts.run("downgrade", "base")
    assert await rows(scripts.hf, "SELECT count(*) FROM alembic_version") == [(0,)]


async def test_batch_mode_keeps_child_rows(scripts):
    scripts.add(FIRST)
    scripts.add(SECOND)
    await scripts.run("upgrade", "1")
    await scripts.run("upgrade", "2")
    assert await rows(scripts.hf, "SELECT id, shelf_id FROM book ORDER BY id") == [(1, 1), (2, 1)]


@pytest.mark.parametrize("options", [{}, {"include_schemas": True}], ids=["plain", "all schemas"])
async def test_autogenerate_sees_none_of_our_tables(scripts, options):
    scripts.options = options
    scripts.add(FIRST)
    await scripts.run("upgrade", "head")
    await scripts.run("check")  # raises when anything differs


async def test_nor_in_a_program_without_any(scripts):
    scripts.metadata = sa.MetaData()
    await scripts.run("check")


async def test_it_still_sees_the_programs_own(scripts):
    scripts.add(FIRST)
    await scripts.run("upgrade", "head")
    scripts.metadata = sa.MetaData()
    sa.Table("shelf", scripts.metadata, sa.Column("id", sa.Integer, primary_key=True))
    from alembic.util.exc import AutogenerateDiffsDetected

    with pytest.raises(AutogenerateDiffsDetected) as found:
        await scripts.run("check")
    assert "book" in str(found.value)
    assert "holdfast" not in str(found.value)


async def test_include_name_of_the_program_is_asked_as_well(scripts):
    scripts.add(FIRST)
    await scripts.run("upgrade", "head")
    scripts.metadata = sa.MetaData()
    scripts.options = {"include_name": lambda name, kind, parents: kind != "table"}
    await scripts.run("check")


async def test_a_failed_migration_leaves_nothing_behind(scripts):
    scripts.add(FIRST.replace("(2, 1)", "(1, 1)"))
    with pytest.raises(sa.exc.IntegrityError):
        await scripts.run("upgrade", "head")
    async with scripts.hf, scripts.hf.sqlalchemy().connect() as connection:
        assert not await connection.run_sync(lambda inside: sa.inspect(inside).has_table("shelf"))


async def test_rows_that_would_refer_to_nothing_are_refused(scripts, tmp_path):
    if scripts.hf._inside.location.kind == "postgres":
        pytest.skip("PostgreSQL enforces foreign keys meanwhile")
    scripts.add(FIRST)
    await scripts.run("upgrade", "head")
    scripts.add(LOSES)
    with pytest.raises(StoreError, match="2 of 'book' refer to rows of 'shelf'"):
        await scripts.run("upgrade", "head")
    assert await rows(scripts.hf, "SELECT count(*) FROM shelf") == [(1,)]


async def test_tables_of_full_text_search_are_no_difference(scripts):
    if scripts.hf._inside.location.kind == "postgres":
        pytest.skip("of SQLite")
    scripts.add(
        FIRST.replace(
            "def upgrade():", "def upgrade():\n    op.execute('CREATE VIRTUAL TABLE words USING fts5(text)')"
        )
    )
    await scripts.run("upgrade", "head")
    await scripts.run("check")


async def test_offline(scripts):
    scripts.add(FIRST)
    text = await scripts.run("upgrade", "head", sql=True)
    assert "CREATE TABLE shelf" in text
    assert "INSERT INTO alembic_version" in text
    assert "COMMIT" in text
    async with scripts.hf, scripts.hf.sqlalchemy().connect() as connection:
        assert not await connection.run_sync(lambda inside: sa.inspect(inside).has_table("shelf"))


async def test_it_runs_while_the_store_is_open(scripts):
    scripts.add(FIRST)
    async with scripts.hf as hf:
        await scripts.run("upgrade", "head")
        async with hf.session() as session:
            assert await session.scalar(sa.text("SELECT count(*) FROM book")) == 2


def test_a_table_with_a_name_of_ours_is_refused():
    metadata = sa.MetaData()
    sa.Table("holdfast_orders", metadata, sa.Column("id", sa.Integer, primary_key=True))
    with pytest.raises(UsageError, match="Call it something else"):
        run_migrations(None, metadata)
