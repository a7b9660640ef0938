# SPDX-License-Identifier: MIT. Stand-in.


class CUDAGraph:
    def replay(self):
        return None
