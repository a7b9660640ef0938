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
APT_BUILD := gcc make pkg-config libc6-dev libuv1-dev libmsgpack-dev libsqlite3-dev libzstd-dev zlib1g-dev libjansson-dev \
	libpcre2-dev libmicrohttpd-dev libncurses-dev libopen-trace-format2-dev python3-dev
APT_CHECK := g++ clang clang-format libclang-rt-14-dev check python3 python3-pytest python3-pytest-xdist python3-msgpack python3-pandas python3-venv python3-pip pmccabe binutils man-db git systemd strace valgrind spin tcc openmpi-bin gunicorn chromium otf2-tools protobuf-compiler tmux
# Node from elsewhere brings an npm of its own, and refuses Debian's beside it.
APT_CHECK += $(if $(shell command -v npm 2>/dev/null),,nodejs npm)

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

PKG      := libuv msgpack sqlite3 libzstd zlib jansson libpcre2-8 libmicrohttpd ncursesw
PKG_CFL   = $(shell pkg-config --cflags $(PKG) 2>/dev/null)
LIB_WIRE  = $(shell pkg-config --libs msgpack sqlite3 libzstd zlib jansson 2>/dev/null) -lm
LIB_DAEMON = $(shell pkg-config --libs libuv 2>/dev/null) $(LIB_WIRE) -lpthread
# libmicrohttpd is loaded by whoever serves a page: viewer/web/web_http.h.
LIB_VIEWER = $(shell pkg-config --libs libpcre2-8 libuv ncursesw 2>/dev/null) $(LIB_WIRE) -ldl -l:libstdc++.so.6
LIB_LOADED = $(shell realpath -ms $$($(CC) -print-file-name=libmicrohttpd.so.12))

# Rooms: what each may include is its -I list, and a crossed line does not compile. Every folder is a
# room and an archive; docs/changing.md says what belongs where.
INC_proto/base        := -Iproto/base
INC_proto/peek        := -Iproto/peek
INC_proto/place       := -Iproto/place -Iproto/base
INC_proto/wire        := -Iproto/wire -Iproto/terms -Iproto/base
INC_proto/session     := -Iproto/session -Iproto/terms -Iproto/base
INC_proto/export      := -Iproto/export $(INC_proto/session)
INC_proto/import      := -Iproto/import $(INC_proto/session) -Iproto/export
INC_libclient         := -Ilibclient -Iproto/terms -Iproto/abi -Iproto/place
INC_agent             := -Iagent -Iagent/backend -Iproto/terms -Iproto/abi -Iproto/peek
# A backend sees of the engine what agent/backend/agent.h says; its folder is its room.
R_BACKEND := $(patsubst %/,%,$(sort $(dir $(wildcard agent/backend/*/*.c))))
$(foreach r,$(R_BACKEND),$(eval INC_$(r) := -I$(r) -Iagent/backend -Iproto/terms -Iproto/abi))
IN_DAEMON := -Idaemon -Idaemon/door -Idaemon/os -Idaemon/jobs -Idaemon/journal -Idaemon/fold -Idaemon/store -Idaemon/query \
	-Idaemon/control -Iproto/abi -Iproto/export -Iproto/wire -Iproto/place $(INC_proto/session)
INC_daemon            := $(IN_DAEMON)
INC_daemon/os         := -Idaemon/os -Iproto/abi -Iproto/terms -Iproto/base
INC_daemon/jobs       := -Idaemon/jobs -Idaemon/journal $(INC_daemon/os)
INC_daemon/journal    := -Idaemon/journal -Iproto/terms -Iproto/base
INC_daemon/fold       := -Idaemon/fold -Idaemon/journal -Iproto/abi $(INC_proto/session)
INC_daemon/store      := -Idaemon/store $(INC_proto/session)
# Questions know neither sockets nor MessagePack. Of the loop they and the verbs see its door, which is headers only.
INC_daemon/query      := -Idaemon/query -Idaemon/door -Idaemon/os -Idaemon/journal -Idaemon/fold -Idaemon/store -Iproto/abi \
	-Iproto/export $(INC_proto/session)
# protond-device: a program of its own, which shares with the daemon what they say to each other.
INC_daemon/device     := -Idaemon/device -Iproto/abi -Iproto/terms
INC_daemon/control    := -Idaemon/control -Idaemon/query -Idaemon/door -Idaemon/os -Idaemon/journal -Idaemon/fold -Idaemon/store \
	-Iproto/abi -Iproto/wire $(INC_proto/session)
INC_viewer/common     := -Iviewer/common -Iproto/peek -Iproto/export -Iproto/wire -Iproto/place $(INC_proto/session)
INC_viewer/analysis   := -Iviewer/analysis -Iproto/export $(INC_proto/session)
INC_viewer/ctl        := -Iviewer/ctl -Iviewer/analysis $(INC_viewer/common)
INC_viewer/view       := -Iviewer/view -Iproto/import -Iviewer/analysis $(INC_viewer/common)
INC_viewer/web        := -Iviewer/web $(INC_viewer/view)

R_PROTO  := proto/base proto/peek proto/place proto/wire proto/session proto/export proto/import
# What the agent is made of; proto/peek is also in what reads other processes.
R_AGENT  := agent $(R_BACKEND) proto/peek
R_DAEMON := daemon daemon/os daemon/jobs daemon/journal daemon/fold daemon/store daemon/query daemon/control
R_DEVICE := daemon/device
R_VIEWER := viewer/common viewer/analysis viewer/ctl viewer/view viewer/web
ROOMS    := $(R_PROTO) libclient $(filter-out $(R_PROTO),$(R_AGENT)) $(R_DAEMON) $(R_DEVICE) $(R_VIEWER)
# Each has main(), and is in no archive.
MAIN     := daemon/main.c daemon/device/device.c viewer/ctl/protonctl.c viewer/view/protonview.c

obj  = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(1:%=%/*.c)))
ar   = $(1:%=$(B)/ar/%.a)

.PHONY: judges web web-bench all python demo check deps deps-check help install uninstall bundle bundle-tree wheel bench gpu-check gpu-bench lint clean tests
.DELETE_ON_ERROR:
all: $(B)/bin/protond $(B)/bin/protond-device $(B)/bin/protonctl $(B)/bin/protonview $(B)/lib/libprotond.so \
	$(B)/lib/libprotond-agent.so.0 $(B)/lib/libprotond.a $(B)/bin/protond-demo python

help:
	@echo "make demo       build, run the example program under protonctl run, print its tree"
	@echo "make check      build and pass every test (ends in 'N passed, N failed')"
	@echo "           T='fold_tree test_run.py lint': these of them (tests/README.md)"
	@echo "make check-long what takes long, within 90 minutes"
	@echo "make            build into $(B)/"
	@echo "make install    DESTDIR= PREFIX=$(PREFIX)     make uninstall    the reverse"
	@echo "make bundle     a relocatable tree under dist/ that needs no packages where it runs"
	@echo "make wheel      the same as a Python package for pip, under dist/"
	@echo "make bench      speed of scopes, pipeline and viewer, against their floors"
	@echo "make gpu-check  what needs an NVIDIA GPU     make gpu-bench    its speed"
	@echo "make web        the page, from viewer/web/src; needs node     make web-bench  its frames while it is panned"
	@echo "make judges     npm's readers of traces and profiles, which make check asks when they are here"
	@echo "make lint       formatting, warnings of two compilers, shape of the code, symbols"
	@echo "SAN=address,undefined or SAN=thread with any of them: under that sanitizer"

# --- objects and archives -------------------------------------------------------------------------

$(B)/obj/%.o: %.c $(B)/flags $(B)/rooms
	@mkdir -p $(@D)
	$(CC) $(INC_$(*D)) $(PKG_CFL) $(ALL_CFLAGS) -c -o $@ $<

# The page: what viewer/web/dist/ has, packed, into the program.
WEB_FILES := $(wildcard viewer/web/dist/*)
WEB_PACKED := $(WEB_FILES:viewer/web/dist/%=$(B)/web/%.gz) $(WEB_FILES:viewer/web/dist/%=$(B)/web/%.sha256)
$(B)/web/%.gz: viewer/web/dist/%
	@mkdir -p $(@D)
	gzip -9nc $< > $@
$(B)/web/%.sha256: viewer/web/dist/%
	@mkdir -p $(@D)
	sha256sum < $< > $@
$(B)/obj/viewer/web/web_assets.o: $(WEB_PACKED)
$(B)/obj/viewer/web/web_assets.o: private ALL_CFLAGS += -DPROTOND_WEB_PACKED='"$(B)/web"'

# `make said CC=clang`: what another compiler says of the rooms, without making code of them.
SAID := $(patsubst %,$(B)/said/%,$(wildcard $(ROOMS:%=%/*.c)))
.PHONY: said
said: $(SAID)
$(B)/said/%: % $(B)/flags $(B)/rooms
	@mkdir -p $(@D)
	$(CC) $(INC_$(*D)) $(PKG_CFL) $(ALL_CFLAGS) -MF $@.d -MT $@ -fsyntax-only $< && touch $@
$(B)/said/viewer/web/web_assets.c: private ALL_CFLAGS += -DPROTOND_WEB_PACKED='""'

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
# Against the C library alone: the driver's is loaded.
$(B)/bin/protond-device: $(B)/obj/daemon/device/device.o $(call ar,$(R_DEVICE))
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ -ldl
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
PY_SRC := $(patsubst libclient/python/%,%,$(wildcard libclient/python/protond/*.py libclient/python/protond/*/*.py libclient/python/protond/*.cpp libclient/python/protond/*.h))
PY_DIR := $(B)/lib/protond/python
PY_INC := $(shell $(PYTHON) -c 'import os, sysconfig; d = sysconfig.get_path("include"); print(d if os.path.exists(d + "/Python.h") else "")' 2>/dev/null)
PY_ALL := $(if $(PY_INC),$(PY_SRC) protond/_table.py protond/op_terms.h protond/_native.abi3.so)
PY_WHY  = $(PYTHON) $(if $(shell command -v $(PYTHON) 2>&1),has no Python.h (apt-get install python3-dev),is not there)
python: $(PY_ALL:%=$(PY_DIR)/%)
ifeq ($(PY_INC),)
	@echo "the Python package is left out: $(PY_WHY); another one may be named: make PYTHON="
endif
$(PY_SRC:%=$(PY_DIR)/%): $(PY_DIR)/%: libclient/python/%
	@mkdir -p $(@D)
	@cp $< $@
# What ops.cpp and the exports tell operators by.
$(PY_DIR)/protond/op_terms.h: proto/terms/op_terms.h
	@mkdir -p $(@D)
	@cp $< $@
# options.h, formats.h and backends.h as Python sees them.
$(PY_DIR)/protond/_table.py: proto/terms/options.h proto/terms/formats.h proto/terms/backends.h
	@mkdir -p $(@D)
	@printf '#include "options.h"\n#include "formats.h"\n#include "backends.h"\n---\n#define X(n, who, type, def, words, help) (#n, #who, #type, def, words, help),\n#define F(n, ...) #n,\n#define B(n, ...) #n,\nOPTIONS = (\nJOB_OPTIONS(X)\n)\nFORMATS = (FORMATS(F))\nBACKENDS = (GPU_BACKENDS(B))\n' | \
		$(CC) -E -P -Iproto/terms -x c - | sed -e '1,/^---/d' -e 's/), (/),\n    (/g' > $@
# Visibility: 3.8's headers do not export the module's entry; all else in it is static.
$(PY_DIR)/protond/_native.abi3.so: $(wildcard libclient/python/native*.c) libclient/python/native.h $(B)/lib/libprotond.so $(B)/flags
	@mkdir -p $(@D)
	$(CC) -shared $(INC_libclient) -isystem $(PY_INC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -Wno-pedantic -fvisibility=default \
		$(ALL_LDFLAGS) -Wl,-z,nodelete -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib:$$ORIGIN/../../..' -o $@ $(filter %.c,$^) -L$(B)/lib -lprotond

# Other people's readers of what is exported: 220 MB, so nobody has to have them.
judges:
	cd tests/judges && npm ci --ignore-scripts --no-audit --no-fund

# The page of `protonview web` and of reports, from viewer/web/src: what comes out is committed, so that only who
# changes it needs node.
web: viewer/web/node_modules
	cd viewer/web && npx --no-install tsc --noEmit && node build.mjs
viewer/web/node_modules: viewer/web/package-lock.json
	cd viewer/web && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@
web-bench: viewer/web/node_modules all $(B)/bench/multiply
	node tests/web/firefox.mjs
	PROTOND_BUILD=$(B) node tests/web/bench.mjs

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
			echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends "$$missing; exit 1; \
		fi; \
	fi
endef
deps:
	$(call need,$(APT_BUILD))
deps-check: deps
	$(call need,$(APT_CHECK))

# The packages must be there before a compiler is asked about them: hence the second make. The session is kept
# where any other is, so that the README's next lines find it.
demo: deps
	@[ -x $(B)/bin/protond-demo ] || echo "building protond into $(B)/: half a minute on two cores"
	@$(MAKE) --no-print-directory -s $(if $(filter -j%,$(MAKEFLAGS)),,-j$$(nproc)) all
	@$(B)/bin/protonctl run --name demo -- $(B)/bin/protond-demo

check: deps-check
	@set -f; CC='$(CC)' MAKE='$(MAKE)' PYTHON='$(PYTHON)' SAN='$(SAN)' bash tests/check.sh $(T)

bench: deps-check all
	@$(PYTHON) tests/bench/run.py $(B)
gpu-check: all
	@bash tests/gpu/run.sh check $(B)
gpu-bench: all
	@bash tests/gpu/run.sh bench $(B)
	@bash tests/gpu/run.sh overhead $(B)
lint: deps-check
	@bash tests/lint.sh

clean:
	rm -rf build dist

include systemd/install.mk tests/tests.mk
-include $(wildcard $(B)/said/*/*.d $(B)/said/*/*/*.d $(B)/said/*/*/*/*.d $(B)/obj/*/*.d $(B)/obj/*/*/*.d $(B)/obj/*/*/*/*.d $(B)/tests/*.d $(B)/bin/*.d)
