# SPDX-License-Identifier: MIT. tests.mk: how unit tests, benchmarks and programs of scenarios are built. Included by the
# Makefile.

check-long: deps-check
	@CC='$(CC)' MAKE='$(MAKE)' PYTHON='$(PYTHON)' bash tests/check.sh --long

# --- unit tests: the prefix of a test's name says which rooms it links

# Each has a suite(), and main.c runs it.
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(filter-out %/main.c,$(wildcard tests/unit/*.c)))
LIB_CHECK = $(shell pkg-config --libs check 2>/dev/null)
.PHONY: tests-scenario check-long
tests: all $(UNIT)
AR_job     := libclient $(R_AGENT)
AR_cupti   := $(AR_job)
AR_step    := $(AR_job)
AR_fold    := $(R_DAEMON) $(R_PROTO)
AR_store   := $(AR_fold)
AR_journal := $(AR_fold)
AR_daemon  := $(AR_fold)
AR_alone   := daemon/fold daemon/journal proto/session proto/base
AR_wire    := $(R_PROTO)
AR_view    := $(R_VIEWER) $(R_PROTO)
AR_ctl     := $(R_DAEMON) viewer/common $(R_PROTO)
# The rooms that a test links are those that it may include.
room_of  = $(AR_$(firstword $(subst _, ,$(1))))
inc_of   = $(sort $(foreach r,$(call room_of,$(1)),$(INC_$(r))))
$(B)/tests/main.o: tests/unit/main.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<
.SECONDEXPANSION:
# A test's own file: -O2 took two thirds of the time that all of them compile, and they run for no longer without it.
TEST_O := -Og
# Gold, where it is here, links each of them in half of the time of ld. What is shipped has the linker of all.
TEST_LD := $(if $(shell command -v ld.gold 2>/dev/null),-fuse-ld=gold)
$(UNIT): $(B)/tests/%: tests/unit/%.c $(B)/tests/main.o $(B)/flags $$(call ar,$$(call room_of,$$*))
	@mkdir -p $(@D)
	$(CC) -Itests/unit $(call inc_of,$*) $(PKG_CFL) $(ALL_CFLAGS) $(TEST_O) \
		-Wno-frame-larger-than -Wno-overlength-strings -Wno-null-dereference \
		$(ALL_LDFLAGS) $(TEST_LD) -o $@ $< $(B)/tests/main.o -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
		$(LIB_CHECK) $(LIB_DAEMON) $(LIB_VIEWER) -ldl $(LD_$*)
# What it says is poison ends the daemon: fold_apply() is its own.
LD_daemon_poison := -Wl,--wrap=fold_apply,--wrap=fold_has_many
# Sessions that record, and a journal that is full, at its word.
LD_daemon_device := -Wl,--wrap=fold_each_session,--wrap=entry_put,--wrap=entry_flush
# Allocations fail at its word.
LD_wire_summary := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
# The fold needs no event loop and no database: a test that has neither.
$(B)/tests/alone_fold: private LIB_DAEMON = $(shell pkg-config --libs libzstd 2>/dev/null) -lm
$(B)/tests/alone_fold: private LIB_VIEWER :=

# Benchmarks: with the library as a job has it, with the daemon's rooms from their archives.
BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
tests bench: $(BENCH)
bench: $(B)/tests/job
$(B)/bench/launch_bench $(B)/bench/native_bench: $(call ar,$(R_AGENT))
$(B)/bench/zoom_bench: tests/unit/zoom_check.h
$(BENCH): $(B)/bench/%: tests/bench/%.c $(B)/lib/libprotond.so $(call ar,$(R_DAEMON) $(R_PROTO)) $(B)/flags
	@mkdir -p $(@D)
	$(CC) -Itests/unit $(sort $(foreach r,$(R_AGENT) libclient daemon,$(INC_$(r)))) $(PKG_CFL) $(ALL_CFLAGS) -Wno-frame-larger-than $(ALL_LDFLAGS) \
		-Wl,-rpath,'$$ORIGIN/../lib' -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -L$(B)/lib -lprotond $(LIB_CHECK) $(LIB_DAEMON) -lm

# Programs that the scenarios drive: with what is shipped, all that they need.
tests: tests-scenario
tests-scenario: all
SCENARIO := job load rounds liar native pins storm storm_signal storm_fork storm_load storm_limit
tests-scenario: $(SCENARIO:%=$(B)/tests/%)
$(SCENARIO:%=$(B)/tests/%): $(B)/tests/%: tests/scenario/%.c $(B)/lib/libprotond.so $(B)/flags
	@mkdir -p $(@D)
	$(CC) -Ilibclient -Iproto/abi -Iproto/terms $(ALL_CFLAGS) $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $< \
		-L$(B)/lib -lprotond -lpthread
# fault.so is preloaded into a daemon, and the others fill a job: a sanitizer has its own malloc, and its
# own thread-local memory.
TLS := 8 64 1024
ifeq ($(SAN),)
tests-scenario: $(B)/tests/fault.so $(B)/tests/cut.so $(TLS:%=$(B)/tests/storm_tls%.so) $(B)/tests/libcount.so
endif
tests-scenario: $(B)/tests/nvml/libnvidia-ml.so.1
$(B)/tests/nvml/libnvidia-ml.so.1: tests/scenario/fake_nvml.c daemon/device/nvml_abi.h $(B)/flags
	@mkdir -p $(@D)
	$(CC) -Idaemon/device $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -o $@ $<
$(B)/tests/libcount.so: tests/gpu/others/count.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fvisibility=default $(ALL_LDFLAGS) -shared -o $@ $< -ldl -lpthread
$(TLS:%=$(B)/tests/storm_tls%.so): $(B)/tests/storm_tls%.so: tests/scenario/storm_tls.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -DBYTES=$* -fvisibility=default $(ALL_LDFLAGS) -shared -o $@ $<
$(B)/tests/fault.so $(B)/tests/cut.so: $(B)/tests/%.so: tests/scenario/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -fvisibility=default $(ALL_LDFLAGS) -shared -o $@ $< -ldl
