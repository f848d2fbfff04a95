"""Declaring loops that Numba compiles for the CPU, and the keys of their machine code.

A *kernel* is called from Python, with the types of its declaration. Its machine code is kept (`gpu_kernels.cache`) and
includes everything that it calls. A *helper* is called by kernels alone. It has no wrappers for calls from Python,
which would take longer to compile than most helpers.

A key names what the code was compiled from and for: the bytecode of the function and of its callees, the values of the
names that it reads, the types, the version of Numba, the processor. It holds no path, no time and no version of
tuplewise. So a new release compiles only what has changed, and machine code works on other machines.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types as nb_types
from numba.core import config, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.registry import CPUDispatcher
from numba.extending import is_jitted

from tuplewise.gpu_kernels import cache

OPTIONS = {"nopython": True, "nogil": True, "boundscheck": None, "no_cfunc_wrapper": True}

WAY_OF_COMPILING = 1  # counts changes of this module that make other machine code of the same loops

STRICT = os.environ.get("TUPLEWISE_STRICT_KERNELS") == "1"  # types that aren't declared are an error: for tests

KERNELS: list[Kernel] = []
"""Every kernel of the modules that are imported, in the order of their declarations."""


class _ByType(CPUDispatcher):  # type: ignore[misc]
    """Compiled function that isn't specialised for constant arguments, only for their types."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Call template for other compiled functions."""
        return super().get_call_template(tuple(map(nb_types.unliteral, args)), kws)


class Kernel(_ByType):
    """Compiled function that is called from Python.

    Attributes
    ----------
    declared : types of the arguments in Numba's notation; one text for each specialisation
    """

    def __init__(self, py_func: Callable[..., Any], declared: tuple[str, ...] = ()) -> None:
        super().__init__(py_func, targetoptions=dict(OPTIONS))
        self.declared = declared
        self._cache = _Kept(self)
        KERNELS.append(self)

    @property
    def module(self) -> str:
        """Name of its module, without the package."""
        return str(self.py_func.__module__).removeprefix(f"{cache.PACKAGE}.")

    @property
    def full_name(self) -> str:
        """Module and name: `gpu_kernels.cpu.tiles.rank_tile`."""
        return f"{self.module}.{self.py_func.__qualname__}"

    @functools.cached_property
    def signatures(self) -> list[tuple[Any, ...]]:
        """Declared specialisations, as types of Numba."""
        named = {n: v for n, v in self.py_func.__globals__.items() if isinstance(v, type) and hasattr(v, "_fields")}
        return [_types_of(text, named) for text in self.declared]

    def compile(self, sig: Any) -> Any:
        """Load or compile a specialisation. Where another process is compiling it, wait for that.

        Arguments that differ from a declaration only in read-only arrays get no specialisation of their own: the
        declaration's machine code is entered for them too.
        """
        arguments = sigutils.normalize_signature(sig)[0]
        declared = next((types_ for types_ in self.signatures if _takes(types_, arguments)), arguments)
        if declared != arguments and arguments not in self.overloads:
            self.compile(declared)
            ready = self.overloads[declared]
            self._insert([argument._code for argument in arguments], ready.entry_point)
            self.overloads[arguments] = ready
            return ready.entry_point
        if arguments in self.overloads or self.is_kept(arguments):
            return super().compile(arguments)
        with cache.turn(self.file_name(arguments)):
            kept = self.is_kept(arguments)  # by now
            return super().compile(arguments) if kept else self._compile_here(arguments)

    def compile_ahead(self, arguments: tuple[Any, ...], *, wait: bool) -> None:
        """Compile a declared specialisation that isn't kept. Where another process compiles it, wait, or skip it."""
        if not self.is_kept(arguments):
            with cache.turn(self.file_name(arguments), wait=wait) as mine:
                if mine and not self.is_kept(arguments):
                    self._compile_here(arguments)

    def add_overload(self, cres: Any) -> None:
        """Enter a specialisation, and the environments of its callees: Numba enters only the specialisation's own."""
        super().add_overload(cres)
        for environment in cres._find_referenced_environments():
            cres.codegen.set_env(environment.env_name, environment)

    def _compile_here(self, arguments: tuple[Any, ...]) -> Any:
        if STRICT and arguments not in self.signatures:
            raise TypeError(f"{self.full_name} is not declared for {arguments}")
        cache.compiling()
        return super().compile(arguments)

    def is_kept(self, arguments: tuple[Any, ...]) -> bool:
        """Tell whether machine code of a specialisation is kept that this processor can run."""
        return cache.is_kept(self.file_names(arguments))

    def file_names(self, arguments: tuple[Any, ...], level: str | None = None) -> list[str]:
        """File names of a specialisation: for this processor, then for the levels that it reaches.

        `level`: only the name for this level of processors.
        """
        if level is not None:
            return [self.file_name(arguments, (level, ""))]
        return [self.file_name(arguments), *(self.file_name(arguments, reached) for reached in cache.levels_here())]

    def file_name(self, arguments: tuple[Any, ...], processor: tuple[str, str] | None = None) -> str:
        """File name of one specialisation. `processor`: name and features, in place of this process's own."""
        triple, *own = self.targetctx.codegen().magic_tuple()
        key = hashlib.sha256()
        types_ = str(arguments), list(_field_names(arguments))
        for part in (_environment(), triple, processor or tuple(own), types_, fingerprint(self)):
            key.update(repr(part).encode())
        return f"{self.full_name}-{key.hexdigest()[:24]}"


class _HelperLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM module of a helper, which kernels include, optimise and turn into machine code.

    Numba would do all that for the helper too, besides doing it in each caller: a fifth of the time of compiling.
    """

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernel optimises."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return None: a helper has no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> _NoEnvironments:
        return _NoEnvironments()


class _NoEnvironments:
    """Stand-in for the code generator where Numba enters a helper's environment: a kernel enters those of its
    callees."""

    def set_env(self, name: str, environment: Any) -> None:
        """Enter nothing."""


class _HelperCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, making a `_HelperLibrary`."""

    def define_pipelines(self) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = _HelperLibrary(codegen, self.state.func_id.func_qualname)
        return super().define_pipelines()


class _Helper(_ByType):
    """Compiled function that only kernels call."""

    def __init__(self, py_func: Callable[..., Any], **more: Any) -> None:
        options = {**OPTIONS, "no_cpython_wrapper": True, **more}
        super().__init__(py_func, targetoptions=options, pipeline_class=_HelperCompiler)

    def add_overload(self, cres: Any) -> None:
        """Keep it for kernels. It can't be entered for Python: there is no wrapper to call."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{self.py_func.__qualname__} is a helper: kernels call it; its plain Python is .py_func")


def kernel(*declared: str) -> Callable[[Callable[..., Any]], Any]:
    """Declare a kernel with the types of its arguments, in Numba's notation, for each specialisation.

    `const` before an array says that the kernel doesn't write to it: the argument may then be read-only or not. Classes
    of named tuples are written as calls with the types of their fields.

    Arguments of other types are compiled for when they occur. Tests refuse them (`STRICT`), since each costs seconds.

    Examples
    --------
    >>> @kernel("int32[::1], int64")
    ... def add(codes, step):
    ...     for i in range(len(codes)):
    ...         codes[i] += step
    """
    return functools.partial(_declared, declared)


def _declared(declared: tuple[str, ...], function: Callable[..., Any]) -> Any:
    return function if config.DISABLE_JIT else Kernel(function, declared)


def helper(function: Callable[..., Any]) -> Any:
    """Declare a helper. Its types come from its calls."""
    return function if config.DISABLE_JIT else _Helper(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Declare a helper whose code replaces each call, before types are known."""
    return function if config.DISABLE_JIT else _Helper(function, inline="always")


def _types_of(text: str, named: dict[str, type]) -> tuple[Any, ...]:
    """Types of a declaration. `const` before an array: the kernel doesn't write to it. `named`: the named tuples."""
    text = re.sub(r"const (\w+\[[:,1 ]*\])", r"_const(\1)", text)
    names: dict[str, Any] = {**vars(nb_types), "_const": lambda array: array.copy(readonly=True)}
    names |= {name: functools.partial(_named_tuple, class_) for name, class_ in named.items()}
    found = eval(f"({text},)" if text else "()", {"__builtins__": {}}, names)
    return tuple(found)


def _named_tuple(class_: type, *fields: Any) -> Any:
    return nb_types.BaseTuple.from_types(fields, class_)


def _field_names(value: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Field names of all named tuples among some types: loops read fields by name, and a type's text has no names."""
    if isinstance(value, nb_types.BaseTuple):
        class_ = getattr(value, "instance_class", None)
        if class_ is not None:
            yield class_.__qualname__, class_._fields
    if isinstance(value, (tuple, nb_types.BaseTuple)):
        for part in value:
            yield from _field_names(part)


def _takes(declared: Any, given: Any) -> bool:
    """Tell whether machine code for `declared` types can be called with `given` types: arrays that it only reads may be
    writable or not."""
    if declared == given:
        return True
    if isinstance(declared, nb_types.Array) and isinstance(given, nb_types.Array):
        return not declared.mutable and given.copy(readonly=True) == declared
    if isinstance(declared, nb_types.BaseTuple) and isinstance(given, nb_types.BaseTuple):
        same = getattr(declared, "instance_class", None) == getattr(given, "instance_class", None)
        return same and _takes(tuple(declared), tuple(given))
    both = isinstance(declared, tuple) and isinstance(given, tuple) and len(declared) == len(given)
    return both and all(map(_takes, declared, given))


class _Kept:
    """Numba's access to the kept machine code of one kernel, in place of a `numba.core.caching.Cache`."""

    cache_path = None

    def __init__(self, of: Kernel) -> None:
        self._of = of

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code kept for these types, or None: that of this processor, else that of a level that it reaches."""
        target_context.refresh()
        arguments = sigutils.normalize_signature(sig)[0]
        try:
            kept = cache.load(self._of.file_names(arguments))
            return None if kept is None else CompileResult._rebuild(target_context, *kept)
        except Exception:  # the file is whole, but this Numba can't read it: compile anew
            cache.compiling()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code, without the annotated listing of the source, which is a quarter of the bytes.

        Code that holds addresses of this process (a large global array) is not kept.
        """
        if data.library.has_dynamic_globals:
            return
        kept = tuple("" if isinstance(part, str) else part for part in data._reduce())
        cache.save(self._of.file_name(sigutils.normalize_signature(sig)[0]), kept)

    def flush(self) -> None:
        """Do nothing: no entry is buffered."""


@functools.cache
def _environment() -> tuple[Any, ...]:
    """Settings and versions that machine code depends on."""
    switches = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT)
    versions = (sysconfig.get_config_var("SOABI"), numba.__version__, llvmlite.__version__, np.__version__)
    options = (*map(repr, switches), *sorted(map(str, OPTIONS.items())))
    return WAY_OF_COMPILING, sys.implementation.cache_tag, versions, options


def fingerprint(function: Any) -> str:
    """Hash of a compiled function's own code and, recursively, of its callees' code.

    Raises TypeError where the function reads a name without a fixed value: no key can tell when such a loop changes.
    """
    found = getattr(function, "_fingerprint", None)
    if found is None:
        found = hashlib.sha256("\n".join(_parts(function.py_func, {})).encode()).hexdigest()
        function._fingerprint = found
    return str(found)


def _parts(function: types.FunctionType, seen: dict[int, int]) -> Iterator[str]:
    """Lines that together determine what is compiled. `seen`: numbers of the functions already listed."""
    if id(function) in seen:
        yield f"function {seen[id(function)]}"
        return
    seen[id(function)] = len(seen)
    yield f"def {len(seen)}"
    yield repr(function.__defaults__)
    names: set[str] = set()
    for code in _codes(function.__code__):
        documented = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
        if function.__doc__ is not None and code is function.__code__:
            documented.remove(function.__doc__)
        yield f"{code.co_code.hex()} {documented!r} {code.co_names} {code.co_varnames} {code.co_freevars}"
        yield f"{code.co_flags} {code.co_argcount} {getattr(code, 'co_exceptiontable', b'').hex()}"
        names.update(code.co_names)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    values |= {name: cell.cell_contents for name, cell in cells}
    for name in sorted(values):
        yield from (f"{name} {line}" for line in _value(name, values[name], seen))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Code of a function and of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _value(name: str, value: Any, seen: dict[int, int]) -> Iterator[str]:
    """Lines for the value of a name."""
    if is_jitted(value):
        yield repr(sorted(value.targetoptions.items(), key=str))
        yield from _parts(value.py_func, seen)
    elif isinstance(value, types.FunctionType):
        yield from _parts(value, seen)
    elif isinstance(defined := getattr(value, "_defn", None), types.FunctionType):  # an intrinsic
        yield from _parts(defined, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, (int, float, str, bytes, np.generic, tuple, types.NoneType)):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, types.ModuleType) and not value.__name__.startswith(cache.PACKAGE):
        yield f"module {value.__name__}"
    elif isinstance(value, (type, types.BuiltinFunctionType)):
        yield f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', ())}"
    elif type(value).__module__.startswith("numba."):
        yield repr(value)
    else:
        raise TypeError(f"a compiled loop reads {name!r}, {type(value).__name__}: no key can tell when it changes")
