"""ORM models for the tests of sessions, with a column of each kind."""

from __future__ import annotations

import enum
import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import ClassVar

from sqlalchemy import JSON, DateTime, Enum, ForeignKey, LargeBinary, Numeric, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(50), unique=True)
    count: Mapped[int] = mapped_column(default=0)
    version: Mapped[int] = mapped_column(nullable=False)
    lines: Mapped[list[Line]] = relationship(
        back_populates="order", cascade="all, delete-orphan", lazy="selectin"
    )
    __mapper_args__: ClassVar = {"version_id_col": version}


class Line(Base):
    __tablename__ = "lines"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id", ondelete="CASCADE"))
    text: Mapped[str]
    order: Mapped[Order] = relationship(back_populates="lines")


class Kinds(Base):
    __tablename__ = "kinds"
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    moment: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    day: Mapped[date]
    data: Mapped[dict] = mapped_column(JSON)
    size: Mapped[Size] = mapped_column(Enum(Size))
    price: Mapped[Decimal] = mapped_column(Numeric(10, 2))
    raw: Mapped[bytes] = mapped_column(LargeBinary)
    ok: Mapped[bool]
