# SPDX-License-Identifier: MIT. install.mk: install and uninstall, the bundle and the wheel. Included by the Makefile.

D_BIN  := $(DESTDIR)$(PREFIX)/bin
D_LIB  := $(DESTDIR)$(PREFIX)/lib
D_INC  := $(DESTDIR)$(PREFIX)/include
D_MAN  := $(DESTDIR)$(PREFIX)/share/man
D_DOC  := $(DESTDIR)$(PREFIX)/share/doc/protond
D_PY   := $(D_LIB)/protond/python
BINS   := protond protond-device protonctl protonview
MAN1   := protonctl.1 protonview.1
MAN8   := protond.8 protond-device.8

# Where $(PYTHON) looks for packages under PREFIX: dist-packages if it is Debian's.
PYTHONDIR ?= $(PREFIX)/lib/$(shell $(PYTHON) -c 'import os, site, sys; \
	print("python%d.%d/" % sys.version_info[:2] + os.path.basename(site.getsitepackages()[0]))')
# $(call put_python,FOLDER): the package into FOLDER/protond
put_python = for f in $(PY_ALL); do install -D -m 644 $(PY_DIR)/$$f $(1)/$$f || exit 1; done

# $(call put_docs,FOLDER): the pages, where they stand here, and what they lead to, so that their links do
put_docs = for f in $$(find README.md LICENSE docs libclient/protond.h tests/README.md \
	$$(grep -oh '](\.\./[^)\#]*' docs/*.md | cut -c 6- | sort -u) -type f ! -name '*.pyc' | sort -u); do \
	install -D -m 644 $$f $(1)/$$f || exit 1; done

$(B)/man/%.1 $(B)/man/%.8: $(B)/bin/%
	@mkdir -p $(@D)
	$< --man > $@

# What systemd reads below PREFIX, and examples for /etc: from : to, with @PREFIX@ filled in.
SYSTEMD := protond.service:lib/systemd/system/protond.service protond.socket:lib/systemd/system/protond.socket \
	protond-device.socket:lib/systemd/system/protond-device.socket \
	protond-device@.service:lib/systemd/system/protond-device@.service \
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
# $(call put_complete,SHARE): into each one's folder
put_complete = $(foreach f,$(COMPLETE),install -D -m 644 $(B)/complete/$(firstword $(subst :, ,$(f))) \
	$(1)/$(lastword $(subst :, ,$(f))) &&) :
$(B)/complete/%: $(B)/bin/protonctl
	@mkdir -p $(@D)
	$< completion $* > $@

# PROTON_NAMES=1: Triton's two commands too, command:module. Whoever has them from Triton keeps them.
PROTON := proton:protond proton-viewer:protond.viewer
is_ours = grep -qs 'PROTON_NAMES' $(D_BIN)/$(firstword $(subst :, ,$(1)))
define put_proton
	@[ ! -e $(D_BIN)/$(firstword $(subst :, ,$(1))) ] || $(is_ours) || \
		{ echo "$(D_BIN)/$(firstword $(subst :, ,$(1))) is not ours: remove it first, or leave PROTON_NAMES out"; exit 1; }
	sed 's|@PREFIX@|$(PREFIX)|; s|@MODULE@|$(lastword $(subst :, ,$(1)))|' libclient/python/proton.in \
		> $(D_BIN)/$(firstword $(subst :, ,$(1)))
	chmod 755 $(D_BIN)/$(firstword $(subst :, ,$(1)))

endef

SPOKEN := $(MAN1:%=$(B)/man/%) $(MAN8:%=$(B)/man/%) $(addprefix $(B)/complete/,bash zsh fish)
install: all $(SPOKEN)
	install -d $(D_BIN) $(D_LIB)/pkgconfig $(D_INC) $(D_MAN)/man1 $(D_MAN)/man8
	install -m 755 $(BINS:%=$(B)/bin/%) $(D_BIN)
	install -m 644 $(B)/lib/libprotond.so.0 $(B)/lib/libprotond-agent.so.0 $(B)/lib/libprotond.a $(D_LIB)
	ln -sf libprotond.so.0 $(D_LIB)/libprotond.so
	install -m 644 libclient/protond.h $(D_INC)
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' libclient/protond.pc.in > $(D_LIB)/pkgconfig/protond.pc
	install -m 644 $(MAN1:%=$(B)/man/%) $(D_MAN)/man1
	install -m 644 $(MAN8:%=$(B)/man/%) $(D_MAN)/man8
	rm -rf $(D_DOC)
	$(call put_docs,$(D_DOC))
	$(call put_complete,$(DESTDIR)$(PREFIX)/share)
	$(foreach f,$(SYSTEMD),$(call put_unit,$(f)))
ifneq ($(PY_INC),)
	rm -rf $(D_PY)
	$(call put_python,$(D_PY))
	install -d $(DESTDIR)$(PYTHONDIR)
	realpath -sm --relative-to=$(PYTHONDIR) $(PREFIX)/lib/protond/python > $(DESTDIR)$(PYTHONDIR)/protond.pth
ifeq ($(PROTON_NAMES),1)
	$(foreach f,$(PROTON),$(call put_proton,$(f)))
endif
endif
	@echo "installed below $(PREFIX). Where that is not searched: PATH=$(PREFIX)/bin:\$$PATH,"
	@echo "PYTHONPATH=$(PREFIX)/lib/protond/python, and for programs of yours -Wl,-rpath,$(PREFIX)/lib"

uninstall:
	rm -f $(BINS:%=$(D_BIN)/%) $(D_LIB)/libprotond.so $(D_LIB)/libprotond.so.0 $(D_LIB)/libprotond-agent.so.0 \
		$(D_LIB)/libprotond.a $(D_LIB)/pkgconfig/protond.pc $(D_INC)/protond.h $(MAN1:%=$(D_MAN)/man1/%) \
		$(MAN8:%=$(D_MAN)/man8/%) $(D_COMPLETE)
	rm -f $(foreach f,$(SYSTEMD),$(DESTDIR)$(PREFIX)/$(lastword $(subst :, ,$(f))))
	rm -rf $(D_DOC) $(D_PY)
	$(foreach f,$(PROTON),! $(call is_ours,$(f)) || rm -f $(D_BIN)/$(firstword $(subst :, ,$(f)));)
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
bundle-tree: all $(SPOKEN)
	@rm -rf $(TREE)
	@mkdir -p $(TREE)/bin $(TREE)/lib/protond $(TREE)/include $(TREE)/licenses
	@cp $(BINS:%=$(B)/bin/%) $(B)/bin/protond-demo $(TREE)/bin
	@cp -P $(B)/lib/libprotond* $(TREE)/lib
	@$(call put_python,$(TREE)/lib/protond/python)
	@cp libclient/protond.h $(TREE)/include
	@cp LICENSE $(TREE)
	@$(call put_docs,$(TREE)/share/doc/protond)
	@install -D -m 644 -t $(TREE)/share/man/man1 $(MAN1:%=$(B)/man/%)
	@install -D -m 644 -t $(TREE)/share/man/man8 $(MAN8:%=$(B)/man/%)
	@$(call put_complete,$(TREE)/share)
	@set -f; libs=$$({ ldd $(BINS:%=$(B)/bin/%) $(LIB_LOADED); echo "x => $(LIB_LOADED)"; } | awk '$$2 == "=>" { print $$3 }' | sort -u | \
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
	@mkdir -p $(dir $(BUNDLE))
	@cp -a $(TREE) $(BUNDLE)
	@tar -C $(dir $(BUNDLE)) --owner=root:0 --group=root:0 --mode=u=rwX,go=rX -czf $(BUNDLE).tar.gz $(notdir $(BUNDLE))
	@echo "$(BUNDLE).tar.gz: unpack anywhere, run bin/protonctl run -- CMD"
wheel: deps
	@$(MAKE) --no-print-directory -s bundle-tree
	@mkdir -p dist
	@$(PYTHON) libclient/python/build_backend.py $(TREE) dist
