"""A task's parameters: what is stored, what the worker supplies, and how one becomes JSON and comes back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from holdfast.jobs.untyped import Untyped
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.masking import SECRETS_FIELD
from holdfast.store.records import ARGS_LIMIT

T = TypeVar("T")


class _Mark:
    def __repr__(self) -> str:
        return "secret"


_SECRET = _Mark()
# `password: Secret[str]`: stored, and masked in every listing and error.
Secret = Annotated[T, _SECRET]
_SECRETS = "secrets_"  # how SECRETS_FIELD is called in Python
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class NewerArguments(Exception):
    """Arguments that this version of the task does not know: another worker may."""


class Signature:
    """How to call one function with stored arguments.

    A first parameter annotated with `job_type` receives the running job; parameters annotated with a type that is
    registered as a resource receive it from the worker; all others are stored.
    """

    def __init__(self, function: Callable[..., Any], job_type: type) -> None:
        self._where = f"{function.__module__}.{function.__qualname__}"
        self._argument = f"{self._where}: argument"  # for errors
        hints = hints_of(function)
        parameters = list(inspect.signature(function).parameters.values())
        _refuse_variadic(self._where, parameters)
        _refuse_job_elsewhere(self._where, parameters, hints, job_type)
        self.takes_job = bool(parameters) and hints.get(parameters[0].name) is job_type
        self._parameters = parameters[1:] if self.takes_job else parameters
        _refuse_reserved(self._where, self._parameters)
        self._hints = {each.name: hints.get(each.name, Any) for each in self._parameters}
        self.returns: Any = hints.get("return", Any)
        self.resources: dict[str, Any] = {}
        self._settle()

    def supply(self, kinds: Mapping[Any, object]) -> None:
        """Parameters of these types come from the worker, and are not stored."""
        found = {name: hint for name, hint in self._hints.items() if _hashable(hint) and hint in kinds}
        if found != self.resources:
            self.resources = found
            self._settle()

    def _settle(self) -> None:
        stored = [each for each in self._parameters if each.name not in self.resources]
        self.names = [each.name for each in stored]
        self.secrets = [name for name in self.names if is_secret(self._hints[name])]
        self.defaults = {
            each.name: each.default for each in stored if each.default is not inspect.Parameter.empty
        }
        self._untyped = Untyped(self._where, {name: self._hints[name] for name in self.names})
        self._bound = inspect.Signature(stored)
        self._is_plain = all(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in stored)
        self._known, self._required = set(self.names), set(self.names) - set(self.defaults)
        fields = [_field(each, self._hints[each.name]) for each in stored]
        # Always: a task that no longer has secrets must read what was stored when it had.
        fields.append((_SECRETS, list[str], msgspec.field(name=SECRETS_FIELD, default_factory=list)))
        self._type = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        for name in self.names:
            self._check_readable(name)
        self._positional_only = [
            each.name for each in stored if each.kind is inspect.Parameter.POSITIONAL_ONLY
        ]

    def _check_readable(self, name: str) -> None:
        """Now, and not at the first enqueue."""
        try:
            msgspec.json.Decoder(self._hints[name])
        except (TypeError, NameError) as error:
            raise UsageError(
                f"{self._where}: argument {name} cannot be read from JSON: {error} "
                "Give its types a tag (msgspec.Struct, tag=True), or take one of them."
            ) from None

    # --- enqueueing ---

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, as the function would bind them; what is wrong is said as Python says it."""
        if self._is_plain and len(args) <= len(self.names):
            found = dict(zip(self.names, args, strict=False))
            if found.keys().isdisjoint(kwargs):
                found.update(kwargs)
                if self._required <= found.keys() <= self._known:
                    return found
        try:
            return dict(self._bound.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise UsageError(
                f"{self._where} cannot be called so: {error}. Its arguments: {', '.join(self.names) or 'none'}."
            ) from None

    def encode(self, arguments: Mapping[str, Any]) -> str:
        """The arguments as JSON text that this task, and a worker with the same code, will take."""
        marked = {**arguments, SECRETS_FIELD: self.secrets} if self.secrets else arguments
        try:
            text = encode(marked, limit=ARGS_LIMIT, where=self._argument)
            self._read(text)
            self._untyped.check(arguments)
        except NewerArguments as error:
            raise UsageError(str(error)) from None
        except PayloadError as error:
            if not any(f"argument.{name}" in str(error) for name in self.secrets):
                raise
            raise PayloadError(
                f"{self._where}: a secret argument cannot be stored. It is not shown here."
            ) from None
        return text

    # --- running ---

    def decode(self, text: str) -> dict[str, Any]:
        """Stored arguments by name, with the types of the signature."""
        found = self._read(text)
        return {name: value for name in self.names if (value := getattr(found, name)) is not msgspec.UNSET}

    def _read(self, text: str) -> Any:
        try:
            return decode_stored(text, self._type)
        except PayloadError as error:
            if "unknown field" in str(error) and _is_json(text):
                raise NewerArguments(f"{self._where}: {error}") from None
            raise PayloadError(f"{self._where}: {error}") from None

    def arrange(self, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the function takes them: a few by position only, the rest by name."""
        if not self._positional_only:
            return [], arguments
        return [arguments.pop(name) for name in self._positional_only if name in arguments], arguments


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Its annotations, read. What cannot be read is said."""
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise UsageError(
            f"An annotation of {function.__module__}.{function.__qualname__} cannot be read: {error}. "
            "Import that name at the top of the module, not only for type checkers."
        ) from error


def _refuse_job_elsewhere(
    where: str, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any], job_type: type
) -> None:
    """Else it would be an argument that every enqueue must give, and nobody can."""
    name = job_type.__name__.lower()
    for place, each in enumerate(parameters):
        hint = hints.get(each.name, each.empty)
        is_meant = hint is each.empty and place == 0 and each.name == name
        is_elsewhere = hint is job_type and place > 0
        if is_meant or is_elsewhere or job_type in get_args(hint):
            raise UsageError(
                f"{where} takes {each}, and only a first parameter annotated `{name}: {job_type.__name__}` receives the running job: "
                f"annotate the first parameter: `{name}: {job_type.__name__}`."
            )


def _refuse_variadic(where: str, parameters: Sequence[inspect.Parameter]) -> None:
    for each in parameters:
        if each.kind in _VARIADIC:
            raise UsageError(
                f"{where} takes {each}: a task's arguments have names. Take a dict or a list instead."
            )


def _refuse_reserved(where: str, parameters: Sequence[inspect.Parameter]) -> None:
    """Stored arguments are read into a record with a field of ours, and names with two underscores mean something there."""
    for each in parameters:
        if each.name == _SECRETS or each.name.startswith("__"):
            raise UsageError(
                f"{where}: an argument cannot be called {each.name!r}, which Holdfast uses itself. Give it another name."
            )


def _field(parameter: inspect.Parameter, hint: Any) -> tuple[Any, ...]:
    """A default stays with the function: what was not given is not stored, and a later default then holds."""
    required = parameter.default is inspect.Parameter.empty
    return (parameter.name, hint) if required else (parameter.name, hint, msgspec.UNSET)


def is_secret(hint: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Also when only a part of it is: then all of it is hidden."""
    if (
        isinstance(hint, type)
        and hint.__name__ in ("SecretStr", "SecretBytes")
        and hint.__module__.startswith("pydantic")
    ):
        raise UsageError(
            f"{hint.__name__} dumps as asterisks, and its value would be lost. Annotate with Secret[str] instead."
        )
    if get_origin(hint) is Annotated:
        return any(extra is _SECRET for extra in get_args(hint)[1:]) or is_secret(get_args(hint)[0], seen)
    if isinstance(hint, type) and hint not in seen and _has_fields(hint):
        fields = get_type_hints(hint, include_extras=True).values()
        return any(is_secret(field, seen | {hint}) for field in fields)
    return any(is_secret(part, seen) for part in get_args(hint))


def _has_fields(kind: type) -> bool:
    return any(
        hasattr(kind, name)
        for name in ("__dataclass_fields__", "__struct_fields__", "model_fields", "__attrs_attrs__")
    )


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
