/* SPDX-License-Identifier: MIT. doorbell.c: where libprotond's state lies. */
#include "doorbell.h"

union pd_page pd_page __attribute__((aligned(4096)));
__thread struct pd_thread *pd_self __attribute__((tls_model("initial-exec")));
struct pd pd = {.bell = {-1, -1, 0, 0}, .export = {.fd = -1}};
