################################################################################
#
# tinbox
#
################################################################################

TINBOX_VERSION = 0.1.0
TINBOX_SITE = $(TINBOX_TOP)
TINBOX_SITE_METHOD = local
TINBOX_LICENSE = Apache-2.0
TINBOX_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = \
	--exclude /target --exclude /out --exclude /fuzz/target

# A local site has no download step, and with it none of Buildroot's vendoring.
define TINBOX_VENDOR
	$(TINBOX_PKGDIR)/vendor.sh $(@D) $(BR_CARGO_HOME) $(HOST_DIR)/bin/cargo
endef
ifeq ($(TINBOX_PROGRAMS),)
TINBOX_POST_RSYNC_HOOKS += TINBOX_VENDOR
endif
HOST_TINBOX_POST_RSYNC_HOOKS += TINBOX_VENDOR

# The flags of .cargo/config.toml for every processor, and no path of this machine in the programs.
TINBOX_RUSTFLAGS = \
	-C target-feature=+crt-static \
	--cfg getrandom_backend="linux_getrandom" \
	--remap-path-prefix=$(BUILD_DIR)=/build \
	--remap-path-prefix=$(HOST_DIR)=/host
TINBOX_CARGO_ENV = \
	CARGO_TARGET_$(call UPPERCASE,$(RUSTC_TARGET_NAME))_RUSTFLAGS='$(TINBOX_RUSTFLAGS)' \
	CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
# Buildroot's choices for C are not ours for Rust: Cargo.toml's [profile.release] again, or less.
ifeq ($(BR2_PACKAGE_TINBOX_QUICK),y)
TINBOX_CARGO_ENV += CARGO_PROFILE_RELEASE_OPT_LEVEL=1
else
TINBOX_CARGO_ENV += \
	CARGO_PROFILE_RELEASE_OPT_LEVEL=3 \
	CARGO_PROFILE_RELEASE_LTO=fat \
	CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
endif
# A box with an ARM processor serves the agent OS of x86 machines, which comes from elsewhere.
TINBOX_NAMES = tinboxd $(if $(BR2_x86_64),tinbox-agent)
TINBOX_CARGO_BUILD_OPTS = -p supervisor $(if $(BR2_x86_64),-p agent) --bins
HOST_TINBOX_CARGO_BUILD_OPTS = -p image --bins
HOST_TINBOX_CARGO_ENV = CARGO_BUILD_TARGET=$(RUSTC_HOST_NAME)

# Programs that cargo built before, for a build that is about everything else.
ifneq ($(TINBOX_PROGRAMS),)
TINBOX_BUILD_CMDS = true
else
TINBOX_PROGRAMS = $(@D)/target/$(RUSTC_TARGET_NAME)/release
endif

# A workspace has no package of its own for `cargo install`.
define TINBOX_INSTALL_TARGET_CMDS
	$(foreach program,$(TINBOX_NAMES), \
		$(INSTALL) -D -m 0755 $(TINBOX_PROGRAMS)/$(program) \
			$(TARGET_DIR)/usr/bin/$(program)
	)
endef
define HOST_TINBOX_INSTALL_CMDS
	$(INSTALL) -D -m 0755 $(@D)/target/$(RUSTC_HOST_NAME)/release/tinbox-image \
		$(HOST_DIR)/bin/tinbox-image
endef

# The assembling program may be one that cargo built before.
ifeq ($(TINBOX_IMAGE),)
TINBOX_DEPENDENCIES += host-tinbox
endif

$(eval $(cargo-package))
$(eval $(host-cargo-package))
