# SPDX-License-Identifier: MIT. One answer: both tools read the database of the daemon that runs, say which session a word
# stands for, and list the same ones.
import os
import subprocess

import pytest

from conftest import BUILD, ROOT, WAIT, needs_another_user, needs_mounts, until

DEMO = str(BUILD / "bin/protond-demo")
NOBODY = 65534


def unnamed(world):
    """The tools' environment of a user who names no database; the usual one is below the home."""
    world.env = {**world.env, "PROTOND_DB": ""}
    return world.home / ".local/share/protond/protond.db"


def serve(world):
    """A service's daemon, whom other users may ask."""
    world.home.chmod(0o755)
    world.home.parent.chmod(0o755)
    world.dir.chmod(0o755)
    with open(world.home / "protond.log", "ab") as log:
        world.daemon = subprocess.Popen([str(BUILD / "bin/protond"), "--foreground"], stdout=log, stderr=log,
                                        env={**world.env, "PROTOND_AUTO_SESSION": "off"})
    until("it answers", world.answers)


def record(world, name, *scopes):
    """A session with these scopes, by a job that is gone then."""
    world.ctl("start", name, "--all")
    job = world.job()
    for scope in scopes:
        job.say(f"repeat 1 {scope}")
    world.ctl("finalize", name)
    job.quit()


def elsewhere(world):
    """Session 1 is `usual` in the usual database, and `other` in that of the daemon that runs."""
    unnamed(world)
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "usual", "of_usual")
    world.stop()
    other = world.home / "other.db"
    world.start(PROTOND_AUTO_SESSION="off", PROTOND_DB=other)
    record(world, "other", "of_other")
    return other


@needs_mounts
def test_a_database_in_the_second_place_is_said_to_be_it(world):
    usual = unnamed(world)
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "old", "of_old")
    world.stop()
    kept = usual.rename(world.home / "kept.db")
    for tool, *words in (("protonview", "sessions"), ("protonctl", "sessions"), ("protonview", "tree", "old")):
        r = subprocess.run(["unshare", *([] if ROOT else ["-r"]), "-m", "sh", "-ec", """
            mount -t tmpfs none /var/tmp
            mkdir -m 700 /var/tmp/protond.$(id -u)
            cp "$0" /var/tmp/protond.$(id -u)/protond.db
            exec "$@\"""", kept, BUILD / "bin" / tool, *words], env=world.env, capture_output=True, text=True, timeout=WAIT)
        assert "old" in r.stdout and r.stderr.endswith(f"/protond.db is read; there is no database at {usual}\n"), r


def test_the_running_daemons_database_is_read(world):
    other = elsewhere(world)
    words = f"protonview: sessions are read from {other}, the running protond's database\n"
    for ref in ("1", "@last", "other"):
        shown = world.view("tree", ref)
        assert "of_other" in shown.stdout and words in shown.stderr, ref
    listed = world.view("sessions")
    assert " other " in listed.stdout and " usual " not in listed.stdout and listed.stderr == words
    controlled = world.ctl("sessions")
    assert (controlled.stdout, controlled.stderr) == (listed.stdout, words.replace("protonview:", "protonctl:"))
    shown = world.view("tree", "usual")
    assert "of_usual" in shown.stdout, "the daemon has none of that name"
    assert f"protond.db is read, not the running protond's database {other}\n" in shown.stderr
    shown = world.view("tree", "1", env={"PROTOND_DB": str(world.home / ".local/share/protond/protond.db")})
    assert "of_usual" in shown.stdout and "PROTOND_DB is read" in shown.stderr, "who names one reads that"
    listed = [tool("sessions", env={"PROTOND_DB": str(world.home / ".local/share/protond/protond.db")}).stdout
              for tool in (world.ctl, world.view)]
    assert " usual " in listed[0] and listed[0] == listed[1]


def test_the_usual_database_is_read_without_a_word(world):
    unnamed(world)
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "usual", "of_usual")
    for shown in (world.view("tree", "usual"), world.view("sessions"), world.ctl("sessions")):
        assert "usual" in shown.stdout and shown.stderr == ""


@pytest.mark.parametrize("serves", [True, False], ids=["daemon", "no_daemon"])
def test_a_configured_database_is_the_usual_one(world, serves):
    usual, other = unnamed(world), world.home / "other.db"
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "usual", "of_usual")
    world.stop()
    (world.home / ".config").mkdir()
    (world.home / ".config/protond.conf").write_text(f"# db = /x\n db={usual}\n\tdb = {other} \nflight_s = 1\n")
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "other", "of_other")
    if not serves:
        world.stop()
    for shown in (world.view("sessions"), world.ctl("sessions")):
        assert " other " in shown.stdout and " usual " not in shown.stdout and shown.stderr == ""
    shown = world.view("tree", "@last")
    assert "of_other" in shown.stdout and "read" not in shown.stderr
    assert world.ctl("tag", "other", "x").stdout == "session 1 'other' has the tags: x\n"


def test_sessions_without_a_daemon(world):
    world.start(PROTOND_AUTO_SESSION="off")
    assert world.ctl("sessions").stdout.startswith("no session yet")
    record(world, "left", "x")
    before = world.ctl("sessions").stdout, world.ctl_json("sessions")
    world.stop()
    assert (world.ctl("sessions").stdout, world.ctl_json("sessions")) == before
    r = world.ctl("sessions", check=False, env={"PROTOND_DB": str(world.home / "none.db")})
    assert r.returncode == 1 and "nothing has been recorded yet" in r.stderr


def names(world, tool, *options):
    shown = tool("sessions", *options)
    rows = [line.split() for line in shown.stdout.splitlines()[1:]]
    return [row[1] for row in rows if row[0].isdigit()], shown.stderr


def test_which_sessions_are_listed(world):
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "train-1", "x")
    record(world, "train-2", "x")
    record(world, "nothing")
    world.ctl("start", "night", "--all")
    for tool in (world.ctl, world.view):
        got, said = names(world, tool)
        assert got == ["night", "train-2", "train-1"] and "1 session with nothing in it is not shown" in said
        assert names(world, tool, "--all") == (["night", "nothing", "train-2", "train-1"], "")
        assert names(world, tool, "--name", "train*", "-n", "1") == (
            ["train-2"], f"{tool.__name__.replace('ctl', 'protonctl').replace('view', 'protonview')}: "
            "1 older session is not shown; -n 0 shows all\n")
        assert names(world, tool, "--state", "active")[0] == ["night"]
        assert names(world, tool, "--user", os.getuid(), "--name", "night")[0] == ["night"]
        assert names(world, tool, "--user", "4000000000")[0] == []
        assert names(world, tool, "--since", "1h")[0] == ["night", "train-2", "train-1"]
        got, said = names(world, tool, "--name", "nosuch")
        assert got == [] and "no session matches" in said
        for wrong in (["--user", "no such"], ["--since", "2"], ["--since", "99999999999999999999d"], ["--state", "dead"]):
            r = tool("sessions", *wrong, check=False)
            assert r.returncode == 2 and wrong[0] in r.stderr, r


@needs_another_user
def test_root_sees_whose_they_are(world):
    serve(world)
    record(world, "mine", "x")
    assert " USER " not in world.ctl("sessions").stdout
    job = world.job(user=NOBODY, group=NOBODY, extra_groups=[])
    job.say("start theirs")
    for tool in (world.ctl, world.view):
        shown = tool("sessions").stdout.splitlines()
        at = shown[0].index("USER")
        assert [line[at:].split()[0] for line in shown[1:]] == ["nobody", "root"]
        assert names(world, tool, "--user", "nobody")[0] == ["theirs"]


def stands_for(shown, tool="protonview"):
    """The line that says which session a word stands for."""
    return [line for line in shown.stderr.splitlines() if line.startswith(f"{tool}: @")]


def test_last_is_what_has_something_in_it(world):
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "before", "b")
    record(world, "train", "x")
    record(world, "nothing")
    world.ctl("run", "-n", "failed", "--", "/nonexistent/program", check=False)

    def seen():
        for ref, want in (("@last", "train"), ("@-1", "before")):
            shown = world.view("tree", ref)
            assert shown.stdout.startswith(want + " ")
            said = stands_for(shown)
            assert len(said) == 1 and said[0].startswith(f"protonview: {ref} is ") and f"'{want}', ended " in said[0]
    seen()
    shown = world.ctl("where", "@last", check=False)
    assert stands_for(shown, "protonctl")[0].startswith("protonctl: @last is 2 'train', ended ")
    for more in ("sql", "@last", "SELECT 1"), ("export", "@last", "-o", "x.json"), ("diff", "@-1", "@last"):
        said = stands_for(world.view(*more, check=False))
        assert len(said) == sum(word[0] == "@" for word in more), "once each, however often it is opened"
    assert stands_for(world.view("tree", "train")) == [], "a name says it"
    world.ctl("start", "night", "--all")
    assert "'night', active, began " in stands_for(world.view("tree", "@last"))[0], "what goes on may have something yet"
    world.ctl("delete", "--force", "night")
    world.stop()
    seen()


def test_last_where_all_are_empty(world):
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "nothing")
    for _ in range(2):
        assert stands_for(world.view("tree", "@last"))[0].endswith(", with nothing in it")
        if world.daemon:
            world.stop()


def test_selectors(world):
    """The same with a daemon and without one; by both tools."""
    world.start()
    job = world.job()
    job.say("repeat 1 x")
    until("its automatic session is stored", lambda: world.sql("SELECT 1 FROM session WHERE source = 'auto'"))
    record(world, "one", "y")
    world.ctl("start", "two", "--pid", job.pid)
    job.say("repeat 1 z")
    world.ctl("finalize", "two")
    [(automatic,)] = world.sql(
        "SELECT s.id FROM session s JOIN member m ON m.session = s.id JOIN process p ON p.id = m.process"
        " WHERE s.source = 'auto' AND p.pid = ?", job.pid)

    def seen():
        auto = stands_for(world.view("tree", "@auto"))[0]
        assert auto.startswith("protonview: @auto is ") and " (automatic), " in auto
        of_job = world.view("tree", f"@job:{job.pid}")
        assert of_job.stdout.startswith("two ") and f": @job:{job.pid} is " in of_job.stderr
        assert world.view("tree", f"@job:{job.pid + 1}", check=False).returncode == 1
        assert world.view("tree", "@last").stdout.startswith("two "), "somebody asked for it"
        for wrong in ("@", "@lost", "@job:", "@job:x", "@tag:", "@tag:a b", "@-x"):
            r = world.view("tree", wrong, check=False)
            assert r.returncode == 2 and "@auto for the newest automatic one, @job:PID or @tag:NAME" in r.stderr, r
    seen()
    assert f"protonctl: @job:{job.pid} is " in world.ctl("where", f"@job:{job.pid}", check=False).stderr
    job.quit()
    until("it is over", lambda: world.sql("SELECT 1 FROM session WHERE id = ? AND state = 'finalized'", automatic))
    seen()
    world.stop()
    seen()


def test_messages_name_the_session(world):
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "night", "--all")
    job = world.job()
    job.say("repeat 1 x")
    for verb, words in (("stop", "is stopped; `protonctl activate 1` resumes it, `protonctl finalize 1` ends it\n"),
                        ("activate", "records again"), ("finalize", "is stored: 0 launches")):
        shown = world.ctl(verb, "@last")
        assert shown.stdout.startswith(f"session 1 'night' {words}") and "@last is 1 'night', " in shown.stderr
    shown = world.ctl("delete", "@last")
    assert shown.stdout == "night, id 1, is deleted\n" and "@last is 1 'night', ended " in shown.stderr


def labels(world, name):
    """As the daemon has them, and as the file does."""
    [s] = [s for s in world.ctl_json("sessions")["sessions"] if s["name"] == name]
    return s["tags"], s["note"]


def test_tags_notes_and_names(world):
    """Of one that goes on, and of one that is stored; they are there after the daemon's end, too."""
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "stored", "x")
    world.ctl("start", "live", "--all")
    job = world.job()
    job.say("repeat 1 y")
    for name in ("stored", "live"):
        shown = world.ctl("tag", name, "base", "h200")
        assert shown.stdout.endswith(f" '{name}' has the tags: base h200\n")
        world.ctl("tag", name, "base")
        world.ctl("note", name, "größe 64; 'new' loader")
        assert world.ctl("tag", "--remove", name, "h200", "nosuch").stdout.endswith("has the tags: base\n")
        assert labels(world, name) == ("base", "größe 64; 'new' loader")
    world.ctl("tag", "stored", "older")
    for tool in (world.ctl, world.view):
        assert names(world, tool, "--tag", "base")[0] == ["live", "stored"]
        assert names(world, tool, "--tag", "old")[0] == []
        assert "      tags base; größe 64; 'new' loader\n" in tool("sessions").stdout
    assert world.view("tree", "@tag:older").stdout.startswith("stored ")
    for verb in ("tree", "flat"):
        assert "\ntags: base\nnoted: größe 64; 'new' loader\n" in world.view(verb, "live").stdout
    r = world.ctl("top", "-b", "-c", "2", "--interval", "0.1", "@tag:base")
    assert r.stderr.count("protonctl: @tag:base is 2 'live', active") == 1
    assert "@tag:base is 2 'renamed', active" in world.ctl("rename", "@tag:base", "renamed").stderr
    assert world.ctl("rename", "stored", "kept").stdout == "session 1 'kept' has its new name\n"
    r = world.ctl("tag", "nosuch", "x", check=False)
    assert r.returncode == 1 and "no session 'nosuch'" in r.stderr

    def seen():
        assert (labels(world, "renamed"), labels(world, "kept")) == (
            ("base", "größe 64; 'new' loader"), ("base older", "größe 64; 'new' loader"))
    seen()
    world.daemon.kill()  # the journal has what the database may not have yet
    world.daemon.wait()
    world.start(PROTOND_AUTO_SESSION="off")
    seen()
    world.ctl("finalize", "renamed")
    seen()
    world.ctl("note", "kept", "--remove")
    assert labels(world, "kept") == ("base older", "")
    world.stop()
    assert labels(world, "kept") == ("base older", "") and labels(world, "renamed")[0] == "base"
    assert world.view("tree", "@tag:older").stdout.startswith("kept ")


def test_labels_are_bounded_and_checked(world):
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "stored", "x")
    world.ctl("start", "one", "--all")
    world.ctl("start", "two", "--all")
    for name in ("stored", "one"):
        world.ctl("tag", name, *(f"{i:031}" for i in range(8)))
        r = world.ctl("tag", name, "more", check=False)
        assert r.returncode == 1 and "more than 255 bytes together; protonctl tag --remove takes some away" in r.stderr
        for verb, text in (("tag", "a b"), ("tag", "x" * 32), ("tag", "\x1b[2J"), ("note", "a\nb"), ("note", "x" * 128),
                           ("rename", "@last"), ("rename", "a\x7f")):
            assert world.ctl(verb, name, text, check=False).returncode == 2, (verb, text)
        assert labels(world, name) == (" ".join(f"{i:031}" for i in range(8)), "")
    r = world.ctl("rename", "one", "two", check=False)
    assert r.returncode == 1 and "a session named 'two' is live already" in r.stderr
    world.ctl("rename", "stored", "two")  # of what is over, a name may be another's
    world.ctl("note", "one", "right \u202e left \u009b2J")
    for tool in (world.ctl, world.view):
        shown = tool("sessions").stdout
        assert "\u202e" not in shown and "\u009b" not in shown and "right " in shown


@needs_another_user
def test_labels_are_their_owners(world):
    serve(world)
    record(world, "mine", "x")
    job = world.job(user=NOBODY, group=NOBODY, extra_groups=[])
    job.say("start theirs")
    stranger = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": {"PROTOND_DB": ""}}
    for ref in ("mine", "1"):
        for verb in ("tag", "note", "rename"):
            r = world.ctl(verb, ref, "x", check=False, **stranger)
            assert r.returncode == 1 and f"no session '{ref}'" in r.stderr, r
    world.ctl("tag", "theirs", "own", **stranger)
    assert labels(world, "theirs") == ("own", "") and labels(world, "mine") == ("", "")
    world.ctl("tag", "theirs", "roots")
    assert labels(world, "theirs") == ("own roots", "")


def test_what_is_stored_is_changed_without_a_daemon(world):
    """One is started for that, for the file that `sessions` lists."""
    world.start(PROTOND_AUTO_SESSION="off")
    for name in "abcd":
        record(world, name, "x")
    world.stop()
    shown = world.ctl("tag", "a", "base")
    assert f"protonctl: no protond ran; one was started for {world.db}, and ends by itself\n" in shown.stderr
    world.ctl("shutdown")
    for args, words in ((("note", "b", "text"), "has the note: text"), (("rename", "b", "e"), "'e' has its new name"),
                        (("delete", "c"), "c, id 3, is deleted"), (("prune", "--keep", "2", "--dry-run"), "a, id 1\n")):
        shown = world.ctl(*args)
        assert words in shown.stdout and "no protond ran; " in shown.stderr, args
        world.ctl("shutdown")
    assert [(s["name"], s["tags"], s["note"]) for s in world.ctl_json("sessions")["sessions"]] == [
        ("d", "", ""), ("e", "", "text"), ("a", "base", "")]
    none = {"PROTOND_DB": str(world.home / "none.db")}
    r = world.ctl("delete", "a", check=False, env=none)
    assert r.returncode == 3 and "no protond runs" in r.stderr and not (world.home / "none.db").exists(), "nothing is there"


def test_another_database_than_the_daemons_is_not_changed(world):
    world.start(PROTOND_AUTO_SESSION="off")
    record(world, "a", "x")
    env = {"PROTOND_DB": str(world.home / "other.db")}
    for args in (["delete", "1"], ["prune", "--keep", "1"], ["tag", "1", "x"], ["note", "1", "x"], ["rename", "1", "x"]):
        r = world.ctl(*args, check=False, env=env)
        assert r.returncode == 1 and f"the running protond's database is {world.db}: unset PROTOND_DB" in r.stderr, r
    assert labels(world, "a") == ("", "")


def test_a_dead_job_is_found_by_its_pid(world):
    """With its session; also when nobody runs any more who saw it."""
    world.start(PROTOND_AUTO_SESSION="off")
    world.ctl("start", "night", "--all")
    job = world.job()
    job.say("enter outer")
    job.say("enter inner")
    until("it records", lambda: "outer/inner" in world.ctl("where", job.pid).stdout)
    job.kill()
    until("its end is known", lambda: world.sql("SELECT 1 FROM process WHERE pid = ? AND ended_ns IS NOT NULL", job.pid))
    record(world, "later", "x")

    def seen():
        shown = world.ctl("where", job.pid)
        assert shown.stdout.startswith(f"pid {job.pid}, killed, in session 1 'night': ") and "in 'outer/inner'" in shown.stdout
        return shown
    seen()
    [told] = world.ctl_json("where", job.pid)["jobs"]
    assert (told["session"], told["session_name"]) == (1, "night")
    world.ctl("finalize", "night")
    world.stop()
    assert "no protond ran; one was started for" in seen().stderr


def test_why_a_process_cannot_be_recorded(world):
    world.start(PROTOND_AUTO_SESSION="off")
    bare = subprocess.Popen(["sleep", "600"], env=world.env)
    elsewhere = world.job(env={"PROTOND_DISABLE": "1"})
    elsewhere.say("repeat 1 x")
    try:
        for pid, words in ((bare.pid, "(sleep) does not load libprotond"),
                           (elsewhere.pid, "(job) loads libprotond, but is not attached to this protond")):
            r = world.ctl("start", "x", "--pid", pid, check=False)
            assert r.returncode == 1 and f"process {pid} {words}; " in r.stderr, r
            r = world.ctl("where", pid, check=False)
            assert r.returncode == 1 and f"process {pid} {words}; " in r.stderr, r
    finally:
        bare.kill()
        bare.wait()
    r = world.ctl("where", "99999999", check=False)
    assert r.returncode == 1 and "no job and no session is called 99999999; " in r.stderr


@needs_another_user
def test_a_process_of_another_user(world):
    serve(world)
    job = world.job()
    job.say("repeat 1 x")
    r = world.ctl("start", "x", "--pid", job.pid, check=False, user=NOBODY, group=NOBODY, extra_groups=[])
    assert r.returncode == 1 and f"process {job.pid} (job) is not yours, but root's; " in r.stderr
