# SPDX-License-Identifier: MIT. Stand-in.
import functools
import os

if os.environ.get("STANDIN") != "old":
    _pre_hooks, _post_hooks = [], []

    def register_optimizer_step_pre_hook(hook):
        _pre_hooks.append(hook)

    def register_optimizer_step_post_hook(hook):
        _post_hooks.append(hook)


class Optimizer:
    def __init__(self, params, lr=0.1):
        self.param_groups = [{"params": list(params), "lr": lr}]
        if os.environ.get("STANDIN") != "old" and not getattr(type(self).step, "hooked", False):
            type(self).step = self.profile_hook_step(type(self).step)
            type(self).step.hooked = True

    @staticmethod
    def profile_hook_step(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            for hook in _pre_hooks:
                result = hook(args[0], args, kwargs)
                if result is not None:
                    args, kwargs = result
            out = function(*args, **kwargs)
            for hook in _post_hooks:
                hook(args[0], args, kwargs)
            return out
        return wrapper

    def zero_grad(self, set_to_none=True):
        return None

    def step(self, closure=None):
        raise NotImplementedError
