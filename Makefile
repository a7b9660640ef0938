# protond. `make demo` runs the main job, `make check` passes the tests, `make help` lists the rest.
# Every list of sources is a wildcard of its room: a file added is a file built.

PREFIX    ?= /usr/local
DESTDIR   ?=
B         ?= build
CC        ?= cc
PYTHON    ?= /usr/bin/python3
CUDA_HOME ?= /usr/local/cuda
comma     := ,
VERSION   := $(shell sed -n 's/^.define PROTOND_VERSION "\(.*\)"/\1/p' libclient/protond.h)

# What a fresh Debian 12 machine lacks: to build and run, and to check besides.
APT_BUILD := gcc make pkg-config libc6-dev libuv1-dev libmsgpack-dev libsqlite3-dev libzstd-dev libjansson-dev \
	libpcre2-dev python3-dev
APT_CHECK := g++ clang clang-format libclang-rt-14-dev check python3 python3-pytest python3-pytest-xdist python3-msgpack python3-pandas python3-venv python3-pip pmccabe binutils man-db git systemd strace valgrind spin tcc

# SAN=address,undefined or SAN=thread builds everything under it, in a folder of its own.
ifneq ($(SAN),)
B        := $(B)/$(firstword $(subst $(comma), ,$(SAN)))
SANFLAGS := -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
endif

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Wcast-qual -Wformat=2 -Wswitch-enum \
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wwrite-strings \
	-Wpointer-arith -Wimplicit-fallthrough -Wnull-dereference -Wdouble-promotion -Wconversion \
	-Wframe-larger-than=16384
ifneq ($(findstring clang,$(CC)),)
WARN += -Wcomma -Wunreachable-code
else
WARN += -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wformat-signedness
endif

CFLAGS      ?= -O2 -g
ALL_CFLAGS  := -std=c17 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARN) $(WERROR) $(CFLAGS) \
	$(SANFLAGS) -DPROTOND_BUILD_VERSION='"$(VERSION)"' -MMD -MP
ALL_LDFLAGS := $(LDFLAGS) $(SANFLAGS) -Wl,-z,relro,-z,now,--as-needed
ifeq ($(SAN),)
JOB_LDFLAGS := -Wl,-z,defs,-z,nodelete
else
JOB_LDFLAGS := -Wl,-z,nodelete
endif

PKG      := libuv msgpack sqlite3 libzstd jansson libpcre2-8
PKG_CFL   = $(shell pkg-config --cflags $(PKG) 2>/dev/null)
LIB_WIRE  = $(shell pkg-config --libs msgpack sqlite3 libzstd jansson 2>/dev/null) -lm
LIB_DAEMON = $(shell pkg-config --libs libuv 2>/dev/null) $(LIB_WIRE) -lpthread
LIB_VIEWER = $(shell pkg-config --libs libpcre2-8 2>/dev/null) $(LIB_WIRE) -l:libstdc++.so.6

# Rooms: what each may include is its -I list, and a crossed line does not compile. Every folder is a
# room and an archive; docs/changing.md says what belongs where.
INC_proto/base        := -Iproto/base
INC_proto/place       := -Iproto/place -Iproto/base
INC_proto/wire        := -Iproto/wire -Iproto/terms -Iproto/base
INC_proto/session     := -Iproto/session -Iproto/terms -Iproto/base
INC_proto/export      := -Iproto/export $(INC_proto/session)
INC_libclient         := -Ilibclient -Iproto/terms -Iproto/abi -Iproto/place
INC_agent             := -Iagent -Iproto/terms -Iproto/abi
INC_agent/backend/cupti := -Iagent/backend/cupti $(INC_agent)
INC_agent/backend/nvtx  := -Iagent/backend/nvtx $(INC_agent)
IN_DAEMON := -Idaemon -Idaemon/os -Idaemon/jobs -Idaemon/journal -Idaemon/fold -Idaemon/store -Idaemon/query \
	-Idaemon/control -Iproto/abi -Iproto/export -Iproto/wire -Iproto/place $(INC_proto/session)
INC_daemon            := $(IN_DAEMON)
INC_daemon/os         := -Idaemon/os -Iproto/abi -Iproto/terms -Iproto/base
INC_daemon/jobs       := -Idaemon/jobs -Idaemon/journal $(INC_daemon/os)
INC_daemon/journal    := $(IN_DAEMON)
INC_daemon/fold       := $(IN_DAEMON)
INC_daemon/store      := $(IN_DAEMON)
INC_daemon/query      := $(IN_DAEMON)
INC_daemon/control    := $(IN_DAEMON)
IN_VIEWER := -Iviewer/common -Iviewer/analysis -Iproto/export -Iproto/wire -Iproto/place $(INC_proto/session)
INC_viewer/common     := $(IN_VIEWER) -Iviewer/ctl
INC_viewer/analysis   := $(IN_VIEWER) -Iviewer/view
INC_viewer/ctl        := -Iviewer/ctl $(IN_VIEWER)
INC_viewer/view       := -Iviewer/view $(IN_VIEWER) -Iviewer/ctl

R_PROTO  := proto/base proto/place proto/wire proto/session proto/export
R_AGENT  := agent agent/backend/cupti agent/backend/nvtx
R_DAEMON := daemon daemon/os daemon/jobs daemon/journal daemon/fold daemon/store daemon/query daemon/control
R_VIEWER := viewer/common viewer/analysis viewer/ctl viewer/view
ROOMS    := $(R_PROTO) libclient $(R_AGENT) $(R_DAEMON) $(R_VIEWER)
# Each has main(), and is in no archive.
MAIN     := daemon/main.c viewer/ctl/protonctl.c viewer/view/protonview.c

obj  = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(1:%=%/*.c)))
ar   = $(1:%=$(B)/ar/%.a)

.PHONY: all python demo check deps deps-check help install uninstall bundle bundle-tree wheel bench gpu-check gpu-bench lint clean tests
.DELETE_ON_ERROR:
all: $(B)/bin/protond $(B)/bin/protonctl $(B)/bin/protonview $(B)/lib/libprotond.so \
	$(B)/lib/libprotond-agent.so.0 $(B)/lib/libprotond.a $(B)/bin/protond-demo python

help:
	@echo "make demo       build, run the example program under protonctl run, print its tree"
	@echo "make check      build and pass every test (ends in 'N passed, N failed')"
	@echo "make            build into $(B)/"
	@echo "make install    DESTDIR= PREFIX=$(PREFIX)     make uninstall    the reverse"
	@echo "make bundle     a relocatable tree under dist/ that needs no packages where it runs"
	@echo "make wheel      the same as a Python package for pip, under dist/"
	@echo "make bench      speed of scopes, pipeline and viewer, against their floors"
	@echo "make gpu-check  what needs an NVIDIA GPU     make gpu-bench    its speed"
	@echo "make lint       formatting, warnings of two compilers, shape of the code, symbols"
	@echo "SAN=address,undefined or SAN=thread with any of them: under that sanitizer"

# --- objects and archives -------------------------------------------------------------------------

$(B)/obj/%.o: %.c $(B)/flags $(B)/rooms
	@mkdir -p $(@D)
	$(CC) $(INC_$(*D)) $(PKG_CFL) $(ALL_CFLAGS) -c -o $@ $<

# A change of compiler, flags or rooms rebuilds. $(call keep,text): into $@ where it is another.
keep = @mkdir -p $(@D); echo '$(1)' | cmp -s - $@ || echo '$(1)' > $@
$(B)/flags: FORCE
	$(call keep,$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS))
$(B)/rooms: FORCE
	$(call keep,$(foreach r,$(ROOMS),$(r): $(INC_$(r))))
FORCE:

define archive
$(B)/ar/$(1).a: $(filter-out $(MAIN:%.c=$(B)/obj/%.o),$(call obj,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(AR) rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call archive,$(r))))

# --- what is shipped ------------------------------------------------------------------------------

$(B)/lib/libprotond.so.0: $(call obj,libclient) libclient/libprotond.map
	@mkdir -p $(@D)
	$(CC) -shared $(ALL_LDFLAGS) $(JOB_LDFLAGS) -Wl,-soname,libprotond.so.0 \
		-Wl,--version-script=libclient/libprotond.map -o $@ $(filter %.o,$^) -ldl -lpthread
$(B)/lib/libprotond.so: $(B)/lib/libprotond.so.0
	@mkdir -p $(@D)
	ln -sf libprotond.so.0 $@
$(B)/lib/libprotond.a: $(call obj,libclient)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^
$(B)/lib/libprotond-agent.so.0: $(call obj,$(R_AGENT)) agent/libprotond-agent.map
	@mkdir -p $(@D)
	$(CC) -shared $(ALL_LDFLAGS) $(JOB_LDFLAGS) -Wl,-soname,libprotond-agent.so.0 \
		-Wl,--version-script=agent/libprotond-agent.map -o $@ $(filter %.o,$^) -ldl -lpthread

$(B)/bin/protond: $(B)/obj/daemon/main.o $(call ar,$(R_DAEMON) $(R_PROTO))
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $(RPATH) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIB_DAEMON)
$(B)/bin/protonctl: $(B)/obj/viewer/ctl/protonctl.o
$(B)/bin/protonview: $(B)/obj/viewer/view/protonview.o
$(B)/bin/protonctl $(B)/bin/protonview: $(call ar,$(R_VIEWER) $(R_PROTO))
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $(RPATH) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIB_VIEWER)
$(B)/bin/protond-demo: libclient/example/train.c $(B)/lib/libprotond.so $(B)/flags
	@mkdir -p $(@D)
	$(CC) -Ilibclient $(ALL_CFLAGS) $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $< \
		-L$(B)/lib -lprotond -lpthread -ldl -lm

# The Python package: one extension on the limited API for CPython 3.8 and later, found beside its
# sources wherever the package lies: in the build, installed, or in a wheel.
PY_SRC := $(patsubst libclient/python/%,%,$(wildcard libclient/python/protond/*.py libclient/python/protond/*/*.py))
PY_DIR := $(B)/lib/protond/python
PY_INC := $(shell $(PYTHON) -c 'import os, sysconfig; d = sysconfig.get_path("include"); print(d if os.path.exists(d + "/Python.h") else "")' 2>/dev/null)
PY_ALL := $(if $(PY_INC),$(PY_SRC) protond/_table.py protond/_native.abi3.so)
PY_WHY  = $(PYTHON) $(if $(shell command -v $(PYTHON) 2>&1),has no Python.h (apt-get install python3-dev),is not there)
python: $(PY_ALL:%=$(PY_DIR)/%)
ifeq ($(PY_INC),)
	@echo "the Python package is left out: $(PY_WHY); another one may be named: make PYTHON="
endif
$(PY_DIR)/%.py: libclient/python/%.py
	@mkdir -p $(@D)
	@cp $< $@
# options.h and formats.h as Python sees them.
$(PY_DIR)/protond/_table.py: proto/terms/options.h proto/terms/formats.h
	@mkdir -p $(@D)
	@printf '#include "options.h"\n#include "formats.h"\n---\n#define X(n, who, type, def, words, help) (#n, #who, #type, def, words, help),\n#define F(n) #n,\nOPTIONS = (\nJOB_OPTIONS(X)\n)\nFORMATS = (FORMATS(F))\n' | \
		$(CC) -E -P -Iproto/terms -x c - | sed -e '1,/^---/d' -e 's/), (/),\n    (/g' > $@
# Visibility: 3.8's headers do not export the module's entry; all else in it is static.
$(PY_DIR)/protond/_native.abi3.so: $(wildcard libclient/python/native*.c) libclient/python/native.h $(B)/lib/libprotond.so $(B)/flags
	@mkdir -p $(@D)
	$(CC) -shared -Ilibclient -isystem $(PY_INC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -Wno-pedantic -fvisibility=default \
		$(ALL_LDFLAGS) -Wl,-z,nodelete -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib:$$ORIGIN/../../..' -o $@ $(filter %.c,$^) -L$(B)/lib -lprotond

# --- the two commands -----------------------------------------------------------------------------

# $(call need,packages): install what is missing as root, else print the one line and stop.
define need
	@missing=$$(for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ]; then \
			echo "installing: "$$missing; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
		else \
			echo "These packages are missing; install them, then run make again:"; \
			echo "    sudo apt-get install -y "$$missing; exit 1; \
		fi; \
	fi
endef
deps:
	$(call need,$(APT_BUILD))
deps-check: deps
	$(call need,$(APT_CHECK))

# The packages must be there before a compiler is asked about them: hence the second make.
demo: deps
	@$(MAKE) --no-print-directory -s all
	@sh libclient/example/demo.sh $(B)

check: deps-check
	@CC='$(CC)' MAKE='$(MAKE)' PYTHON='$(PYTHON)' bash tests/check.sh

bench: deps-check all
	@$(PYTHON) tests/bench/run.py $(B)
gpu-check: all
	@bash tests/gpu/run.sh check $(B)
gpu-bench: all
	@bash tests/gpu/run.sh bench $(B)
	@bash tests/gpu/run.sh overhead $(B)
lint: deps-check
	@bash tests/lint.sh

# --- unit tests: the prefix of a test's name says which rooms it links -----------------------------

UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/*.c))
LIB_CHECK = $(shell pkg-config --libs check 2>/dev/null)
tests: all $(UNIT)
AR_job     := libclient $(R_AGENT)
AR_cupti   := $(AR_job)
AR_step    := $(AR_job)
AR_fold    := $(R_DAEMON) $(R_PROTO)
AR_store   := $(AR_fold)
AR_journal := $(AR_fold)
AR_daemon  := $(AR_fold)
AR_wire    := $(R_PROTO)
AR_view    := $(R_VIEWER) $(R_PROTO)
AR_ctl     := $(R_DAEMON) $(R_VIEWER) $(R_PROTO)
# The rooms that a test links are those that it may include.
room_of  = $(AR_$(firstword $(subst _, ,$(1))))
inc_of   = $(sort $(foreach r,$(call room_of,$(1)),$(INC_$(r))))
.SECONDEXPANSION:
$(UNIT): $(B)/tests/%: tests/unit/%.c $(B)/flags $$(call ar,$$(call room_of,$$*))
	@mkdir -p $(@D)
	$(CC) -Itests/unit $(call inc_of,$*) $(PKG_CFL) $(ALL_CFLAGS) \
		-Wno-frame-larger-than -Wno-overlength-strings -Wno-null-dereference \
		$(ALL_LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
		$(LIB_CHECK) $(LIB_DAEMON) $(LIB_VIEWER) -ldl

# Benchmarks: with the library as a job has it, with the daemon's rooms from their archives.
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
tests bench: $(BENCH)
bench: $(B)/tests/job
$(B)/bench/launch_bench: $(call ar,$(R_AGENT))
$(BENCH): $(B)/bench/%: tests/bench/%.c $(B)/lib/libprotond.so $(call ar,$(R_DAEMON) $(R_PROTO)) $(B)/flags
	@mkdir -p $(@D)
	$(CC) -Itests/unit $(sort $(foreach r,$(R_AGENT) libclient daemon,$(INC_$(r)))) $(PKG_CFL) $(ALL_CFLAGS) -Wno-frame-larger-than $(ALL_LDFLAGS) \
		-Wl,-rpath,'$$ORIGIN/../lib' -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -L$(B)/lib -lprotond $(LIB_CHECK) $(LIB_DAEMON) -lm

# Programs that the scenarios drive.
SCENARIO := job load liar pins storm storm_signal storm_fork storm_load storm_limit
tests: $(SCENARIO:%=$(B)/tests/%)
$(SCENARIO:%=$(B)/tests/%): $(B)/tests/%: tests/scenario/%.c $(B)/lib/libprotond.so $(B)/flags
	@mkdir -p $(@D)
	$(CC) -Ilibclient -Iproto/abi -Iproto/terms $(ALL_CFLAGS) $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $< \
		-L$(B)/lib -lprotond -lpthread
# fault.so is preloaded into a daemon, and the others fill a job: a sanitizer has its own malloc, and its
# own thread-local memory.
TLS := 8 64 1024
ifeq ($(SAN),)
tests: $(B)/tests/fault.so $(B)/tests/cut.so $(TLS:%=$(B)/tests/storm_tls%.so)
endif
$(TLS:%=$(B)/tests/storm_tls%.so): $(B)/tests/storm_tls%.so: tests/scenario/storm_tls.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DBYTES=$* -fvisibility=default $(ALL_LDFLAGS) -shared -o $@ $<
$(B)/tests/fault.so $(B)/tests/cut.so: $(B)/tests/%.so: tests/scenario/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fvisibility=default $(ALL_LDFLAGS) -shared -o $@ $< -ldl

# --- installing -----------------------------------------------------------------------------------

D_BIN  := $(DESTDIR)$(PREFIX)/bin
D_LIB  := $(DESTDIR)$(PREFIX)/lib
D_INC  := $(DESTDIR)$(PREFIX)/include
D_MAN  := $(DESTDIR)$(PREFIX)/share/man
D_DOC  := $(DESTDIR)$(PREFIX)/share/doc/protond
D_PY   := $(D_LIB)/protond/python
BINS   := protond protonctl protonview
MAN1   := protonctl.1 protonview.1
MAN8   := protond.8

# Where $(PYTHON) looks for packages under PREFIX: dist-packages if it is Debian's.
PYTHONDIR ?= $(PREFIX)/lib/$(shell $(PYTHON) -c 'import os, site, sys; \
	print("python%d.%d/" % sys.version_info[:2] + os.path.basename(site.getsitepackages()[0]))')
# $(call put_python,FOLDER): the package into FOLDER/protond
put_python = for f in $(PY_ALL); do install -D -m 644 $(PY_DIR)/$$f $(1)/$$f || exit 1; done

$(B)/man/%.1 $(B)/man/%.8: $(B)/bin/%
	@mkdir -p $(@D)
	$< --man > $@

# What systemd reads below PREFIX, and examples for /etc: from : to, with @PREFIX@ filled in.
SYSTEMD := protond.service:lib/systemd/system/protond.service protond.socket:lib/systemd/system/protond.socket \
	user/protond.service:lib/systemd/user/protond.service sysusers.conf:lib/sysusers.d/protond.conf \
	tmpfiles.conf:lib/tmpfiles.d/protond.conf $(foreach f,environment.conf profile.sh \
	slurm-task-prolog.sh container.env,examples/$(f):share/doc/protond/$(f))
define put_unit
	install -d $(DESTDIR)$(PREFIX)/$(dir $(lastword $(subst :, ,$(1))))
	sed 's|@PREFIX@|$(PREFIX)|g' systemd/$(firstword $(subst :, ,$(1))) > $(DESTDIR)$(PREFIX)/$(lastword $(subst :, ,$(1)))

endef

# shell:file below PREFIX/share; bash and fish look for one of each command's name
COMPLETE := bash:bash-completion/completions/protonctl bash:bash-completion/completions/protonview \
	zsh:zsh/site-functions/_protonctl \
	fish:fish/vendor_completions.d/protonctl.fish fish:fish/vendor_completions.d/protonview.fish
D_COMPLETE := $(foreach f,$(COMPLETE),$(DESTDIR)$(PREFIX)/share/$(lastword $(subst :, ,$(f))))
define put_complete
	install -D -m 644 $(B)/complete/$(firstword $(subst :, ,$(1))) $(DESTDIR)$(PREFIX)/share/$(lastword $(subst :, ,$(1)))

endef
$(B)/complete/%: $(B)/bin/protonctl
	@mkdir -p $(@D)
	$< completion $* > $@

install: all $(MAN1:%=$(B)/man/%) $(MAN8:%=$(B)/man/%) $(addprefix $(B)/complete/,bash zsh fish)
	install -d $(D_BIN) $(D_LIB)/pkgconfig $(D_INC) $(D_MAN)/man1 $(D_MAN)/man8 $(D_DOC)
	install -m 755 $(BINS:%=$(B)/bin/%) $(D_BIN)
	install -m 644 $(B)/lib/libprotond.so.0 $(B)/lib/libprotond-agent.so.0 $(B)/lib/libprotond.a $(D_LIB)
	ln -sf libprotond.so.0 $(D_LIB)/libprotond.so
	install -m 644 libclient/protond.h $(D_INC)
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' libclient/protond.pc.in > $(D_LIB)/pkgconfig/protond.pc
	install -m 644 $(MAN1:%=$(B)/man/%) $(D_MAN)/man1
	install -m 644 $(MAN8:%=$(B)/man/%) $(D_MAN)/man8
	install -m 644 README.md LICENSE docs/*.md $(D_DOC)
	$(foreach f,$(COMPLETE),$(call put_complete,$(f)))
	$(foreach f,$(SYSTEMD),$(call put_unit,$(f)))
ifneq ($(PY_INC),)
	rm -rf $(D_PY)
	$(call put_python,$(D_PY))
	install -d $(DESTDIR)$(PYTHONDIR)
	realpath -sm --relative-to=$(PYTHONDIR) $(PREFIX)/lib/protond/python > $(DESTDIR)$(PYTHONDIR)/protond.pth
endif
	@echo "installed below $(PREFIX). Where that is not searched: PATH=$(PREFIX)/bin:\$$PATH,"
	@echo "PYTHONPATH=$(PREFIX)/lib/protond/python, and for programs of yours -Wl,-rpath,$(PREFIX)/lib"

uninstall:
	rm -f $(BINS:%=$(D_BIN)/%) $(D_LIB)/libprotond.so $(D_LIB)/libprotond.so.0 $(D_LIB)/libprotond-agent.so.0 \
		$(D_LIB)/libprotond.a $(D_LIB)/pkgconfig/protond.pc $(D_INC)/protond.h $(MAN1:%=$(D_MAN)/man1/%) \
		$(MAN8:%=$(D_MAN)/man8/%) $(D_COMPLETE)
	rm -f $(foreach f,$(SYSTEMD),$(DESTDIR)$(PREFIX)/$(lastword $(subst :, ,$(f))))
	rm -rf $(D_DOC) $(D_PY)
	[ ! -d $(D_LIB)/protond ] || rmdir --ignore-fail-on-non-empty $(D_LIB)/protond
ifneq ($(PY_INC),)
	rm -f $(DESTDIR)$(PYTHONDIR)/protond.pth
endif

# The bundle: what was built and, in lib/protond/, the libraries that it needs but for the C library's
# own. The wheel is the same, packed by libclient/python/build_backend.py.
# DT_RPATH: for the libraries' own needs too, and whatever LD_LIBRARY_PATH says.
RPATH  := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/protond'
TREE   := $(B)/bundle
BUNDLE := dist/protond-$(VERSION)
bundle-tree: all
	@rm -rf $(TREE)
	@mkdir -p $(TREE)/bin $(TREE)/lib/protond $(TREE)/include $(TREE)/licenses
	@cp $(BINS:%=$(B)/bin/%) $(B)/bin/protond-demo $(TREE)/bin
	@cp -P $(B)/lib/libprotond* $(TREE)/lib
	@$(call put_python,$(TREE)/lib/protond/python)
	@cp libclient/protond.h $(TREE)/include
	@cp README.md LICENSE $(TREE)
	@set -f; libs=$$(ldd $(BINS:%=$(B)/bin/%) | awk '$$2 == "=>" { print $$3 }' | sort -u | \
		grep -vE '/(ld-linux.*|libc|libm|libdl|libpthread|librt)\.so') && \
		cp -L $$libs $(TREE)/lib/protond && \
		dpkg-query -S $$(echo "$$libs" | sed -E 's|^(/usr)?|*|') | sed 's/:.* / /' | while read -r package so; do \
			cp -L /usr/share/doc/$$package/copyright $(TREE)/licenses/$${so##*/}.txt; \
		done
	@for so in $(TREE)/lib/protond/*.so*; do [ -s $(TREE)/licenses/$${so##*/}.txt ] || \
		echo "$${so##*/}: its licence, which must go along with it, was not found" >&2; done
bundle: deps
	@$(MAKE) --no-print-directory -s bundle-tree
	@rm -rf $(BUNDLE)
	@mkdir -p dist
	@cp -a $(TREE) $(BUNDLE)
	@tar -C dist -czf $(BUNDLE).tar.gz $(notdir $(BUNDLE))
	@echo "$(BUNDLE).tar.gz: unpack anywhere, run bin/protonctl run -- CMD"
wheel: deps
	@$(MAKE) --no-print-directory -s bundle-tree
	@mkdir -p dist
	@$(PYTHON) libclient/python/build_backend.py $(TREE) dist

clean:
	rm -rf build dist

-include $(wildcard $(B)/obj/*/*.d $(B)/obj/*/*/*.d $(B)/obj/*/*/*/*.d $(B)/tests/*.d $(B)/bin/*.d)
