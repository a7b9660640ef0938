# SPDX-License-Identifier: MIT
"""Names what PyTorch does, with no change to the program.

`protonctl run -- python train.py` installs this when torch is imported (`-k none` forbids);
`protond.start(hook="torch")` and protond.torch.install() do the same. The tree then has

    step                       from one optimizer step to the next, when a model is trained
      dataloader               waiting for a batch
      forward
        GPT2 / h.0 / attn      modules, by the names that their parents know them by
      backward                 kernels of autograd's own threads too
      optimizer.zero_grad, optimizer.step
      dist.all_reduce, ...     collectives that Python calls

A region that torch.compile has compiled runs as one piece: its modules cannot be seen from outside,
and its scope is called `NAME (compiled)`.

How it is done: torch's entry points are wrapped where Python looks them up; no tensor method and no
operator is touched. One call of a module costs one wrapper.
"""
import atexit
import functools
import sys
import threading
import weakref

from . import _api, _backward, _options, _watch
from ._say import say

_native = _api._native
_push, _pop, _depth = _native.push, _native.pop, _native.depth
_installed = False
_set = {}          # the options, as they were when torch was imported
_sampler = None    # of GPU work, by steps: _sampling.Sampler


def _never():
    return False


_compiling = _never  # torch.compiler.is_compiling: true while Dynamo traces through a wrapper


def _scoped(function, name):
    """`function` inside a scope; while it is being compiled, as it was."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if _compiling():
            return function(*args, **kwargs)
        _push(name)
        try:
            return function(*args, **kwargs)
        finally:
            _pop(name)
    return wrapper


# --- steps ------------------------------------------------------------------------------------

class _Steps(threading.local):
    """Where this thread is in its training loop.

    A step begins at the first sign of one (a batch is asked of a loader that is known to train,
    gradients are zeroed, a model runs with gradients on) and lasts until the first sign of the next
    one after its optimizer has stepped. So all that a loop does belongs to some step, and nothing
    but `step` need be known of it.
    """
    open = False
    done = False     # its optimizer has stepped
    last = False     # the loader has no more batches, and this step has not stepped
    zeroes_first = False  # gradients were zeroed before the first optimizer stepped
    depth = 0        # scopes open around it
    name = "step"    # of its scope
    stepping = ()    # calls of steps of optimizers: _Stepping
    leader = None    # the optimizer whose step ends a step, when there are several: a weak reference
    loader = None    # of the last batch: a weak reference to its dataset, and how it was made

    def __init__(self):
        # True: nothing is guessed, for step() is called by the program; or autograd made this thread,
        # and what it computes anew (checkpoints) trains nothing.
        self.manual = isinstance(threading.current_thread(), threading._DummyThread)


_steps = _Steps()
_optimizers = 0                            # how many were made: a program without one does not train
_training = {}                             # _Same(dataset): how the loaders of it were made that trained


class _Same(weakref.ref):
    """Equal to what refers to the very same object, whatever that makes of == (a tensor compares
    element by element, others do it at length, or not at all)."""
    __slots__ = ("id",)

    def __new__(cls, o):
        self = super().__new__(cls, o, _forget)
        self.id = id(o)
        return self

    def __init__(self, o):
        super().__init__(o, _forget)

    def __eq__(self, other):
        return self is other or (self.id == other.id and self() is not None and self() is other())

    def __hash__(self):
        return self.id


def _forget(dataset):
    _training.pop(dataset, None)


def _safe(function):
    """What goes wrong in here must not reach the program: it is said once, and nothing is named."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as e:
            if not wrapper.said:
                wrapper.said = True
                say(f"{function.__name__}: {e!r}; some names will be missing")
            return None
    wrapper.said = False
    return wrapper


@_safe
def _step_end():
    if _steps.open:
        _steps.open = False
        if _depth() > _steps.depth:  # else what it stood in has been left, and the step with it
            memory = sys.modules.get("protond.memory")
            if memory is not None:
                _native.unwind(_steps.depth + 1)  # the figures are the step's, not of what was left open
                memory.record("step")
            snapshots = sys.modules.get("protond._snapshots")
            if snapshots is not None:
                snapshots.step()
            _pop(_steps.name)


def _step_begin():
    _steps.name = _sampler.next() if _sampler is not None else "step"
    _steps.depth, _steps.open, _steps.done, _steps.last = _depth(), True, False, False
    _push(_steps.name)
    if _sampler is not None:
        _sampler.began()


@_safe
def _step_sign(ends_only=False):
    """A sign that a step begins; or, ends_only, that whatever comes is no part of one. True: one began."""
    s = _steps
    if s.stepping:
        _optimizer_failed()
    if s.manual or _native.own_steps():  # the program says itself what a step is
        return False
    if s.open and _depth() <= s.depth:
        s.open = False
    if s.open:
        over = s.done or s.last and ends_only
        if not over or _depth() != s.depth + 1:  # in the middle, or the program has scopes around
            return False
        _step_end()
    if not ends_only:
        _step_begin()
    return not ends_only


@_safe
def _zero_sign(optimizer):
    """Gradients are zeroed: a step begins. But of a loop that zeroes them after it has stepped this is the
    end of a step: where batches come from a loader, or the first step came without it."""
    s = _steps
    if s.leader is None:
        s.zeroes_first = True
    elif s.open and s.done and s.leader() is optimizer and (s.loader is not None or not s.zeroes_first):
        return
    _step_sign()


@_safe
def _step_done(optimizer):
    s = _steps
    leader = s.leader() if s.leader is not None else None
    if leader is None:
        s.leader = weakref.ref(optimizer)
    elif leader is not optimizer:
        return
    s.done = True
    if s.loader is not None:
        dataset, how = s.loader
        if dataset() is not None:
            _training.setdefault(dataset, set()).add(how)


def step():
    """Says that a step begins, and that the one before has ended: from now on nothing is guessed.

    For loops whose steps are not what optimizers say, or that have none (serving, sampling).
    """
    _steps.manual = True
    _step_end()
    _step_begin()


def step_end():
    """Says that whatever comes is no part of a step, until step() says that one begins."""
    _steps.manual = True
    _step_end()


def region(name):
    """A part of a step by name: protond.scope, for those who look for it here."""
    return _api.scope(name)


# --- modules ----------------------------------------------------------------------------------

def _holds_only(module, torch):
    return isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict))


@_safe
def _class_name(module):
    inner = module.__dict__.get("_modules", {}).get("_orig_mod")
    if inner is not None:
        return type(inner).__name__ + " (compiled)"
    return type(module).__name__


def _keep_name(module, name):
    try:
        module.__dict__["_protond_name"] = name
    except (AttributeError, TypeError):
        pass  # a class that is not like others: named at each call
    return name


@_safe
def _name_children(module, torch, above):
    for name, child in module._modules.items():
        if child is None:
            continue
        path = f"{above}.{name}" if above else name
        if _holds_only(child, torch):
            _name_children(child, torch, path)
        elif "_protond_name" not in child.__dict__:
            _keep_name(child, sys.intern(path))
            _name_children(child, torch, "")


def _name_module(module, outermost):
    """A module that has no name yet is the root of a model, or was made on the fly."""
    if outermost:
        _name_children(module, sys.modules["torch"], "")
    return _keep_name(module, sys.intern(_class_name(module) or "module"))


@_safe
def _first_module(module):
    """Before the outermost module of this thread."""
    trains = sys.modules["torch"].is_grad_enabled() and _optimizers > 0 and module.training
    _step_sign(ends_only=not trains)


def _patch_modules(torch):
    enter, leave, call = _native.module_enter, _native.module_leave, torch.nn.Module.__call__

    def __call__(self, *args, **kwargs):
        depth = enter(self)
        try:
            return call(self, *args, **kwargs)
        finally:
            leave(depth)

    def call_and_hook(self, *args, **kwargs):
        depth = enter(self)
        try:
            return _backward.call(torch, call, self, _native.name(self._protond_name), args, kwargs)
        finally:
            leave(depth)

    if _set["torch_backward"] == "module":
        __call__ = call_and_hook
    functools.update_wrapper(__call__, call)
    del __call__.__wrapped__  # inspect.signature() must not look behind it at every call
    _native.install_modules(_name_module, _first_module)
    torch.nn.Module.__call__ = __call__
    _watch.when_imported("torch._dynamo", functools.partial(_tell_dynamo, __call__, call))


def _tell_dynamo(ours, theirs, dynamo):
    """Dynamo goes around a __call__ that it knows to be torch's own; ours is as good."""
    nn_module = sys.modules.get("torch._dynamo.variables.nn_module")
    if getattr(nn_module, "unpatched_nn_module_call", None) is theirs:
        nn_module.unpatched_nn_module_call = ours
    try:  # where it traces through our wrapper all the same, nothing is there
        from torch._dynamo.decorators import substitute_in_graph
        substitute_in_graph(_native.module_enter, skip_signature_check=True)(lambda module: 0)
        substitute_in_graph(_native.module_leave, skip_signature_check=True)(lambda depth: None)
    except (ImportError, TypeError, ValueError) as e:
        say(f"modules inside what torch.compile leaves uncompiled may break its graphs: {e}")


# --- everything else ----------------------------------------------------------------------------

def _by_module(torch, function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if _compiling():
            return function(*args, **kwargs)
        _backward.begin(torch, args, kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            _backward.end()
    return wrapper


def _patch_autograd(torch):
    for name in ("backward", "grad"):
        function = getattr(torch.autograd, name)
        if _set["torch_backward"] == "module":
            function = _by_module(torch, function)
        setattr(torch.autograd, name, _scoped(function, "backward"))


def _patch_profiler(torch):
    """torch.profiler needs CUPTI to itself: we step aside while it records the GPU."""
    profiler = sys.modules.get("torch.autograd.profiler")
    cuda = getattr(getattr(profiler, "ProfilerActivity", None), "CUDA", None)
    prepare, disable = getattr(profiler, "_prepare_profiler", None), getattr(profiler, "_disable_profiler", None)
    if cuda is None or prepare is None or disable is None:
        return
    aside = []  # the begin of the time that we see no GPU work

    def come_back():
        if aside:
            gap = _native.context_child(0, _native.name("[GPU not recorded: torch.profiler]"))
            _native.span_end(gap, aside.pop())
            _native.gpu_resume()

    @functools.wraps(prepare)
    def _prepare_profiler(config, activities, *rest):
        first = cuda in activities and not aside
        if first:
            aside.append(_native.span_begin())
            _native.gpu_pause(0)
        try:
            return prepare(config, activities, *rest)
        except BaseException:  # nobody disables what was not prepared
            if first:
                come_back()
            raise

    @functools.wraps(disable)
    def _disable_profiler(*args):
        try:
            return disable(*args)
        finally:
            come_back()

    profiler._prepare_profiler, profiler._disable_profiler = _prepare_profiler, _disable_profiler


def _patch_operators(torch):
    if _set["torch_ops"] or _native.ops_wanted():
        from . import _ops
        _ops.OPERATORS.load(torch)


class _Stepping:
    """The scope of a step of an optimizer. It is not open while the closure runs that the program gave to
    optimizer.step(): that is the step's forward and backward, which stand where they would without one."""
    __slots__ = ("frame", "open")

    def __init__(self, frame=None):
        self.frame = frame  # of the call
        self.open = None    # not yet

    def enter(self):
        self.open = True
        _push("optimizer.step")

    def leave(self):
        if self.open:
            _pop("optimizer.step")
        self.open = False

    def begin(self, args, kwargs):
        """args: with the optimizer. Returns them, the closure as one that knows of us."""
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not callable(closure):
            self.enter()
        elif len(args) > 1:
            args = (args[0], self._hoisted(closure), *args[2:])
        else:
            kwargs = dict(kwargs, closure=self._hoisted(closure))
        return args, kwargs

    def end(self):
        if self.open is None:  # the closure was not called
            self.enter()
        self.leave()

    def _hoisted(self, closure):
        @functools.wraps(closure)
        def wrapper(*args, **kwargs):
            self.leave()
            out = closure(*args, **kwargs)
            self.enter()
            return out
        return wrapper


def _optimizer_enters(optimizer, args, kwargs):
    if _compiling():
        return None
    _optimizer_failed()
    stepping = _Stepping(sys._getframe(1))
    _steps.stepping += (stepping,)
    return stepping.begin(args, kwargs)


def _optimizer_leaves(optimizer, args, kwargs):
    if not _compiling():
        _steps.stepping[-1].end()
        _steps.stepping = _steps.stepping[:-1]
        _step_done(optimizer)


def _optimizer_failed():
    """torch's hooks are not told of a step that raised: its scope is left when the next sign comes."""
    while _steps.stepping:
        frame = sys._getframe(1)
        while frame is not None and frame is not _steps.stepping[-1].frame:
            frame = frame.f_back
        if frame is not None:  # a closure
            return
        _steps.stepping[-1].leave()
        _steps.stepping = _steps.stepping[:-1]


def _wrap_step(cls):
    """Where torch has no hooks for all optimizers (before 2.0)."""
    inner = cls.step

    @functools.wraps(inner)
    def step(*args, **kwargs):
        stepping = _Stepping()
        args, kwargs = stepping.begin(args, kwargs)
        try:
            out = inner(*args, **kwargs)
            stepping.end()
        finally:
            stepping.leave()
        _step_done(args[0])
        return out

    step._protond = True
    cls.step = step


def _wrap_steps(cls):
    for sub in cls.__subclasses__():
        if "step" in vars(sub):
            _wrap_step(sub)
        _wrap_steps(sub)


def _patch_optimizers(torch):
    cls = torch.optim.Optimizer
    made, zero_grad = cls.__init__, _scoped(cls.zero_grad, "optimizer.zero_grad")
    optimizer = sys.modules["torch.optim.optimizer"]
    hooks = hasattr(optimizer, "register_optimizer_step_pre_hook")
    if hooks:
        optimizer.register_optimizer_step_pre_hook(_optimizer_enters)
        optimizer.register_optimizer_step_post_hook(_optimizer_leaves)
    else:
        _wrap_steps(cls)

    @functools.wraps(made)
    def __init__(self, *args, **kwargs):
        global _optimizers
        _optimizers += 1
        made(self, *args, **kwargs)
        if not hooks and not hasattr(type(self).step, "_protond"):
            _wrap_step(type(self))

    @functools.wraps(zero_grad)
    def _zero_grad(self, *args, **kwargs):
        if not _compiling():
            _zero_sign(self)
        return zero_grad(self, *args, **kwargs)

    cls.__init__, cls.zero_grad = __init__, _zero_grad


@_safe
def _loader(loader):
    """What tells a loader that trains from one that validates, also when it is made anew for each
    epoch: its dataset, as a weak reference, and how it was made."""
    how = (loader.batch_size, type(loader.sampler), loader.drop_last, loader.num_workers)
    try:
        return _Same(loader.dataset), how
    except TypeError:  # a list, say
        return _Same(loader), how


@_safe
def _trains(loader):
    return loader is not None and loader[1] in _training.get(loader[0], ())


def _is_empty(iterator):
    """Whether it has given all its batches; False where that is not known in advance."""
    try:
        return iterator._num_yielded >= len(iterator)
    except Exception:  # a sampler of the program's says what it likes
        return False


def _patch_loaders(torch):
    data = sys.modules.get("torch.utils.data.dataloader")
    if data is None:
        return
    begin = _scoped(data.DataLoader.__iter__, "dataloader")
    give = _scoped(data._BaseDataLoaderIter.__next__, "dataloader")
    loaders = weakref.WeakKeyDictionary()  # iterator: what _loader() says of its loader

    @functools.wraps(begin)
    def __iter__(self):
        loader = _loader(self)
        _step_sign(ends_only=not _trains(loader))
        iterator = begin(self)
        if loader is not None:
            loaders[iterator] = loader
        return iterator

    @functools.wraps(give)
    def __next__(self):
        loader = loaders.get(self)
        began = _step_sign(ends_only=not _trains(loader) or _is_empty(self))
        try:
            batch = give(self)
        except StopIteration:
            if began:
                _steps.done = True  # a step that has no batch is none
                _step_sign(ends_only=True)
            else:  # what asks ahead still has a batch, to be computed in this step
                _steps.last = True
            raise
        _steps.loader = loader
        return batch

    data.DataLoader.__iter__, data._BaseDataLoaderIter.__next__ = __iter__, __next__


_COLLECTIVES = """all_gather all_gather_into_tensor all_gather_object all_reduce all_reduce_coalesced
    all_to_all all_to_all_single barrier broadcast broadcast_object_list gather gather_object irecv
    isend recv reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send""".split()


def _patch_collectives(torch):
    distributed = sys.modules.get("torch.distributed")
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    for name in _COLLECTIVES:
        function = getattr(distributed, name, None)
        if callable(function):
            wrapper = _scoped(function, "dist." + name)
            setattr(distributed, name, wrapper)
            if getattr(c10d, name, None) is function:
                setattr(c10d, name, wrapper)


def _ends_steps(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        _step_sign(ends_only=True)
        return function(*args, **kwargs)
    return wrapper


def _patch_teardown(torch):
    """Ranks part behind the loop, which takes NCCL half a second: no part of its last step."""
    distributed = sys.modules.get("torch.distributed")
    function = getattr(distributed, "destroy_process_group", None)
    if callable(function):
        distributed.destroy_process_group = _ends_steps(function)


def _patch_graphs(torch):
    graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
    if graph is not None and "replay" in vars(graph):
        graph.replay = _scoped(graph.replay, "CUDAGraph.replay")


_PATCHES = (_patch_modules, _patch_autograd, _patch_profiler, _patch_operators, _patch_optimizers, _patch_loaders,
            _patch_collectives, _patch_teardown, _patch_graphs)


def _patch(torch):
    global _compiling, _sampler
    _set.update(_options.current())
    if _set["torch_memory"]:
        from . import memory
        memory.track()
    if _set["sample_rate"] < 1:
        from ._sampling import Sampler
        _sampler = Sampler(_set["sample_rate"], _set["sample_warmup"], _set["sample_active"], _set["sample_overhead"])
    _compiling = getattr(getattr(torch, "compiler", None), "is_compiling", _never)
    for patch in _PATCHES:
        try:
            patch(torch)
        except Exception as e:  # a torch that is not as expected: the rest is named all the same
            say(f"torch {getattr(torch, '__version__', '?')}: {patch.__name__[7:]} are not named: {e!r}")


def install():
    """From now on, or from the import of torch on, what torch does is named. Idempotent."""
    global _installed
    if not _installed and _native.version and sys.platform.startswith("linux"):
        _installed = True
        atexit.register(_step_end)
        _watch.when_imported("torch", _patch)


def installed():
    """Whether what torch does is named, or will be once it is imported."""
    return _installed
