"""The kit for pages: templates, live regions, forms, tables, drawings and strict headers, without a build step."""

from holdfast.web.pages.accents import Accent
from holdfast.web.pages.draw.bars import bars
from holdfast.web.pages.draw.line import line
from holdfast.web.pages.draw.month import Entry, calendar
from holdfast.web.pages.draw.spans import Span, timeline
from holdfast.web.pages.draw.spark import spark
from holdfast.web.pages.forms import Form
from holdfast.web.pages.headers import PageHeaders
from holdfast.web.pages.kit import Pages
from holdfast.web.pages.serve import WithPages
from holdfast.web.pages.tables import Column, Cursor, Rows

__all__ = [
    "Accent",
    "Column",
    "Cursor",
    "Entry",
    "Form",
    "PageHeaders",
    "Pages",
    "Rows",
    "Span",
    "WithPages",
    "bars",
    "calendar",
    "line",
    "spark",
    "timeline",
]
