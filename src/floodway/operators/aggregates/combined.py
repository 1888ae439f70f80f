"""Several aggregates as one: a record with a column for each."""

from collections.abc import Mapping

from floodway.core.schema import Schema
from floodway.core.types import Field
from floodway.operators.aggregates.base import AggregateFunction, AggregateSpec, Resolver


def combined(specs: Mapping[str, AggregateSpec], resolver: Resolver) -> AggregateFunction:
    """Resolve named aggregates into one whose result is a record of them."""
    parts = [(name, spec.resolve(resolver)) for name, spec in specs.items()]
    return _combine([part for _, part in parts], [name for name, _ in parts], resolver)


def _combine(
    parts: list[AggregateFunction], names: list[str], resolver: Resolver
) -> AggregateFunction:
    fields = [
        Field(name, part.result.type, part.result.nullable)
        for name, part in zip(names, parts, strict=True)
    ]
    schema = Schema.row("Aggregates", fields)
    lifts = {f"_lift_{id(part)}": _lifted(part) for part in parts}
    # Names are made once: in another process the same objects have other identities.
    row = f"_Aggregates_{id(schema)}"
    known = {key: value for part in parts for key, value in part.names.items()}

    def each(render: str, *sources: str) -> str:
        inner = ", ".join(
            getattr(part, render)(*(f"{source}[{i}]" for source in sources))
            for i, part in enumerate(parts)
        )
        return inner

    retractable = all(part.subtract is not None for part in parts)
    can_be = all(part.subtract is not None or part.inverse is not None for part in parts)
    inverse = None
    if not retractable and can_be:
        inverse = _combine([part.retractable() for part in parts], names, resolver)
    return AggregateFunction(
        text=", ".join(f"{name}={part.text}" for name, part in zip(names, parts, strict=True)),
        result=Field("aggregates", schema.type),
        argument=resolver.whole(),
        lift=lambda x, t: f"({', '.join(f'{name}({x}, {t}, k)' for name in lifts)},)",
        combine=lambda a, b: f"({each('combine', a, b)},)",
        subtract=(lambda a, b: f"({each('subtract', a, b)},)") if retractable else None,
        lower=lambda p: f"{row}({each('lower', p)})",
        names={**known, **lifts, row: schema.python},
        parts=tuple(parts),
        holistic=any(part.holistic for part in parts),
        inverse=inverse,
        layout=", ".join(dict.fromkeys(part.layout for part in parts if part.layout)),
        plain=all(part.plain for part in parts),
    )


def _lifted(part: AggregateFunction) -> object:
    compiled = part.compiled()
    return lambda value, timestamp, key: compiled.lift(timestamp, key, value)
