/* SPDX-License-Identifier: MIT. protonctl_table.c: the commands of protonctl and their options,
 * once: parsing, help, completion and the man page read this. */
#include "protonctl.h"

#include "formats.h"

/* clang-format off */
const struct option_def common_options[] = {
        {'h', "help",     NULL, "what this command does, with examples", NULL},
        {0,   "json",     NULL, "one JSON envelope on standard output; of `run`, the last line of standard error", NULL},
        {0,   "no-color", NULL, "plain text; so does NO_COLOR", NULL},
        {0,   NULL,       NULL, NULL, NULL},
};

#define SESSION_OPTIONS                                                                                     \
        {'b', "backend", "BACKEND", "what records the GPU: cupti (default) or none", "cupti none"},         \
        {'c', "context", "CONTEXT", "where a launch stands: shadow (scopes, default) or python (stack)", "shadow python"}, \
        {'d', "data",    "DATA",    "what is kept: tree (default), trace or both", "tree trace both"},      \
        {'k', "hook",    "HOOK",    "names from a framework: torch (default of run), triton or none", "triton torch none"}, \
        {'m', "mode",    "MODE",    "mode of the backend", NULL},                                           \
        {0,   "cpu",     "on|off",  "time of scopes on the CPU (default on)", "on off"}

static const struct option_def run_options[] = {
        {'n', "name",   "NAME", "name of the session; %h host, %p pid, %q{VAR} variable (default: the program's)", NULL},
        {'o', "output", "FILE", "also write FILE (" FORMAT_FILES "); takes %h %p %q{VAR}", NULL},
        {0,   "force",  NULL,   "overwrite the output file", NULL},
        SESSION_OPTIONS,
        {0,   "as-proton", NULL, "`import triton.profiler` and `import proton` give protond", NULL},
        {'q', "quiet",  NULL,   "do not print the tree at the end", NULL},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def start_options[] = {
        {'p', "pid",   "PID",  "this job", NULL},
        {'a', "all",   NULL,   "all jobs of yours, also those to come, from a few milliseconds after they begin", NULL},
        {0,   "match", "GLOB", "jobs of yours whose command line matches, also those to come", NULL},
        SESSION_OPTIONS,
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def finalize_options[] = {
        {'o', "output",  "FILE",    "also write FILE (" FORMAT_FILES ")", NULL},
        {0,   "force",   NULL,      "overwrite the output file", NULL},
        {'t', "timeout", "SECONDS", "how long to wait for launches in flight (default 5)", NULL},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def jobs_options[] = {
        {'a', "all", NULL, "also jobs that have ended", NULL},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def sessions_options[] = {
        {'n', "lines", "N", "at most the N newest (default 40; 0: all)", NULL},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def top_options[] = {
        {'i', "interval", "SECONDS", "between two looks (default 1)", NULL},
        {'n', "lines",    "N",       "rows (default: what the terminal has)", NULL},
        {'1', "once",     NULL,      "one table of everything so far, then end", NULL},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def env_options[] = {
        {'s', "shell", "SHELL", "sh, csh or json (default: sh)", "sh csh json"},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def delete_options[] = {
        {'f', "force", NULL, "also what is not finalized: it records no more, and is lost", NULL},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def prune_options[] = {
        {0, "older-than", "AGE",  "sessions that ended longer ago: 30d, 12h, 90m", NULL},
        {0, "max-size",   "SIZE", "then the oldest, until the database is below: 2G, 500M", NULL},
        {0, NULL, NULL, NULL, NULL},
};
static const struct option_def no_options[] = {{0, NULL, NULL, NULL, NULL}};

const struct command commands[] = {
        {"run", NULL, cmd_run, 1, -1, "[--] CMD...", "record one run of a program and print its tree",
                "The program's output is its own; what protonctl says goes to standard error, with --json as its last\n"
                "line: `protonctl run --json -- CMD 2>&1 >/dev/null | tail -n 1`. The exit status is the program's\n"
                "(128+N on a signal); 125: protonctl failed before it ran, 126: it cannot be run, 127: it is not there.\n"
                "A private daemon is started when none runs. `run script.py` and `run pytest ...` need no python in\n"
                "front. SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on; Ctrl-C reaches the program from the\n"
                "terminal. The tree is of the 100 nodes that took the most; what it leaves out is counted. Behind srun,\n"
                "mpirun or torchrun the runs of one launch on a node are one session, which the last of them stores,\n"
                "unless -n gives each a name of its own.\n",
                "protonctl run -- python train.py\n"
                "mpirun -np 8 protonctl run -- ./train\n"
                "protonctl run -n 'rank%q{RANK}' -o 'rank%q{RANK}.hatchet' -- ./train --steps 100\n"
                "protonctl run -b none pytest tests/\n",
                run_options, true, 'c'},
        {"start", NULL, cmd_start, 1, 1, "NAME", "begin to record running jobs",
                "Which jobs: exactly one of --pid, --all, --match. A job can be recorded when it links libprotond, or\n"
                "was started under `protonctl run` or with the variables of `protonctl env`.\n",
                "protonctl start slow --pid 4242\n"
                "protonctl start night --match '*train.py*'\n",
                start_options, false, 0},
        {"stop", "deactivate", cmd_stop, 1, 1, "SESSION", "record no more for now; `activate` goes on",
                NULL, "protonctl stop slow\n", no_options, false, 's'},
        {"activate", NULL, cmd_activate, 1, 1, "SESSION", "go on with a stopped session",
                NULL, "protonctl activate slow\n", no_options, false, 's'},
        {"finalize", NULL, cmd_finalize, 1, 1, "SESSION", "end a session and store it",
                NULL, "protonctl finalize slow\nprotonctl finalize slow -o slow.hatchet\n",
                finalize_options, false, 's'},
        {"pause", NULL, cmd_pause, 0, 1, "[PID]", "let go of CUPTI, for another tool",
                "Without a pid: all jobs of yours.\n", "protonctl pause 4242\n", no_options, false, 'j'},
        {"resume", NULL, cmd_resume, 0, 1, "[PID]", "take CUPTI again after `pause`",
                NULL, "protonctl resume 4242\n", no_options, false, 'j'},
        {"sessions", NULL, cmd_sessions, 0, 0, "", "list what has been and is recorded",
                NULL, "protonctl sessions\nprotonctl sessions --json | jq '.data.sessions[0]'\n",
                sessions_options, false, 0},
        {"jobs", NULL, cmd_jobs, 0, 0, "", "list the jobs that protond sees",
                NULL, "protonctl jobs\nprotonctl jobs --all\n", jobs_options, false, 0},
        {"where", NULL, cmd_where, 0, 1, "[JOB]", "what each rank and thread is in, and since when",
                "JOB is a pid or a session. Shows open scopes, the oldest launches in flight and the kernel that is\n"
                "running; of a job that has ended, what it left. Makes no call into the job or the GPU.\n",
                "protonctl where 4242\nprotonctl where @last\n", no_options, false, 'b'},
        {"top", NULL, cmd_top, 0, 1, "[SESSION]", "what takes the time now",
                NULL, "protonctl top\nprotonctl top --once @last\n", top_options, false, 's'},
        {"status", NULL, cmd_status, 0, 0, "", "how the daemon is and what it costs",
                NULL, "protonctl status\n", no_options, false, 0},
        {"env", NULL, cmd_env, 0, 0, "", "the variables that turn a shell, a container or a batch job on",
                NULL, "eval \"$(protonctl env)\"\nprotonctl env --shell json\n", env_options, false, 0},
        {"backends", NULL, cmd_backends, 0, 0, "", "what can record here",
                NULL, "protonctl backends\n", no_options, false, 0},
        {"doctor", NULL, cmd_doctor, 0, 0, "", "look for what is wrong, and say how to mend it",
                NULL, "protonctl doctor\n", no_options, false, 0},
        {"delete", NULL, cmd_delete, 1, -1, "SESSION...", "remove sessions; of one name, the newest",
                "All are tried: the exit status is not 0 when one could not be deleted, and --json lists under `failed`\n"
                "which, and why.\n",
                "protonctl delete slow\nprotonctl delete 7 8 9\n", delete_options, false, 's'},
        {"prune", NULL, cmd_prune, 0, 0, "", "remove old sessions",
                NULL, "protonctl prune --older-than 30d\nprotonctl prune --max-size 2G\n", prune_options, false, 0},
        {"shutdown", NULL, cmd_shutdown, 0, 0, "", "end the daemon; jobs go on, and are found again by the next",
                NULL, "protonctl shutdown\n", no_options, false, 0},
        {"version", NULL, cmd_version, 0, 0, "", "versions of this tool and of the daemon",
                NULL, "protonctl version\n", no_options, false, 0},
        {"completion", NULL, cmd_completion, 1, 1, "bash|zsh|fish", "a script that completes the words of protonctl and protonview",
                NULL, "source <(protonctl completion bash)\nprotonctl completion fish | source\n",
                no_options, false, 'w'},
        {"help", NULL, cmd_help, 0, 1, "[COMMAND|options]", "this list, a command's words, or what can be set",
                NULL, "protonctl help run\n", no_options, false, 'h'},
        /* Not listed: for the build and for completion. */
        {"__man", "--man", cmd_man, 0, 0, "", NULL, NULL, "", no_options, false, 0},
        {"__complete", NULL, cmd_complete, 1, -1, "-- WORD...", NULL, NULL, "", no_options, true, 0},
};
/* clang-format on */

const size_t n_commands = sizeof(commands) / sizeof(commands[0]);
