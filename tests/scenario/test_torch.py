# SPDX-License-Identifier: MIT. What protond.torch names: on the stand-in, as torch is and as it was before 2.0, and on
# torch itself where it is installed.
import importlib.util
import json
import sys
import textwrap

import pytest

from test_python import INC, PYTHONS, STANDIN, job, metrics, python_env, record, said, tree

pytestmark = pytest.mark.preload

HAVE_TORCH = importlib.util.find_spec("torch") is not None
KINDS = ["standin", "old", pytest.param("torch", marks=pytest.mark.skipif(
    not HAVE_TORCH, reason="this Python has no torch"))]

MODELS = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = nn.Linear(2, 2)
            self.mlp = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))

        def forward(self, x):
            return self.mlp(self.attn(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = nn.ModuleList([Block(), Block()])
            self.head = nn.Linear(2, 2)
            self.tied = self.head
            self.heads = nn.ModuleDict({"a": nn.Linear(2, 2)})

        def forward(self, x):
            for block in self.h:
                x = block(x)
            return self.tied(self.heads["a"](self.head(x)))

    class Numbers(torch.utils.data.Dataset):
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, i):
            if i >= self.n:
                raise IndexError
            return float(i)

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([0.0, 1.0, 2.0])

    def x():
        return torch.zeros(1, 2)

    def train(net, optimizer):
        optimizer.zero_grad()
        net(x()).sum().backward()
        optimizer.step()

    def small():
        net = nn.Sequential(nn.Linear(2, 2))
        return net, torch.optim.SGD(net.parameters(), lr=0.1)
"""


def names(world, kind, code, hook="torch", standin=None, **kwargs):
    """The tree of a program on torch or on its stand-in."""
    kwargs.setdefault("env", {})["STANDIN"] = standin if standin is not None else "old" if kind == "old" else ""
    r, got = record(world, textwrap.dedent(MODELS) + textwrap.dedent(code), hook=hook,
                    paths=() if kind == "torch" else (STANDIN,), **kwargs)
    words = [line for line in r.stderr.splitlines() if line.startswith("protond:")]
    assert words == [] or standin is not None, words
    return got


def under(path, more):
    return {path + k: v for k, v in more.items()}


STEP = ["", "/optimizer.zero_grad", "/forward", "/forward/Sequential", "/forward/Sequential/0", "/backward",
        "/optimizer.step"]


def steps(n, path="/step", without=()):
    return {path + part: n for part in STEP if part[1:] not in without}


BLOCK = ["", "/attn", "/mlp", "/mlp/0", "/mlp/1"]


def net(n, path="/forward/Net"):
    return {"/forward": n, path: n, **{f"{path}/h.{i}{b}": n for i in range(2) for b in BLOCK},
            path + "/head": 2 * n, path + "/heads.a": n}


# --- modules ------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", KINDS)
def test_modules_have_the_names_that_their_parents_know_them_by(world, kind):
    assert names(world, kind, """
        net = Net()
        net._modules["gone"] = None
        for _ in range(3):
            net(x())
    """) == net(3)


@pytest.mark.parametrize("kind", KINDS)
def test_modules_that_fail(world, kind):
    got = names(world, kind, """
        import protond
        class Fails(nn.Module):
            def forward(self, x):
                raise KeyError("mine")
        net = Net()
        net.h[1].mlp._modules["1"] = Fails()
        for _ in range(2):
            try:
                net(x())
            except KeyError as e:
                assert e.args == ("mine",)
            assert protond.depth() == 0
        Block()(x())
        try:
            net(1, 2, 3)
        except TypeError as e:
            assert "forward" in str(e)
        assert protond.depth() == 0
    """)
    want = net(2)
    del want["/forward/Net/head"], want["/forward/Net/heads.a"]
    assert got == {**want, "/forward": 4, "/forward/Net": 3, **{f"/forward/Block{b}": 1 for b in BLOCK}}


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_modules(world, kind):
    assert names(world, kind, """
        # Until here
        import copy, pickle, subprocess, sys
        net = Net()
        net(x())
        copy.deepcopy(net)(x())
        copy.copy(net)(x())
        data = pickle.dumps(net)
        pickle.loads(data)(x())
        # Another process, without us, reads it too.
        reads = "import sys, pickle; exec(open(sys.argv[1]).read().split('# Until here')[0])\\n" \\
            "assert 'protond' not in sys.modules; pickle.load(sys.stdin.buffer)(x())"
        subprocess.run([sys.executable, "-c", reads, __file__], input=data, check=True, env=WITHOUT)
    """.replace("WITHOUT", "{k: v for k, v in __import__('os').environ.items() if not k.startswith('PROTOND')}")
        ) == net(4)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_that_are_not_like_others(world, kind):
    got = names(world, kind, """
        import protond
        class Slots(nn.Linear):
            __slots__ = ("a",)
        class Calls(nn.Linear):
            def __call__(self, *args):
                return super().__call__(*args)
        class Alone(nn.Linear):
            def __call__(self, x):
                return self.forward(x)
        class Anything(nn.Linear):
            pass
        class Refuses(nn.Linear):
            pass
        def refuse(self, name):
            raise KeyError(name)
        class Wraps(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner
            def __getattr__(self, name):
                try:
                    return super().__getattr__(name)
                except AttributeError:
                    return getattr(super().__getattr__("inner"), name)
            def forward(self, x):
                return self.inner(x)
        class Late(nn.Module):
            def forward(self, x):
                self.made = nn.Linear(2, 2)
                return self.made(nn.Sequential(nn.Linear(2, 2))(x))
        class Closed(nn.Linear):
            def __setattr__(self, name, value):
                if name.startswith("_protond"):
                    raise KeyError(name)
                super().__setattr__(name, value)
        for cls in Slots, Calls, Alone, Closed:
            cls(2, 2)(x())
        Wraps(nn.Linear(2, 2))(x())
        late = Late()
        late(x()), late(x())
        for cls, answer in (Anything, lambda self, name: print), (Refuses, refuse):
            linear = cls(2, 2)
            linear.forward = lambda x: x
            cls.__getattr__ = answer
            linear(x())
        assert protond.depth() == 0
        assert nn.Module.__call__.__name__ and nn.Module.__call__.__doc__ == nn.Module._call_impl.__doc__
    """)
    want = {"/forward/Slots": 1, "/forward/Calls": 1, "/forward/Closed": 1, "/forward/Wraps": 1,
            "/forward/Wraps/inner": 1, "/forward/Late": 2, "/forward/Late/Linear": 2, "/forward/Late/Sequential": 2,
            "/forward/Late/Sequential/Linear": 2, "/forward/Anything": 1, "/forward/Refuses": 1}
    assert got == {**want, "/forward": sum(v for k, v in want.items() if k.count("/") == 2)}


@pytest.mark.parametrize("kind", KINDS)
def test_modules_of_several_threads(world, kind):
    assert names(world, kind, """
        import threading
        both = threading.Barrier(2)
        class Waits(nn.Module):
            def forward(self, x):
                both.wait()
                return x
        class Holds(nn.Module):
            def __init__(self):
                super().__init__()
                self.waits = Waits()
            def forward(self, x):
                return self.waits(x)
        ts = [threading.Thread(target=Holds(), args=(x(),)) for _ in range(2)]
        [t.start() for t in ts], [t.join() for t in ts]
    """) == {"/forward": 2, "/forward/Holds": 2, "/forward/Holds/waits": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_scopes_of_the_program_inside_a_model(world, kind):
    assert names(world, kind, """
        import protond
        class Inner(nn.Module):
            def forward(self, x):
                with protond.scope("attention", {"n": 1}):
                    return x
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()
            def forward(self, x):
                with protond.scope("mine"):
                    return self.inner(x)
        model = Outer()
        with protond.scope("request"):
            model(x())
    """) == {"/request": 1, **under("/request", {"/forward": 1, "/forward/Outer": 1, "/forward/Outer/mine": 1,
             "/forward/Outer/mine/inner": 1, "/forward/Outer/mine/inner/attention": 1})}


@pytest.mark.parametrize("kind", KINDS)
def test_models_in_asyncio_tasks(world, kind):
    """A request's task, and inside it a model, and inside that scopes: all in one path."""
    got = names(world, kind, """
        import asyncio, protond
        class Inner(nn.Module):
            def forward(self, x):
                with protond.scope("attention"):
                    with protond.scope("a"):  # as a task's is called
                        return x
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.last = Inner(), nn.Linear(2, 2)
            def forward(self, x):
                with protond.scope("mine", {"n": 1}):
                    x = self.inner(x)
                return self.last(x)
        model = Outer()

        async def request(name):
            with protond.scope(name):
                for _ in range(2):
                    await asyncio.sleep(0)
                    model(x())
                    with protond.scope("reply"):
                        await asyncio.sleep(0)

        async def trains():
            net, optimizer = small()
            for _ in range(3):
                optimizer.zero_grad()
                with protond.scope("rollout"):
                    await asyncio.sleep(0)
                optimizer.step()

        async def main():
            await asyncio.gather(request("a"), request("b"))
            await trains()
        asyncio.run(main())
        assert protond.depth() <= 1, protond.depth()
    """)
    forward = {"/forward": 2, "/forward/Outer": 2, "/forward/Outer/mine": 2, "/forward/Outer/mine/inner": 2,
               "/forward/Outer/mine/inner/attention": 2, "/forward/Outer/mine/inner/attention/a": 2,
               "/forward/Outer/last": 2}
    for name in ("/a", "/b"):
        assert {k: v for k, v in got.items() if k.startswith(name)} == {name: 1, name + "/reply": 2,
                                                                        **under(name, forward)}
    assert sum(v for k, v in got.items() if k.endswith("/rollout")) == 3
    assert metrics(world)["/a/forward/Outer/mine", "n"] == (INC, 2, 2)


# --- steps --------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", KINDS)
def test_steps_without_a_loader(world, kind):
    assert names(world, kind, """
        net, optimizer = small()
        for _ in range(4):
            train(net, optimizer)
    """) == steps(4)


@pytest.mark.parametrize("kind", KINDS)
def test_inference_has_no_steps(world, kind):
    assert names(world, kind, """
        net = nn.Sequential(nn.Linear(2, 2))
        for _ in range(3):
            net(x())
        with torch.no_grad():
            net(x())
    """) == {"/forward": 4, "/forward/Sequential": 4, "/forward/Sequential/0": 4}


@pytest.mark.parametrize("kind", KINDS)
def test_epochs_with_loaders_and_validation(world, kind):
    """The first batch of all is not known to be one of training; whatever validates is no step."""
    assert names(world, kind, """
        net, optimizer = small()
        training, validation = (torch.utils.data.DataLoader(Numbers(n), batch_size=1) for n in (4, 2))
        for epoch in range(3):
            net.train()
            for _ in training:
                train(net, optimizer)
            net.eval()
            with torch.no_grad():
                for _ in validation:
                    net(x())
    """) == {**steps(12), "/step/dataloader": 3 * 4 - 1 + 2, "/dataloader": 1 + 1 + 3 + 3 * 4 + 0,
             "/forward": 6, "/forward/Sequential": 6, "/forward/Sequential/0": 6}


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_as_datasets(world, kind):
    """They compare element by element. One that is gone is not taken for another in its place."""
    assert names(world, kind, """
        net, optimizer = small()
        training, validation = torch.zeros(4, 2), torch.zeros(2, 2)
        for epoch in range(3):
            for _ in torch.utils.data.DataLoader(training, batch_size=1):
                train(net, optimizer)
            with torch.no_grad():
                for _ in torch.utils.data.DataLoader(validation, batch_size=1):
                    net(x())
        from protond import torch as ours
        assert len(ours._training) == 1
        del training, _
        import gc
        ours._steps.loader = None
        gc.collect()
        assert len(ours._training) == 0
    """) == {**steps(12), "/step/dataloader": 3 * 4 - 1 + 2, "/dataloader": 1 + 1 + 3 + 3 * 4 + 0,
             "/forward": 6, "/forward/Sequential": 6, "/forward/Sequential/0": 6}


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_several_batches(world, kind):
    assert names(world, kind, """
        net, optimizer = small()
        for _ in range(3):
            optimizer.zero_grad()
            for _ in range(4):
                net(x()).sum().backward()
            optimizer.step()
    """) == {k: v if k.count("/") == 1 or "optimizer" in k else 4 * v for k, v in steps(3).items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loader", [True, False], ids=["loader", "none"])
def test_gradients_zeroed_after_the_step(world, kind, loader):
    """They belong to the step that ends: what comes after the last one is in no further step."""
    got = names(world, kind, f"""
        net, optimizer = small()
        if {loader}:
            optimizer.zero_grad()  # as many do before the loop
        for _ in torch.utils.data.DataLoader(Numbers(4), batch_size=1) if {loader} else range(4):
            net(x()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            net(x())
    """)
    assert {k: got[k] for k in ("/step", "/step/optimizer.step", "/step/optimizer.zero_grad", "/step/forward", "/forward")} == {
        "/step": 4, "/step/optimizer.step": 4, "/step/optimizer.zero_grad": 4 + loader, "/step/forward": 4, "/forward": 1}


AHEAD = """
        def ahead(loader):  # as accelerate's
            batches = iter(loader)
            batch = next(batches)
            while True:
                try:
                    after = next(batches)
                except StopIteration:
                    yield batch
                    return
                yield batch
                batch = after
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_loader_that_is_asked_ahead(world, kind, every):
    """The last batch is computed when the loader has already said that there are no more."""
    got = names(world, kind, AHEAD + f"""
        net, optimizer = small()
        loader = torch.utils.data.DataLoader(Numbers(6), batch_size=1)
        for epoch in range(2):
            for i, _ in enumerate(ahead(loader)):
                net(x()).sum().backward()
                if i % {every} == {every} - 1:
                    optimizer.step()
                    optimizer.zero_grad()
            with torch.no_grad():
                for _ in torch.utils.data.DataLoader(Numbers(2), batch_size=1):
                    net(x())
    """)
    assert {k: got[k] for k in ("/step", "/step/optimizer.step", "/step/backward", "/step/forward", "/forward")} == {
        "/step": 12 // every, "/step/optimizer.step": 12 // every, "/step/backward": 12, "/step/forward": 12, "/forward": 4}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_that_are_left_over(world, kind):
    """They are no full step; what validates is none either."""
    got = names(world, kind, """
        net, optimizer = small()
        for epoch in range(2):
            for i, _ in enumerate(torch.utils.data.DataLoader(Numbers(5), batch_size=1)):
                net(x()).sum().backward()
                if i % 2 == 1:
                    optimizer.step()
                    optimizer.zero_grad()
            with torch.no_grad():
                for _ in torch.utils.data.DataLoader(Numbers(2), batch_size=1):
                    net(x())
    """)
    assert {k: got[k] for k in ("/step", "/step/optimizer.step", "/step/forward", "/forward")} == {
        "/step": 6, "/step/optimizer.step": 4, "/step/forward": 10, "/forward": 4}


@pytest.mark.parametrize("kind", KINDS)
def test_two_optimizers(world, kind):
    """The first one that steps leads: what follows its step belongs to the next."""
    got = names(world, kind, """
        (g, first), (d, second) = small(), small()
        for _ in range(5):
            train(g, first)
            train(d, second)
    """)
    assert got == {**{k: 10 for k in steps(1)}, "/step": 6}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", ["closure", "closure=closure"])
def test_an_optimizer_with_a_closure(world, kind, given):
    """The closure is the step's forward and backward, as Lightning gives it: they stand beside the optimizer's step, which has
    a part for each stretch of its own where the closure is called twice."""
    got = names(world, kind, f"""
        import protond
        net, plain = small()
        class Twice(torch.optim.SGD):
            def step(self, closure):
                closure()
                return closure()
        class Never(torch.optim.SGD):
            def step(self, closure=None):
                pass
        class Fails(Exception):
            pass
        def run(optimizer, fails=False):
            def closure():
                optimizer.zero_grad()
                loss = net(x()).sum()
                loss.backward()
                if fails:
                    raise Fails
                return loss
            try:
                assert optimizer.step({given}) is not None or type(optimizer) is Never
            except Fails:
                assert fails
        for optimizer in (plain, Twice(net.parameters(), lr=0.1), Never(net.parameters(), lr=0.1)):
            with protond.scope(type(optimizer).__name__):
                for i in range(3):
                    run(optimizer)
                if optimizer is plain:
                    run(optimizer, True)
                    run(optimizer)
        assert protond.depth() == 0
    """)
    assert not [k for k in got if "/optimizer.step/" in k], got
    def of(optimizer, what):
        return sum(v for k, v in got.items() if k.startswith(f"/{optimizer}/") and k.endswith("/" + what))
    assert [(of(o, "backward"), of(o, "optimizer.step")) for o in ("SGD", "Twice", "Never")] == [(5, 4), (6, 6), (0, 3)], got
    assert got["/SGD/step"] == got["/SGD/step/optimizer.step"] == 4 and got["/SGD/step/backward"] == 5, got


@pytest.mark.parametrize("kind", KINDS)
def test_an_optimizer_that_fails(world, kind):
    """As when memory runs out in the first step, and a smaller batch is tried."""
    assert names(world, kind, """
        import protond
        class Fails(torch.optim.SGD):
            steps = 0
            def step(self, closure=None):
                self.steps += 1
                if self.steps == 1:
                    raise MemoryError
        net, _ = small()
        optimizer = Fails(net.parameters(), lr=0.1)
        for _ in range(2):
            with protond.scope("retry"):
                for error in (MemoryError, None):
                    optimizer.steps = 0 if error else 1
                    try:
                        train(net, optimizer)
                    except MemoryError:
                        pass
                optimizer.steps = 0
                try:
                    optimizer.step()
                except MemoryError:
                    optimizer.step()
            assert protond.depth() == 0
        optimizer.steps = 0
        for _ in range(4):
            try:
                train(net, optimizer)
            except MemoryError:
                pass
    """) == {**{k: 4 if k != "/step" else 3 for k in steps(1)}, "/retry": 2,
             **under("/retry", {k: 4 for k in steps(1)}), "/retry/step": 2, "/retry/step/optimizer.step": 4 + 4}


@pytest.mark.parametrize("kind", KINDS)
def test_scopes_of_the_program_around_and_inside_steps(world, kind):
    assert names(world, kind, """
        import protond
        net, optimizer = small()
        for _ in range(2):
            with protond.scope("epoch"):
                for _ in range(3):
                    optimizer.zero_grad()
                    with protond.scope("augment"):
                        pass
                    net(x()).sum().backward()
                    optimizer.step()
            with protond.scope("save"):
                pass
        assert protond.depth() == 0
    """) == {"/epoch": 2, **steps(6, "/epoch/step"), "/epoch/step/augment": 6, "/save": 2}


@pytest.mark.parametrize("name", ["step", "train_step"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_names_its_steps_itself(world, kind, name):
    """Its own `step` is the step; a scope of another name has one inside."""
    got = names(world, kind, f"""
        import protond
        net, optimizer = small()
        for _ in range(4):
            with protond.scope("{name}"):
                train(net, optimizer)
            assert protond.depth() == 0
        for _ in range(2):
            protond.enter_scope("{name}")
            train(net, optimizer)
            protond.exit_scope("{name}")
            assert protond.depth() == 0
    """)
    assert got == (steps(6) if name == "step" else {"/train_step": 6, **steps(6, "/train_step/step")})


@pytest.mark.parametrize("kind", KINDS)
def test_training_on_another_thread(world, kind):
    assert names(world, kind, """
        import threading, protond
        def loop():
            net, optimizer = small()
            for _ in range(3):
                train(net, optimizer)
            seen.append(protond.depth())
        seen = []
        for _ in range(2):
            t = threading.Thread(target=loop)
            t.start(), t.join()
        assert seen == [1, 1] and protond.depth() == 0
        net, optimizer = small()
        for _ in range(2):
            train(net, optimizer)
    """) == steps(8)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_of_autograd_begin_no_steps(world, kind):
    """What is computed anew in the backward (checkpoints) runs on a thread that autograd made, and no optimizer."""
    assert names(world, kind, """
        import ctypes, protond
        libc = ctypes.CDLL(None)

        def on_a_thread_of_c(function):
            @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
            def begin(unused):
                function()
            thread = ctypes.c_ulong()
            assert libc.pthread_create(ctypes.byref(thread), None, begin, None) == 0
            assert libc.pthread_join(thread, None) == 0

        def recompute():
            net(x()), net(x())
            seen.append(protond.depth())
        net, optimizer = small()
        seen = []
        for _ in range(2):
            optimizer.zero_grad()
            net(x())
            with protond.scope("recompute"):
                on_a_thread_of_c(recompute)
            optimizer.step()
        assert seen == [0, 0], seen
    """) == {**steps(2, without=("backward",)), "/step/recompute": 2,
             **under("/step/recompute", {"/forward": 4, "/forward/Sequential": 4, "/forward/Sequential/0": 4})}


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_the_program_says(world, kind):
    assert names(world, kind, """
        import protond.torch
        net, optimizer = small()
        for _ in range(3):
            protond.torch.step()
            with protond.torch.region("part"):
                train(net, optimizer)
                train(net, optimizer)
    """) == {"/step": 3, "/step/part": 3, **{k: 6 for k in steps(1, "/step/part") if k != "/step/part"}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loader_whose_length_is_not_known(world, kind):
    got = names(world, kind, """
        net, optimizer = small()
        loader = torch.utils.data.DataLoader(Stream(), batch_size=1)
        for _ in range(2):
            for _ in loader:
                train(net, optimizer)
    """)
    assert {k: got[k] for k in steps(6) if k != "/step"} == {k: 6 for k in steps(6) if k != "/step"}
    assert got["/step"] in (6, 7, 8)  # a batch is asked for before it is known that there is none
    assert got["/dataloader"] + got["/step/dataloader"] == 2 * (1 + 3 + 1)


def test_loaders_and_optimizers_that_are_not_like_others(world):
    assert names(world, "standin", """
        class Sampler:
            def __len__(self):
                raise NotImplementedError("not known")
        class Equal(Numbers):
            __hash__ = None
            def __eq__(self, other):
                raise KeyError("not to be compared")
        net, optimizer = small()
        loader = torch.utils.data.DataLoader(Equal(3), batch_size=1)
        loader.sampler = Sampler()
        listed = torch.utils.data.DataLoader([1.0, 2.0], batch_size=1)
        for loader in loader, listed:
            for _ in range(2):
                for _ in loader:
                    train(net, optimizer)
    """, standin="")["/step/optimizer.step"] == 10


@pytest.mark.skipif(not HAVE_TORCH, reason="this Python has no torch")
def test_a_loader_with_workers(world):
    """They are forked in the middle of a step, and run modules themselves."""
    got = names(world, "torch", """
        class Modules(Numbers):
            def __getitem__(self, i):
                with torch.no_grad():
                    return inner(torch.zeros(2)).sum().item()
        inner = nn.Linear(2, 2)
        net, optimizer = small()
        loader = torch.utils.data.DataLoader(Modules(4), batch_size=1, num_workers=2)
        for _ in range(2):
            for _ in loader:
                train(net, optimizer)
    """)
    assert got["/step"] == 8 and got["/step/optimizer.step"] == 8


# --- the rest -----------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", KINDS)
def test_gradients_asked_for(world, kind):
    assert names(world, kind, """
        w = torch.zeros(2, requires_grad=True)
        loss = (w * w).sum() if "standin" not in torch.__version__ else w
        torch.autograd.grad(loss, [w])
        loss = (w * w).sum() if "standin" not in torch.__version__ else w
        torch.autograd.backward(loss)
        try:
            torch.autograd.grad()
        except TypeError:
            pass
    """) == {"/backward": 3}


def test_collectives(world):
    assert names(world, "standin", """
        import torch.distributed as dist
        from torch.distributed import distributed_c10d
        t = dist.all_reduce(x(), op=None)
        distributed_c10d.all_reduce(t)
        dist.broadcast(t, 0)
        assert len(dist.batch_isend_irecv([dist.P2POp(dist.isend, t, 1), dist.P2POp(dist.irecv, t, 1)])) == 2
        try:
            dist.P2POp(dist.broadcast, t, 1)
        except ValueError:
            pass
    """) == {"/dist.all_reduce": 2, "/dist.broadcast": 1, "/dist.isend": 1, "/dist.irecv": 1}


def test_the_last_step_ends_before_ranks_part(world):
    assert names(world, "standin", """
        import torch.distributed as dist
        net, optimizer = small()
        for _ in range(2):
            train(net, optimizer)
        dist.destroy_process_group()
    """) == {**steps(2), "/dist.broadcast": 1}


def test_graphs(world):
    assert names(world, "standin", """
        graph = torch.cuda.CUDAGraph()
        for _ in range(3):
            graph.replay()
    """) == {"/CUDAGraph.replay": 3}


def test_nothing_is_named_while_it_is_compiled(world):
    """What Dynamo traces through a wrapper is torch's own function. Modules have another way: it goes around them."""
    assert names(world, "standin", """
        net, optimizer = small()
        torch.compiler.compiling = True
        optimizer.zero_grad()
        torch.autograd.backward(x())
        torch.distributed.all_reduce(x())
        torch.cuda.CUDAGraph().replay()
        optimizer.step()
    """) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_installed_twice_and_after_torch_was_imported(world, kind):
    assert names(world, kind, """
        net, optimizer = small()
        train(net, optimizer)
        import protond, protond.torch
        for _ in range(3):
            protond.torch.install()
            protond.start("own", hook="torch", backend="none")
            train(net, optimizer)
        protond.finalize(output_format=None)
    """, hook="none") == steps(3)


@pytest.mark.parametrize("kind", KINDS)
def test_installed_before_torch_is_imported(world, kind):
    r, got = record(world, """
        import importlib.util, sys, protond.torch
        protond.torch.install()
        assert "torch" not in sys.modules
        assert importlib.util.find_spec("torch") is not None and "torch" not in sys.modules
        import torch
        torch.nn.Linear(2, 2)(torch.zeros(1, 2))
    """, hook="none", paths=() if kind == "torch" else (STANDIN,))
    assert got == {"/forward": 1, "/forward/Linear": 1} and "protond: " not in r.stderr


def test_a_torch_profiler_that_cannot_be_prepared(world):
    """The GPU is ours again, unless another profile has it: that one's end gives it back."""
    record(world, """
        import sys, types
        profiler = types.ModuleType("torch.autograd.profiler")
        def prepare(config, activities):
            if config is None:
                raise RuntimeError("no kineto")
        profiler.ProfilerActivity = types.SimpleNamespace(CUDA=1)
        profiler._prepare_profiler, profiler._disable_profiler = prepare, lambda: None
        sys.modules["torch.autograd.profiler"] = profiler
        import protond.torch
        log, native = [], protond.torch._native
        class Native:
            def __getattr__(self, name):
                if name.startswith("gpu_"):
                    log.append(name)
                return getattr(native, name)
        protond.torch._native = Native()
        protond.torch.install()
        import torch
        def fails():
            try:
                profiler._prepare_profiler(None, {1})
            except RuntimeError as e:
                return str(e) == "no kineto"
        assert fails() and fails() and log == ["gpu_pause", "gpu_resume"] * 2, log
        log.clear()
        profiler._prepare_profiler("config", {1})
        assert fails() and log == ["gpu_pause"], log
        profiler._disable_profiler()
        assert log == ["gpu_pause", "gpu_resume"], log
    """, hook="none", paths=(STANDIN,))


def test_what_cannot_be_wrapped_leaves_the_rest(world):
    r, got = record(world, """
        import torch
        torch.nn.Linear(2, 2)(torch.zeros(1, 2))
        torch.cuda.CUDAGraph().replay()
    """, hook="torch", paths=(STANDIN,), env={"STANDIN": "bare"})
    assert got == {"/forward": 1, "/forward/Linear": 1, "/CUDAGraph.replay": 1}
    words = [line for line in r.stderr.splitlines() if line.startswith("protond: ")]
    assert len(words) == 1 and "optimizers are not named" in words[0], words


@pytest.mark.parametrize("hook", ["none", "torch"])
def test_wrong_options_do_not_stop_the_import_of_torch(world, hook):
    status, out, err = said(world, sys.executable, job(world, """
        import protond.torch
        protond.torch.install()
        import torch
        print(torch.zeros(1).sum().item())
    """), run=True, hook=hook, env=python_env(world, STANDIN, PROTOND_SAMPLE_RATE="much"))
    assert (status, out) == (0, "0.0\n") and "PROTOND_SAMPLE_RATE" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
def test_every_python_has_the_same_names(world, python):
    _, got = record(world, textwrap.dedent(MODELS) + textwrap.dedent("""
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            train(net, optimizer)
    """), python, hook="torch", paths=(STANDIN,))
    assert got == {"/step": 3, "/step/optimizer.zero_grad": 3, "/step/backward": 3, "/step/optimizer.step": 3,
                   **under("/step", net(3))}
