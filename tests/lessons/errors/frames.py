"""Stacks as the runtimes print them: own frames and library frames mixed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple


class Place(NamedTuple):
    """A place in the user's own code."""

    root: str
    file: str
    line: int
    func: str
    owner: str
    words: tuple[str, str, str]


_PYTHON_LIBRARIES = (
    ("starlette/routing.py", "__call__", "await self.middleware_stack(scope, receive, send)"),
    ("uvicorn/protocols/http/h11_impl.py", "run_asgi", "result = await app(self.scope, self.receive, self.send)"),
    ("flask/app.py", "full_dispatch_request", "rv = self.dispatch_request()"),
    ("django/core/handlers/base.py", "_get_response", "response = wrapped_callback(request, *callback_args)"),
    ("click/core.py", "invoke", "return ctx.invoke(self.callback, **ctx.params)"),
    ("celery/app/trace.py", "trace_task", "R = retval = fun(*args, **kwargs)"),
    ("tenacity/__init__.py", "__call__", "result = fn(*args, **kwargs)"),
    ("concurrent/futures/thread.py", "run", "result = self.fn(*self.args, **self.kwargs)"),
)
_NODE_LIBRARIES = (
    "Module._compile (node:internal/modules/cjs/loader:{line}:14)",
    "Module.load (node:internal/modules/cjs/loader:{line}:32)",
    "process.processTicksAndRejections (node:internal/process/task_queues:{line}:5)",
    "node:internal/main/run_main_module:{line}:49",
    "Layer.handle [as handle_request] ({root}/node_modules/express/lib/router/layer.js:{line}:5)",
    "next ({root}/node_modules/express/lib/router/route.js:{line}:13)",
    "Promise.then.completed ({root}/node_modules/jest-circus/build/utils.js:{line}:28)",
    "async Promise.all (index 0)",
)
_JAVA_LIBRARIES = (
    "org.springframework.web.method.support.InvocableHandlerMethod.doInvoke(InvocableHandlerMethod.java:{line})",
    "org.springframework.aop.framework.ReflectiveMethodInvocation.proceed(ReflectiveMethodInvocation.java:{line})",
    "org.apache.catalina.core.ApplicationFilterChain.doFilter(ApplicationFilterChain.java:{line})",
    "java.base/java.lang.reflect.Method.invoke(Method.java:{line})",
    "java.base/jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:{line})",
    "java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:{line})",
    "java.base/java.lang.Thread.run(Thread.java:{line})",
    "org.junit.platform.engine.support.hierarchical.NodeTestTask.execute(NodeTestTask.java:{line})",
)
_GO_LIBRARIES = (
    ("net/http.HandlerFunc.ServeHTTP(...)", "/usr/local/go/src/net/http/server.go"),
    ("net/http.(*conn).serve(0xc0001a2000, {0x9d1f60, 0xc00011e0f0})", "/usr/local/go/src/net/http/server.go"),
    ("testing.tRunner(0xc000007860, 0x52f2c8)", "/usr/local/go/src/testing/testing.go"),
    ("runtime.gopanic({0x4a1b20, 0x4e3d10})", "/usr/local/go/src/runtime/panic.go"),
    ("github.com/spf13/cobra.(*Command).execute(0xc0000f6008)", "/go/pkg/mod/github.com/spf13/cobra@v1.8.0/command.go"),
)
_RUST_LIBRARIES = (
    ("rust_begin_unwind", "/rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/std/src/panicking.rs"),
    ("core::panicking::panic_fmt", "/rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/panicking.rs"),
    ("core::result::unwrap_failed", "/rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/result.rs"),
    (
        "core::ops::function::FnOnce::call_once",
        "/rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/ops/function.rs",
    ),
    (
        "tokio::runtime::task::core::Core<T,S>::poll",
        "/home/dev/.cargo/registry/src/index.crates.io-6f17d22bba15001f/tokio-1.36.0/src/runtime/task/core.rs",
    ),
)
_CSHARP_LIBRARIES = (
    "Microsoft.AspNetCore.Mvc.Infrastructure.ControllerActionInvoker.InvokeInnerFilterAsync()",
    "Microsoft.AspNetCore.Routing.EndpointMiddleware.Invoke(HttpContext httpContext)",
    "System.Threading.Tasks.Task.ExecuteWithThreadLocal(Task& currentTaskSlot, Thread threadPoolThread)",
    "System.Runtime.CompilerServices.TaskAwaiter.HandleNonSuccessAndDebuggerNotification(Task task)",
)
_RUBY_LIBRARIES = (
    "actionpack-7.1.3/lib/action_controller/metal/basic_implicit_render.rb:{line}:in `send_action'",
    "activesupport-7.1.3/lib/active_support/callbacks.rb:{line}:in `run_callbacks'",
    "rack-2.2.8/lib/rack/method_override.rb:{line}:in `call'",
    "rspec-core-3.13.0/lib/rspec/core/example.rb:{line}:in `instance_exec'",
)
_PHP_LIBRARIES = (
    "/vendor/laravel/framework/src/Illuminate/Routing/Controller.php({line}): call_user_func_array()",
    "/vendor/laravel/framework/src/Illuminate/Pipeline/Pipeline.php({line}): Illuminate\\Pipeline\\Pipeline->handle()",
    "/vendor/symfony/http-kernel/HttpKernel.php({line}): Symfony\\Component\\HttpKernel\\HttpKernel->handleRaw()",
    "/vendor/phpunit/phpunit/src/Framework/TestCase.php({line}): PHPUnit\\Framework\\TestCase->runTest()",
)


def _python(place: Place, own: bool, rng: Random, _index: int) -> str:
    if own:
        call = rng.choice(
            ("return {f}({a})", "{a} = {f}({b})", "self.{a}.{f}()", "with {f}({a}) as {b}:", "await {f}({a}, {b})")
        )
        code = call.format(f=rng.choice(("load", "run", "handle", "build", "send")), a=place.words[0], b=place.words[1])
        return f'  File "{place.root}/{place.file}", line {place.line}, in {place.func}\n    {code}'
    file, func, code = rng.choice(_PYTHON_LIBRARIES)
    home = rng.choice(
        (
            "/usr/lib/python3/dist-packages",
            "/usr/local/lib/python3.12/site-packages",
            f"{place.root}/.venv/lib/python3.11/site-packages",
        )
    )
    return f'  File "{home}/{file}", line {place.line}, in {func}\n    {code}'


def _pytest(place: Place, own: bool, rng: Random, index: int) -> str:
    file = f"tests/test_{place.words[0]}.py" if index == 0 else place.file
    func = f"test_{place.func}" if index == 0 else place.func
    if not own and index:
        library, func, code = rng.choice(_PYTHON_LIBRARIES)
        return f".venv/lib/python3.12/site-packages/{library}:{place.line}: in {func}\n    {code}"
    return f"{file}:{place.line}: in {func}\n    {place.words[1]} = {place.words[2]}({place.words[0]})"


def _node(place: Place, own: bool, rng: Random, _index: int) -> str:
    if not own:
        return "    at " + rng.choice(_NODE_LIBRARIES).format(line=place.line, root=place.root)
    where = f"{place.root}/{place.file}:{place.line}:{rng.randint(1, 60)}"
    return "    at " + rng.choice(
        (f"{place.func} ({where})", f"{place.owner}.{place.func} ({where})", f"async {place.func} ({where})", where)
    )


def _java(place: Place, own: bool, rng: Random, _index: int) -> str:
    if not own:
        return "\tat " + rng.choice(_JAVA_LIBRARIES).format(line=place.line)
    return f"\tat com.{place.words[0]}.{place.words[1]}.{place.owner}.{place.func}({place.owner}.java:{place.line})"


def _go(place: Place, own: bool, rng: Random, _index: int) -> str:
    offset = f"+0x{rng.randint(16, 4000):x}"
    if not own:
        call, file = rng.choice(_GO_LIBRARIES)
        return f"{call}\n\t{file}:{place.line} {offset}"
    call = rng.choice(
        (f"main.{place.func}(...)", f"{place.words[0]}.(*{place.owner}).{place.func}(0xc{rng.randint(4096, 9**9):09x})")
    )
    return f"{call}\n\t{place.root}/{place.file}:{place.line} {offset}"


def _rust(place: Place, own: bool, rng: Random, index: int) -> str:
    if not own:
        call, file = rng.choice(_RUST_LIBRARIES)
        return f"{index:4}: {call}\n             at {file}:{place.line}:{rng.randint(5, 40)}"
    call = f"{place.words[0]}::{place.words[1]}::{place.func}"
    return f"{index:4}: {call}\n             at ./{place.file}:{place.line}:{rng.randint(5, 40)}"


def _csharp(place: Place, own: bool, rng: Random, _index: int) -> str:
    if not own:
        return "   at " + rng.choice(_CSHARP_LIBRARIES)
    name = place.func[:1].upper() + place.func[1:]
    space = f"{place.words[0].capitalize()}.{place.words[1].capitalize()}"
    return f"   at {space}.{place.owner}.{name}(String {place.words[2]}) in {place.root}/{place.file}:line {place.line}"


def _ruby(place: Place, own: bool, rng: Random, index: int) -> str:
    lead = "" if index == 0 else "\tfrom "
    if not own:
        return f"{lead}/usr/local/bundle/gems/{rng.choice(_RUBY_LIBRARIES).format(line=place.line)}"
    return f"{lead}{place.root}/{place.file}:{place.line}:in `{place.func}'"


def _php(place: Place, own: bool, rng: Random, index: int) -> str:
    if not own:
        return f"#{index} {place.root}{rng.choice(_PHP_LIBRARIES).format(line=place.line)}"
    return f"#{index} {place.root}/{place.file}({place.line}): App\\{place.owner}->{place.func}()"


LANGUAGES: dict[str, Callable[[Place, bool, Random, int], str]] = {
    "python": _python,
    "pytest": _pytest,
    "node": _node,
    "java": _java,
    "go": _go,
    "rust": _rust,
    "csharp": _csharp,
    "ruby": _ruby,
    "php": _php,
}
"""Language -> the way in which it writes one frame."""


def stack(language: str, count: int, place: Callable[[str], Place], rng: Random) -> str:
    """Write `count` frames, about half of them own ones; the frame nearest to the error is an own one.

    Parameters
    ----------
    language : str
        One of `LANGUAGES`; decides the format, and with it whether the nearest frame comes last (Python) or first.
    count : int
        How many frames, at least 1.
    place : callable
        Makes a place in the user's code for a language.
    rng : random.Random
        Decides which frames are own ones.
    """
    nearest = count - 1 if language in ("python", "pytest") else 0
    return "\n".join(
        LANGUAGES[language](place(language), index == nearest or rng.random() < 0.5, rng, index)
        for index in range(count)
    )
