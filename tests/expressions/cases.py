"""What is asked of both sides: for every operator and function some expression texts.

Most calls are made from the functions' own signatures: for each kind of parameter there is a pool
of arguments. Functions that take anything have their texts written down.
"""

# Tables of cases are easier to read wide.
# ruff: noqa: E501

import random

from floodway.expressions import FUNCTIONS

POOLS = {
    "STRING": [
        "s",
        "s0",
        "s2",
        "s20",
        "n",
        "'abc'",
        "''",
        "'a'",
        "'b'",
        "'X'",
        "'.'",
        "','",
        "l",
        "d0",
    ],
    "INT": ["i", "i0", "k", "k0", "0", "1", "2", "-1", "-2", "3", "l", "NULL"],
    "STRICT STRING": ["s", "s0", "j", "'Abc-1'"],
    "STRICT DATE": ["t", "t0"],
    "STRICT TIMESTAMP": ["ts", "ts0"],
    "BOOLEAN CONSTANT": ["true", "false"],
    "STRICT INT": ["k", "k0", "0", "1", "-1", "31", "400"],
    "BIGINT": ["l", "l0", "i", "5", "65", "-3L", "233", "NULL"],
    "DOUBLE": ["d", "d0", "d2", "d20", "l", "i0", "m", "0.5D", "-1.5", "2", "0", "n", "NULL"],
    "NUMBER": ["l", "l0", "d", "d0", "i", "i0", "m", "m0", "2.55", "-25", "1L", "w"],
    "INTEGRAL": ["l", "l0", "i", "i0", "5", "-3L"],
    "BOOLEAN": ["b", "b0", "true", "false"],
    "DATE": ["t", "t0", "t20", "ts", "q", "DATE '2024-02-29'"],
    "TIMESTAMP": ["ts", "ts0", "ts20", "t", "q", "TIMESTAMP '2024-02-29 12:34:56.5'"],
    "BINARY": ["s", "s0", "'abc'", "X'00FF10'", "CAST(s AS BINARY)"],
    "ARRAY": ["al", "al0", "ax", "ad0", "array(1, NULL, 3)", "array('a', 'b')"],
    "ARRAY<STRING>": ["ax", "ax0", "array('a', NULL)"],
    "MAP": ["mp", "mp0", "map('a', 1, 'b', 2)"],
    "INT CONSTANT": ["0", "1", "2", "-1", "-2", "5"],
}
SMALL = ["k", "k0", "0", "3", "-1", "5"]
_UNITS = [
    "'year'",
    "'QUARTER'",
    "'month'",
    "'mm'",
    "'week'",
    "'day'",
    "'hour'",
    "'minute'",
    "'second'",
]
_ZONES = ["'Europe/Paris'", "'America/New_York'", "'+05:30'", "'UTC'"]
# (function, parameter position) -> a pool of its own.
SPECIAL = {
    ("repeat", 1): SMALL,
    ("space", 0): SMALL,
    ("lpad", 1): SMALL,
    ("rpad", 1): SMALL,
    ("array_repeat", 1): SMALL,
    ("slice", 1): ["1", "2", "-2", "k0", "k"],
    ("slice", 2): ["0", "1", "2", "k0"],
    ("add_months", 1): ["k", "k0", "12", "-25", "i0"],
    ("date_from_unix_date", 0): ["k", "0", "19000", "-19000", "i0"],
    ("make_date", 0): ["2024", "k0 + 2000", "i"],
    ("make_date", 1): ["2", "k", "12"],
    ("make_date", 2): ["29", "k0", "31"],
    ("sha2", 1): ["0", "224", "256", "384", "512", "1", "k"],
    ("split_part", 1): ["','", "'X'", "'.'", "''", "s20", "'aa'"],
    ("split_part", 2): ["1", "2", "-1", "k", "5"],
    ("substring_index", 1): ["','", "'.'", "'X'", "'aa'", "'a'", "''"],
    ("factorial", 0): ["k", "k0", "20", "21", "i"],
    ("trunc", 1): _UNITS,
    ("date_trunc", 0): [*_UNITS, "'MILLISECOND'", "'microsecond'", "'dd'", "'nope'", "s"],
    ("next_day", 1): ["'Mon'", "'SU'", "'friday'", "s"],
    ("from_utc_timestamp", 1): _ZONES,
    ("to_utc_timestamp", 1): _ZONES,
    ("timestamp_millis", 0): ["k", "i", "1700000000123L", "-1L"],
    ("timestamp_micros", 0): ["k", "l", "1700000000123456L", "-1L"],
    ("unhex", 0): ["'616263'", "'4'", "'zz'", "s", "hex(s)", "n"],
    ("unbase64", 0): ["base64(s)", "base64(CAST(s0 AS BINARY))", "'YWJj'"],
    ("find_in_set", 1): ["s", "'a,b,c'", "''"],
    ("soundex", 0): ["s", "s0", "'Ashcraft'", "'Pfister'", "'Honeyman'", "'o''neil'"],
    ("luhn_check", 0): ["n", "s", "'79927398713'"],
    ("width_bucket", 3): ["5", "k", "10"],
    ("months_between", 2): ["true", "false"],
    ("array_join", 1): ["','", "''", "s"],
    ("array_join", 2): ["'-'", "s"],
    ("locate", 0): ["'a'", "'b'", "s2", "''"],
    ("instr", 1): ["'a'", "'b'", "s2", "''"],
    ("levenshtein", 1): ["s2", "'abc'", "''"],
    ("regexp_extract", 2): ["0", "1"],
    ("regexp_extract_all", 2): ["0", "1"],
    ("regexp_replace", 2): ["'<$1>'", "'-'", "s2"],
    ("regexp_replace", 3): ["1", "3"],
    ("split", 2): ["-1", "0", "2", "k"],
    ("elt", 0): ["1", "2", "k"],
    ("from_unixtime", 0): ["k", "i", "1700000000L", "-86400"],
}
_PATTERNS = ["'([a-z]+)'", "'(\\\\d+)'", "'(.)'", "'(^a|c$)'", "'(b|B)'", "'(\\\\w)\\\\W'"]
for _name in FUNCTIONS:
    if _name.startswith(("regexp", "rlike", "split")) and _name != "split_part":
        SPECIAL[(_name, 1)] = _PATTERNS
_FORMATS = ["'yyyy-MM-dd'", "'yyyy/MM/dd HH:mm:ss'", "'dd.MM.yyyy'"]
_WRITTEN = [
    *_FORMATS,
    "'EEEE, d MMMM yyyy'",
    "'hh:mm a'",
    "'yy-M-d H:m:s.SSS'",
    "'D Q E'",
    "\"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\"",
]

ANY: dict[str, list[str]] = {
    "concat": ["concat(s, s2)", "concat(s0, '-', l, d0)", "concat(al, al2)", "concat(al0, array(1))", "s || n", "concat(ax, ax0)", "s0 || 1 || b", "concat(t0, ts0)"],
    "concat_ws": ["concat_ws(',', s, s2)", "concat_ws('-', s0, ax, l)", "concat_ws(s, 'a', NULL, 'b')", "concat_ws('', ax)"],
    "reverse": ["reverse(s)", "reverse(al)", "reverse(s0)", "reverse(ax0)", "reverse(12)"],
    "hex": ["hex(l)", "hex(i0)", "hex(s)", "hex(CAST(s0 AS BINARY))", "hex(-1)"],
    "coalesce": ["coalesce(l, l2, 0)", "coalesce(i, l)", "coalesce(i, d)", "coalesce(m, l)", "coalesce(s, 'x')", "coalesce(t, ts)", "coalesce(NULL, b)", "coalesce(al, al2)", "coalesce(l, m, d2)"],
    "nvl": ["nvl(l, 0)", "nvl(s, s2)", "nvl(i, d0)", "nvl(d, m)"],
    "ifnull": ["ifnull(l, l2)", "ifnull(t, t2)"],
    "if": ["if(b, l, i)", "if(b0, s, s2)", "if(l > 0, d, m)", "if(NULL, 1, 2)", "if(b, 1, 2.5)", "if(b, t, ts)"],
    "nvl2": ["nvl2(l, 'yes', 'no')", "nvl2(s, l, d)", "nvl2(b0, 1, 2)"],
    "nullif": ["nullif(l, l2)", "nullif(s, 'abc')", "nullif(d, 0.0)", "nullif(i0, i)", "nullif(d0 + 0, d0)", "nullif(k, 1)"],
    "nanvl": ["nanvl(d, d2)", "nanvl(d0, 0)", "nanvl(d0 * 2, d)", "nanvl(d, NULL)"],
    "greatest": ["greatest(l, l2)", "greatest(l0, l20, i0)", "greatest(d, d2, 0)", "greatest(d0, d20)", "greatest(s, s2, 'b')", "greatest(m, l)", "greatest(t0, t20)", "greatest(ts, ts2)", "greatest(b, b2)", "greatest(p, p0)", "greatest(al, al2)"],
    "least": ["least(l, l2)", "least(l0, l20, i0)", "least(d, d2, 0)", "least(s, s2, 'b')", "least(m, l)", "least(ts0, ts20)", "least(p, p0)"],
    "isnull": ["isnull(l)", "isnull(s0)", "isnull(l + l2)"],
    "isnotnull": ["isnotnull(l)", "isnotnull(d0)"],
    "equal_null": ["equal_null(l, l2)", "equal_null(d, d2)", "equal_null(s, NULL)", "equal_null(ts, ts2)", "equal_null(al, al2)", "equal_null(p, p0)", "equal_null(i, l)"],
    "size": ["size(al)", "size(mp)", "size(ax0)"],
    "cardinality": ["cardinality(al)", "cardinality(mp0)"],
    "array": ["array(l, l2)", "array(i0, l, NULL)", "array(s, 'a')", "array(d, l)", "array(1, 2.5)"],
    "array_contains": ["array_contains(al, 1)", "array_contains(al, l)", "array_contains(ax, s)", "array_contains(ad, 2.5D)", "array_contains(ad0, d)", "array_contains(al, 2.5)", "array_contains(ad, 0)", "array_contains(ax, 'a')", "array_contains(split(s, 'a'), '')", "array_contains(split(s0, ' '), 'a')", "array_contains(split(s, ' '), CAST(NULL AS STRING))"],
    "array_position": ["array_position(al, 2)", "array_position(ax, 'b')", "array_position(ad, CAST('NaN' AS DOUBLE))", "array_position(al0, l)"],
    "array_remove": ["array_remove(al, 1)", "array_remove(ax, 'a')", "array_remove(ad, 0.0D)", "array_remove(al0, l)"],
    "array_append": ["array_append(al, 5)", "array_append(al0, l)", "array_append(ax, s)", "array_append(array(1), 2L)"],
    "array_prepend": ["array_prepend(al, 5)", "array_prepend(al0, l)", "array_prepend(ax, s)"],
    "array_union": ["array_union(al, al2)", "array_union(ad, ad0)", "array_union(ax, array('q'))", "array_union(array(1), al)"],
    "array_intersect": ["array_intersect(al, al2)", "array_intersect(ad, ad0)", "array_intersect(ax, ax0)"],
    "array_except": ["array_except(al, al2)", "array_except(ad, ad0)", "array_except(ax, array('a'))"],
    "arrays_overlap": ["arrays_overlap(al, al2)", "arrays_overlap(ax, ax0)", "arrays_overlap(ad, array(CAST('NaN' AS DOUBLE)))", "arrays_overlap(array(1), array(1, NULL))"],
    "flatten": ["flatten(array(al, al2))", "flatten(array(ax0, array('z')))", "flatten(array(al0))"],
    "array_repeat": ["array_repeat(s, 2)", "array_repeat(l, k)", "array_repeat(1, 3)"],
    "get": ["get(al, 0)", "get(al, k)", "get(ax0, l)", "get(ad, -1)"],
    "element_at": ["element_at(al, 1)", "element_at(al0, k)", "element_at(ax, -1)", "element_at(mp, 'a')", "element_at(mp, s)"],
    "try_element_at": ["try_element_at(al, 1)", "try_element_at(al0, 4)", "try_element_at(ax, -2)", "try_element_at(mp, 'a')"],
    "sequence": ["sequence(1, 5)", "sequence(k, 3)", "sequence(k0, 10, 2)", "sequence(5, 1)", "sequence(0L, k)", "sequence(7, k, -2)"],
    "map": ["map('a', l, 'b', 2)", "map(s0, 1)", "map('x', s)"],
    "map_from_arrays": ["map_from_arrays(array('a', 'b'), array(l, 2))", "map_from_arrays(array(s), array(1))"],
    "map_concat": ["map_concat(mp, map('z', 1L))", "map_concat(mp0, map('a', 1L))"],
    "map_keys": ["sort_array(map_keys(mp))", "sort_array(map_keys(mp0))", "map_keys(map('b', 1, 'a', l))"],
    "map_values": ["sort_array(map_values(mp))", "map_values(map('b', l, 'a', NULL, 'c', 2))"],
    "map_entries": ["map_entries(map('b', l, 'a', 1))", "size(map_entries(mp))", "map_entries(map(1, s, 2, 'x'))"],
    "map_contains_key": ["map_contains_key(mp, 'a')", "map_contains_key(mp0, s)"],
    "struct": ["struct(l, s)", "struct(1, s0)", "struct(p.x, d)", "struct(l0).l0", "struct(l, s AS c)", "struct(l AS end).end", "(l, s AS c)", "struct(l + 1 AS a, s b, d0).b"],
    "named_struct": ["named_struct('x', l, 'y', s)", "named_struct('x', 1).x"],
    "transform": ["transform(al, x -> x + 1)", "transform(al0, (x, i) -> x * i)", "transform(ax, x -> upper(x))", "transform(al, x -> x + l)", "transform(al, x -> if(x > 2, 'a', NULL))", "transform(ad, x -> x > 1 OR x IS NULL)"],
    "filter": ["filter(al, x -> x > 1)", "filter(ax0, x -> x IS NOT NULL)", "filter(al, (x, i) -> i > 0)"],
    "exists": ["exists(al, x -> x > 2)", "exists(ax, x -> x = 'a')", "exists(al0, x -> x IS NULL)"],
    "forall": ["forall(al, x -> x > 0)", "forall(ax0, x -> length(x) < 2)"],
    "timestamp_seconds": ["timestamp_seconds(k)", "timestamp_seconds(i)", "timestamp_seconds(d0)", "timestamp_seconds(1.5)"],
    "extract": ["extract(YEAR FROM t)", "extract(HOUR FROM ts)", "extract(SECOND FROM ts0)", "extract(DOW FROM t0)", "extract(DOY FROM ts)", "extract(week FROM t)", "extract(MONTH FROM q)"],
    "date_part": ["date_part('minute', ts)", "date_part('quarter', t)", "date_part('d', ts)"],
    "datepart": ["datepart('hour', ts)"],
    "to_date": ["to_date(q)", "to_date(ts)", "to_date(t)", "to_date(q, 'yyyy-MM-dd')", "to_date('31.01.2024', 'dd.MM.yyyy')", "to_date('2024-02-30', 'yyyy-MM-dd')"],
    "to_timestamp": ["to_timestamp(q)", "to_timestamp(t)", "to_timestamp(q, 'yyyy-MM-dd HH:mm:ss')", "to_timestamp('2024-02-29 01:02:03.456', 'yyyy-MM-dd HH:mm:ss.SSS')", "to_timestamp(q, 'yyyy-M-d')"],
    "try_to_timestamp": ["try_to_timestamp(q)", "try_to_timestamp(q, 'yyyy-MM-dd')", "try_to_timestamp(q, 'yyyy-MM-dd HH:mm:ss')"],
    "unix_timestamp": ["unix_timestamp(q)", "unix_timestamp(ts)", "unix_timestamp(t)", "unix_timestamp(q, 'yyyy-MM-dd')"],
    "to_unix_timestamp": ["to_unix_timestamp(ts)", "to_unix_timestamp(q)"],
    "date_format": [f"date_format({time}, {form})" for form in _WRITTEN for time in ("ts", "t0", "q")],
    "from_unixtime": [*(f"from_unixtime(k, {form})" for form in _WRITTEN), "from_unixtime(1700000000L)", "from_unixtime(i)"],
    "get_json_object": [f"get_json_object({j}, '{path}')" for j in ("j", "j0") for path in ("$.a", "$.b", "$.b.c", "$.b.c[1]", "$.b.c[2].d", "$[1]", "$", "$.a.x", "$[\\'a b\\']")],
    "trim": ["trim(s)", "trim(BOTH 'a' FROM s)", "trim(LEADING FROM s)", "trim(TRAILING 'c' FROM s0)", "trim('a', s)", "trim(s2 FROM s)", "trim(BOTH FROM s0)"],
}  # fmt: skip
for _part in (
    "year",
    "quarter",
    "month",
    "day",
    "dayofmonth",
    "dayofweek",
    "weekday",
    "dayofyear",
    "weekofyear",
):
    ANY[_part] = [f"{_part}({a})" for a in ("t", "t0", "ts", "ts0", "q", "NULL")]
for _part in ("hour", "minute", "second"):
    ANY[_part] = [f"{_part}({a})" for a in ("ts", "ts0", "t", "q")]
for _cast in ("boolean", "int", "bigint", "double", "string", "date", "timestamp", "binary"):
    ANY[_cast] = [f"{_cast}({a})" for a in ("n", "s0" if _cast in ("binary", "string") else "n0")]

_NUMERIC = ["i", "i0", "l", "l0", "d", "d0", "m", "m0", "w0", "2", "-3L", "1.5", "2.5D", "n"]
_PAIRS = [
    ("l", "l2"), ("l0", "l20"), ("d", "d2"), ("d0", "d20"), ("s", "s2"), ("s0", "s20"), ("t", "t2"),
    ("ts", "ts2"), ("ts0", "ts20"), ("b", "b2"), ("m", "m0"), ("i", "l"), ("l", "d"), ("d0", "l0"), ("m", "d"),
    ("m", "l"), ("i", "CAST(n AS BIGINT)"), ("CAST(n AS DOUBLE)", "d"), ("p", "p0"), ("p0", "struct(1L, 'a')"), ("t", "ts"), ("q", "t"), ("al", "al2"), ("ad", "ad0"), ("l", "NULL"),
    ("d0", "1"), ("1", "d"), ("d", "1.5"), ("l", "9223372036854775807"), ("d", "CAST('NaN' AS DOUBLE)"),
]  # fmt: skip
_CASTS = {
    "BOOLEAN": "b i l d m n s", "INT": "b i l d m n ts", "BIGINT": "b i l d m w n ts",
    "DOUBLE": "b i l d m w n ts", "STRING": "b i l d m w s t ts", "DATE": "t ts q", "BINARY": "s",
    "TIMESTAMP": "t ts q k k0", "DECIMAL(10,2)": "b i l d m w n ts", "DECIMAL(38,18)": "i d m n", "DECIMAL(5,0)": "i l d m n",
}  # fmt: skip


def operators() -> list[str]:
    """Return expressions with operators, predicates, literals and special forms."""
    texts = [
        f"{a} {op} {b}" for op in ["+", "-", "*", "/", "%"] for a in _NUMERIC for b in _NUMERIC[::2]
    ]
    texts += [
        f"{a} DIV {b}" for a in ("i", "l", "l0", "m", "7") for b in ("i0", "l", "3", "-2", "m0")
    ]
    texts += [f"{a} {op} {b}" for op in ["=", "<>", "<", "<=", ">", ">=", "<=>"] for a, b in _PAIRS]
    for target, columns in _CASTS.items():
        for name in columns.split():
            texts += [
                f"CAST({name} AS {target})",
                f"TRY_CAST({name}0 AS {target})" if name[-1] != "0" else f"{name}::{target}",
            ]
    logic = ("b", "b2", "b0", "true", "false", "NULL", "l > 0")
    texts += [f"{a} {op} {c}" for op in ("AND", "OR") for a in logic for c in logic]
    texts += [f"NOT {a}" for a in logic] + [f"!{a}" for a in ("b", "b0")]
    texts += [
        f"{a} IS {test}"
        for a in logic
        for test in ("NULL", "NOT NULL", "TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN")
    ]
    texts += _PREDICATES + _OTHERS
    return texts


_PREDICATES = [
    "l IN (1, 2, 3)", "l0 IN (1, -1, NULL)", "s IN ('a', 'abc')", "s NOT IN ('a', s2)", "d IN (1, 2.5D, 0.0D)",
    "d IN (CAST('NaN' AS DOUBLE), 1)", "i IN (l, 5)", "CAST(n AS INT) IN (12, 7)", "p IN (p0)", "p0 IN (p, p0)", "p BETWEEN p0 AND p", "t IN ('2024-02-29', t2)", "NULL IN (1, 2)",
    "b IN (true)", "m IN (1, 12.345)", "ts IN (ts2, NULL)", "l IN (NULL)", "l + 1 IN (l2, 2)",
    "l BETWEEN 0 AND 100", "l0 BETWEEN l2 AND 10", "d BETWEEN 0 AND 5", "d0 + 1 BETWEEN d2 AND 10", "s BETWEEN 'a' AND 'b'",
    "s0 NOT BETWEEN s2 AND 'z'", "t BETWEEN '2000-01-01' AND t2", "l BETWEEN 1 AND d2", "i0 BETWEEN 0 AND 10L", "ts0 BETWEEN ts2 AND ts20",
    "s LIKE 'a%'", "s LIKE '%c'", "s LIKE '%b%'", "s LIKE '_b_'", "s NOT LIKE 'abc'", "s LIKE '%'", "s0 LIKE 'a!%b!_c' ESCAPE '!'",
    "s LIKE s2", "s ILIKE 'A%'", "s ILIKE '%É%'", "s LIKE 'a\\\\%b%'", "s0 LIKE ''", "s LIKE '%a%b%'", "s LIKE ANY ('a%', '%z')",
    "s LIKE ALL ('a%', '%c')", "s RLIKE '^a'", "s REGEXP '[0-9]+$'", "s0 RLIKE 'k$'", "s NOT RLIKE s2", "s RLIKE NULL",
    "s IS DISTINCT FROM s2", "d IS NOT DISTINCT FROM d2", "s0 LIKE 'line_break'", "s RLIKE 'e.b'", "s RLIKE '(?i)ABC'",
]  # fmt: skip
_OTHERS = [
    "CASE WHEN l > 0 THEN 'pos' WHEN l < 0 THEN 'neg' ELSE 'zero' END", "CASE s WHEN 'a' THEN 1 WHEN 'abc' THEN 2 END",
    "CASE l + 1 WHEN 1 THEN 'one' WHEN l2 THEN 'same' ELSE s END", "CASE WHEN b THEN 1 ELSE 2.5 END", "CASE WHEN b THEN i WHEN b2 THEN l ELSE d END",
    "CASE d WHEN CAST('NaN' AS DOUBLE) THEN 'nan' WHEN 0 THEN 'zero' END",
    "-l", "-i", "-d", "-m", "+l", "~l", "~i0", "l & l2", "l | 7", "i ^ i2", "i & l", "1 << 3", "l >> 2", "i >>> 1", "l << k", "l0 >>> k",
    "al[0]", "al[k]", "al0[1]", "ax[l]", "mp['a']", "mp[s]", "mp.b", "p.x", "p.y", "p0.x", "`p`.`x` + 1", "p = p0", "p <=> p0", "struct(l, s).s",
    "t + 1", "t - 1", "t0 + k", "t - t2", "ts - ts2", "ts - t", "t + INTERVAL 1 DAY", "t + INTERVAL 1 MONTH", "t - INTERVAL '1' YEAR",
    "t + INTERVAL 3 HOURS", "ts + INTERVAL '1 02:03:04' DAY TO SECOND", "ts - INTERVAL 90 MINUTES", "ts + INTERVAL 2 MONTHS", "INTERVAL 1 DAY + ts",
    "ts0 + INTERVAL 1 WEEK", "ts - INTERVAL '1-2' YEAR TO MONTH", "t0 - INTERVAL 1 DAY 2 HOURS", "ts + INTERVAL '1.5' SECOND", "ts - ts2 > INTERVAL 1 DAY",
    "ts0 - ts20 = INTERVAL 0 SECOND", "t - t2 < INTERVAL 10 DAYS", "(ts - ts2) + INTERVAL 1 HOUR", "-(ts - ts2)",
    "1", "1L", "1.50", "1e3", "-9223372036854775808", "2147483648", "'it''s'", "r'\\d'", "'tab\\there'", "\"double\"", "'a' 'b'", "X'1F'", "NULL", "true",
    "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00'", "0.001", ".5", "1.5BD", "100BD", "99999999999999999999", "2.5D",
    "position('b' IN s)", "substring(s FROM 2 FOR 3)", "substring(s, 0, 2)", "overlay(s PLACING 'ZZ' FROM 2 FOR 1)", "i + i2", "i * i2", "i - i2", "i0 + 1",
    "regexp_replace('axxb', 'x*', '-')", "regexp_count('axxb', 'x*')", "regexp_extract_all('axxb', 'x*', 0)", "split('axxb', 'x*')", "split(s0, '')", "split('', ',')", "split(s0, ' ')", "split(s, 'a')", "split(s, 'ab')", "split(' a  b ', ' ')", "split('a.b', '.')", "split(s, CAST(NULL AS STRING))",
    "regexp_replace('ab', 'x*', '-', 3)", "regexp_replace('', 'x*', '-')", "split('a1b2c', '[0-9]', 2)", "regexp_extract('ab12', '(?<word>[a-z]+)', 1)",
    "CAST(i AS BIGINT) * 3", "length(s) + 1", "length(s) * length(s2)", "year(t) * 400", "l % 10", "l0 % 7", "i0 % 3", "length(s) % 3", "length(s) DIV 2", "l / 4",
    "abs(i) - 1", "(l + l2) * 2", "m * m0", "m / m0", "w0 * w", "w / m", "m + 0.1", "m % 7", "l * 1.5", "l0 + m0", "m0 / 3", "m - 1L", "w0 + w0", "d * 1.5", "NULL + 1",
    "NULL = NULL", "1 = 1.0", "CAST(n AS DOUBLE) = 1", "'5' + 3", "'5' * 2.5", "t = '2024-02-29'", "ts > '2000-01-01'", "b = 'true'", "CAST(n AS INT) > 5", "n > '5'", "d0 = '2.5'",
]  # fmt: skip


def calls(seed: int = 11, each: int = 4) -> list[str]:
    """Return calls of every function."""
    rng = random.Random(seed)
    texts: list[str] = []
    for name, function in FUNCTIONS.items():
        texts += ANY.get(name, [])
        kinds = [parameter.kind for parameter in function.parameters]
        if name in ANY or "ANY" in kinds or "FUNCTION" in kinds or "TEXT CONSTANT" in kinds:
            continue
        made: dict[str, None] = {}
        for _ in range(each * 3):
            count = rng.randint(function.required, len(kinds))
            arguments = [rng.choice(SPECIAL.get((name, i), POOLS[kinds[i]])) for i in range(count)]
            made[f"{name}({', '.join(arguments)})"] = None
        texts += list(made)[: 1 if not kinds else each]
    return texts
