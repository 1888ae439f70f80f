"""Functions that exist in Spark SQL but not here, and why."""

from floodway.expressions.functions.registry import refuse

refuse(
    "now current_date current_timestamp curdate localtimestamp current_timezone current_time",
    "is not the same when a record is processed again",
    "use the record's own timestamp, or a column that holds the time",
)
refuse(
    "rand random randn uuid shuffle randstr uniform monotonically_increasing_id "
    "spark_partition_id input_file_name",
    "is not the same when a record is processed again",
    "derive the value from the record, e.g. md5(...) of its columns",
)
refuse(
    "count sum avg mean min max first last any_value collect_list collect_set array_agg stddev "
    "stddev_samp stddev_pop variance var_samp var_pop median mode percentile approx_percentile "
    "percentile_approx approx_count_distinct corr covar_pop covar_samp count_if bool_and bool_or "
    "every some any max_by min_by first_value last_value kurtosis skewness sum_distinct "
    "bit_and bit_or bit_xor regr_count try_sum try_avg listagg string_agg histogram_numeric",
    "is an aggregate: it needs many records, and an expression sees one",
    "use group_by(...).aggregate(...), or greatest/least for several columns of one record",
)
refuse(
    "row_number rank dense_rank percent_rank ntile cume_dist lag lead nth_value",
    "needs the order of many records, and an expression sees one",
    "use group_by(...) with a window, or a Python function with state",
)
refuse(
    "explode explode_outer posexplode posexplode_outer",
    "makes several rows of one and cannot stand inside another expression",
    "use it alone in flat_map(...)",
)
refuse(
    "inline inline_outer stack json_tuple",
    "makes several rows or columns of one",
    "use explode in flat_map(...), or a Python function",
)
refuse(
    "from_json to_json schema_of_json from_csv to_csv from_xml to_xml parse_json",
    "needs a schema that expressions do not carry",
    "use get_json_object, or decode the record with its own type",
)
refuse(
    "current_user session_user user current_database current_catalog current_schema version",
    "asks about a session, and expressions run without one",
    "put the value into the expression as a literal",
)
refuse(
    "window session_window window_time",
    "groups records by time",
    "use the stream's own windows",
)
