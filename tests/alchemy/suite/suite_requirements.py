"""What SQLite can do, for SQLAlchemy's own tests of dialects. What is closed here has its reason beside it."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

# SuiteRequirements has these closed, because not every database has them. SQLite does.
OPEN = [
    "create_table_as",
    "create_temp_table_as",
    "table_ddl_if_exists",
    "index_ddl_if_exists",
    "nullsordering",
    "intersect",
    "except_",
    "window_functions",
    "window_range",
    "window_range_numeric",
    "ctes",
    "ctes_with_update_delete",
    "ctes_on_dml",
    "tuple_in",
    "dbapi_lastrowid",
    "views",
    "foreign_key_constraint_name_reflection",
    "implicit_default_schema",
    "reflects_pk_names",
    "temp_table_names",
    "has_temp_table",
    "temporary_views",
    "foreign_key_constraint_option_reflection_ondelete",
    "fk_constraint_option_reflection_ondelete_restrict",
    "fk_constraint_option_reflection_ondelete_noaction",
    "foreign_key_constraint_option_reflection_onupdate",
    "fk_constraint_option_reflection_onupdate_restrict",
    "inline_check_constraint_reflection",
    "check_constraint_reflection",
    "unicode_ddl",
    "datetime_historic",
    "datetime_timezone",
    "date_historic",
    "autocommit",
    "isolation_level",
    "json_type",
    "legacy_unconditional_json_extract",
    "server_defaults",
    "expression_server_defaults",
    "savepoints",
    "infinity_floats",
    "update_from",
    "mod_operator_as_percent_sign",
    "computed_columns",
    "computed_columns_stored",
    "computed_columns_virtual",
    "computed_columns_reflect_persisted",
    "regexp_match",
    "reflect_table_options",
    "supports_bitwise_or",
    "supports_bitwise_and",
    "supports_bitwise_not",
    "supports_bitwise_shift",
]

CLOSED = {
    "independent_connections": "several tests write on two connections at once, and SQLite has one lock",
    "independent_readonly_connections": "the attached file of the suite belongs to one connection",
    "implicitly_named_constraints": "SQLite gives constraints no names of its own",
    "server_side_cursors": "the suite knows by the driver's name what a streaming cursor looks like; test_streaming.py has ours",
    "parens_in_union_contained_select_w_limit_offset": "SQLite's grammar has no parentheses there",
    "parens_in_union_contained_select_wo_limit_offset": "SQLite's grammar has no parentheses there",
}


class Requirements(SuiteRequirements):
    def get_isolation_levels(self, config):
        supported = config.db.dialect.get_isolation_level_values(None)
        return {"default": "SERIALIZABLE", "supported": supported}


for name in OPEN:
    setattr(Requirements, name, property(lambda self: exclusions.open()))
for name, reason in CLOSED.items():
    setattr(
        Requirements, name, property(lambda self, reason=reason: exclusions.skip_if(lambda: True, reason))
    )
